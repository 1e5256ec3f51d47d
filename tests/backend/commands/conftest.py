"""A shell for the commands on data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backend.commands.crowd import Shell


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("COLUMNS", "250")
    return Shell(tmp_path, capsys)


@pytest.fixture
def simulated(shell: Shell) -> Path:
    """200 tasks, 12 annotators, four of them faulty, with gold."""
    folder = shell.folder / "crowd"
    shell("simulate", "-s", "faults", "--n-worker", "12", "-K", "3", "--seed", "4", "--out", folder)
    return folder
