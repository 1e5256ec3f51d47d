"""docs/crowd.md says what --help says, and the commands start without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backend.cli import main
from backend.commands import COMMANDS
from backend.commands.reference import CROWD_COMMANDS, PAGE, renewed

ROOT = Path(__file__).parents[3]


def test_reference_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page), "run `python -m backend.commands.reference`"


@pytest.mark.parametrize("command", CROWD_COMMANDS, ids=lambda command: command.name)
def test_help_and_page_name_the_same_options(command: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(command, type(COMMANDS[0])) and command in COMMANDS
    with pytest.raises(SystemExit):
        main([command.name, "--help"], {})
    shown = capsys.readouterr().out
    section = PAGE.read_text(encoding="utf-8").split(f"### {command.name}\n")[1].split("\n### ")[0]
    listed = {word.strip("`,") for line in section.splitlines() if line.startswith("| `-")
              for word in line.split("|")[1].split() if word.strip("`,").startswith("-")}
    assert listed and all(option in shown for option in listed)
    assert {word.rstrip(",") for word in shown.split() if word.startswith("--")} - {"--help"} <= listed | {
        word.strip("`,.;()") for word in section.split()}


def test_commands_run_without_torch(tmp_path: Path) -> None:
    """Arrow is loaded when it is needed; the network library never is."""
    steps = [["simulate", "--n-task", "20", "--out", str(tmp_path / "x")], ["aggregate", str(tmp_path / "x")],
             ["identify", str(tmp_path / "x"), "--prune"], ["agreement", str(tmp_path / "x")],
             ["convert", str(tmp_path / "x"), str(tmp_path / "x.parquet")]]
    code = ("import sys\nfrom backend.cli import main\n"
            "assert not {'pyarrow', 'torch'} & set(sys.modules), 'loaded too early'\n"
            f"codes = [main(step, {{'POLYVOX_DATA_DIR': {str(tmp_path)!r}}}) for step in {steps!r}]\n"
            "assert codes == [0] * 5, codes\nassert 'torch' not in sys.modules and 'transformers' not in sys.modules\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
