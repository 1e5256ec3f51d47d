"""The command line of the demo: its refusals, each with a sentence that says what to do."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from demo import __main__ as command
from demo.label_studio import VENV_VARIABLE
from demo.state import FILE


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POLYVOX_DATA_DIR", str(tmp_path))
    return tmp_path / "demo"


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_without_label_studio_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VENV_VARIABLE, str(tmp_path / "nowhere"))
    assert command.main(["--check"]) == 1
    output = said(capsys)
    assert "pip install label-studio==1.23.2" in output and VENV_VARIABLE in output


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert command.main(["--check", "--port", str(port)]) == 1
    assert f"Port {port} is taken" in said(capsys)


def test_two_at_once_over_the_same_data_are_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with command._only_one(data):
        assert command.main(["--check"]) == 1
    assert "already running" in said(capsys)


def test_starting_over_deletes_the_demos_data_and_nothing_else(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VENV_VARIABLE, str(data / "nowhere"))
    data.mkdir()
    (data / "precious.txt").write_text("mine")
    assert command.main(["--check", "--fresh"]) == 1
    assert "was not made by this demo" in said(capsys)
    assert (data / "precious.txt").exists()
    (data / FILE).write_text("damaged")
    assert command.main(["--check", "--fresh"]) == 1
    assert "is not installed" in said(capsys), "it went on"
    assert not (data / "precious.txt").exists()
