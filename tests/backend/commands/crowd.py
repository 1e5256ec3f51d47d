"""Running the commands on data sets as a person would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backend.cli import main

LAST_LINE = re.compile(
    r"method=\S+ tasks=\d+ annotators=\d+ votes=\d+ iterations=(\d+|-) converged=(true|false) seconds=\d+\.\d+")


class Shell:
    """Runs commands in a folder and keeps what they print."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.out = self.err = ""

    def __call__(self, *argv: str | Path, expect: int = 0) -> str:
        self._capsys.readouterr()
        code = main([str(each) for each in argv], {"POLYVOX_DATA_DIR": str(self.folder / "data")})
        self.out, self.err = self._capsys.readouterr()
        assert code == expect, self.err
        assert "Traceback" not in self.err
        return self.out if not expect else self.err

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path
