"""The command line as a person meets it: help, sentences, exit codes, and no torch before it is needed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.cli import _console, build_parser, main
from backend.commands import COMMANDS, status
from backend.queues.children import ROOT
from backend.records import JobKind, JobState, SyncState, Verdict, Version
from backend.settings import Settings
from backend.store import SqlStore, open_store
from tests.backend.small_services import CONFIG

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{folder}/polyvox.sqlite3")
    yield store
    store.close()


def run(folder: Path, *argv: str, **env: str) -> int:
    return main(argv, {"POLYVOX_DATA_DIR": str(folder), **env})


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"], {})
    assert left.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())  # long lines are folded
    assert all(f"{command.name} {command.help}" in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_of_each_command_reads_well(command: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(command, type(COMMANDS[0]))
    assert command.help[0].islower() and not command.help.endswith(".")
    assert command.description.endswith(".")
    sub = argparse.ArgumentParser(prog=command.name)
    command.arguments(sub)
    visible = [action for action in sub._actions if action.help != argparse.SUPPRESS]
    assert all(action.help for action in visible)
    with pytest.raises(SystemExit) as left:
        main([command.name, "--help"], {})
    assert left.value.code == 0
    assert " ".join(command.description.split()) in " ".join(capsys.readouterr().out.split())


def test_command_names_are_unique() -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    build_parser()


def test_no_command_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as left:
        main([], {})
    assert left.value.code == 2


def test_an_unusable_setting_is_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "status", POLYVOX_MIN_VOTES="many") == 2
    error = capsys.readouterr().err
    assert error.startswith("polyvox: POLYVOX_MIN_VOTES takes") and "Traceback" not in error


def test_an_unusable_database_is_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").touch()
    assert run(folder, "status", DATABASE_URL=f"sqlite:///{folder}/file/x.sqlite3") in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith("polyvox: ") and "Traceback" not in error


def test_status_of_nothing_says_what_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "status") == 0
    shown = capsys.readouterr().out
    assert "not connected" in shown and "LABEL_STUDIO_URL" in shown and "No project yet" in shown
    assert "polyvox.sqlite3; what another server keeps" in shown


def test_status_names_the_database_without_its_secrets(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is opened is another one; only the address is that of the settings."""
    services = status.build_services(Settings(data_dir=folder))
    monkeypatch.setattr(status, "build_services", lambda settings: services)
    assert run(folder, "status", DATABASE_URL="postgresql+psycopg://me:hidden@db.example/polyvox?password=secret") == 0
    shown = capsys.readouterr().out
    assert "postgresql+psycopg://me:***@db.example/polyvox; what another" in shown
    assert "hidden" not in shown and "secret" not in shown


def fill(store: SqlStore) -> None:
    store.projects.ensure("12.100", title="Politeness [bold]", label_config=CONFIG)
    store.projects.ensure("13.100", title="Other", label_config=CONFIG)
    for number, verdict in ((1, Verdict.PUBLISHED), (2, Verdict.REJECTED)):
        store.versions.add(Version(project="12.100", name=f"r{number}", number=number, path="p", verdict=verdict,
                                   reason=f"Reason {number}.", figures={}, changes=0, created_at=NOW))
    store.projects.set_sync_state("12.100", SyncState(last_error="Label Studio does not answer.", failures=4))
    store.tasks.mark_dirty("12.100", [1, 2])
    store.jobs.enqueue(JobKind.TRAIN, "12.100")
    running = store.jobs.enqueue(JobKind.DELIVER, "12.100")
    claimed = store.jobs.claim("me", lease_s=60, kinds=(JobKind.DELIVER,))
    assert claimed is not None and claimed.id == running.id
    store.jobs.heartbeat(running.id, "me", progress=0.4, note="sending", lease_s=60)


def test_status_for_people(folder: Path, store: SqlStore, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    assert run(folder, "status", "12", LABEL_STUDIO_URL="http://ls", LABEL_STUDIO_API_KEY="very secret") == 0
    shown = capsys.readouterr().out
    for part in ("http://ls", "Politeness [bold]", "2 to be read again", "Label Studio does not answer.", "sending",
                 "train: waits", "deliver: 40% sending", "No version answers, since the checkpoint of r1 is missing",
                 "rejected", "Reason 2."):
        assert part in shown
    assert "Other" not in shown and "very secret" not in shown


def test_status_tells_people_of_interrupted_jobs(
    folder: Path, store: SqlStore, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store)

    def shown() -> str:
        assert run(folder, "status", "12") == 0
        return capsys.readouterr().out

    job = store.jobs.claim("other:heavy", lease_s=60, kinds=(JobKind.TRAIN,))
    assert job is not None and "interrupted" not in shown()
    store.jobs.release("other", error="The job process died.")
    assert "and is tried again; its last error: The job process died." in shown()
    store.jobs.claim("other:heavy", lease_s=60, job_id=job.id)
    assert "and runs again; its last error: The job process died." in shown()
    store.jobs.finish(job.id, "other:heavy", figures={})
    assert "was interrupted at " in (said := shown()) and "and went through." in said


def test_status_for_programs(folder: Path, store: SqlStore, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    assert run(folder, "status", "--json") == 0
    state = json.loads(capsys.readouterr().out)
    twelve = next(each for each in state["projects"] if each["project"]["label_studio_id"] == 12)
    assert state["connected"] is False
    assert (twelve["dirty"], twelve["published"]["name"]) == (2, "r1")
    assert [each["verdict"] for each in twelve["versions"]] == ["rejected", "published"]
    assert {job["kind"]: job["state"] for job in twelve["jobs"]} == {"train": "queued", "deliver": "running"}


@pytest.mark.parametrize("argv", [
    ["status", "99"], ["train", "99"], ["deliver", "99"], ["predict", "99", "--task", "1"], ["train", "٣"],
    ["set", "99", "min_votes=3"],
])
def test_unknown_projects_are_a_sentence(
    folder: Path, store: SqlStore, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store)
    env = {"LABEL_STUDIO_URL": "http://ls", "LABEL_STUDIO_API_KEY": "x"}
    assert run(folder, *argv, **env) == 1
    assert "Polyvox knows 12, 13" in capsys.readouterr().err


def test_train_queues_and_returns(folder: Path, store: SqlStore) -> None:
    fill(store)
    assert run(folder, "train", "13", "--full", "--no-wait") == 0
    (job,) = store.jobs.recent("13.100")
    assert (job.kind, job.state, job.payload["full"]) == (JobKind.TRAIN, JobState.QUEUED, True)


def test_train_without_a_job_process_works_it_off_here(
    folder: Path, store: SqlStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The project has no votes, so the training fails with its sentence, which is what is shown."""
    monkeypatch.setattr("backend.commands.follow.PATIENCE_S", 0.1)
    monkeypatch.setattr("os.nice", lambda _: 0)  # this process is the test run's
    store.projects.ensure("13.100", label_config=CONFIG)
    assert run(folder, "train", "13") == 1
    assert "polyvox: Training needs at least 20 votes; there are 0." in capsys.readouterr().err


def test_deliver_says_why_it_cannot(folder: Path, store: SqlStore, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    env = {"LABEL_STUDIO_URL": "http://ls", "LABEL_STUDIO_API_KEY": "x"}
    assert run(folder, "deliver", "12") == 1
    assert "not connected" in capsys.readouterr().err
    assert run(folder, "deliver", "13", **env) == 1
    assert "no published version" in capsys.readouterr().err
    assert run(folder, "deliver", "12", POLYVOX_SHADOW_MODE="yes", **env) == 1
    assert "switched off" in capsys.readouterr().err
    assert run(folder, "deliver", "12", "--no-wait", **env) == 0
    assert store.jobs.pending("12.100", JobKind.DELIVER) is not None


def test_predict_without_a_version_is_a_sentence(
    folder: Path, store: SqlStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.projects.ensure("13.100", label_config=CONFIG)
    assert run(folder, "predict", "13", "--task", "1") == 1
    assert "no published version yet" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], ["serve", "--help"], ["status"]])
def test_torch_is_not_loaded_before_it_is_needed(folder: Path, argv: list[str]) -> None:
    """`serve` forks before torch is there, and `status` answers at once."""
    code = (f"import sys; from backend.cli import main\ntry: main({argv!r}, {{'POLYVOX_DATA_DIR': {str(folder)!r}}})\n"
            "except SystemExit: pass\nsys.exit('torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0


def test_module_runs_as_a_program(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "backend", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "python -m backend" in done.stdout


def test_a_pipe_gets_whole_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert _console().width == 200
    monkeypatch.setenv("COLUMNS", "90")
    assert _console().width == 90
