"""What the status says of a bad neighbour: named soon, with its cure, by every process and the command, then gone.

A real `serve --processes 2`, a Label Studio over HTTP, and a lock, a limit or a folder of the operating system.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backend.bootstrap import build_services
from backend.cli import main
from backend.jobs import run_job
from backend.queues.children import ROOT
from backend.records import JobKind
from backend.routes.overview import overview
from backend.services import storage_watch
from backend.services.storage_watch import StorageWatch
from backend.settings import Settings
from backend.store import open_store
from tests.backend.holding import locked
from tests.backend.small_studio import KEY, LOGIN_PAGE, SmallStudio, small_studio
from tests.backend.test_processes import only, web_processes
from tests.backend.test_serve import ask, free_port, healthy, until

NAMED_S = 60.0  # half of that on a machine that is not busy; tests run side by side
HEALTHY = "Polyvox works for Label Studio at "


@dataclass(frozen=True)
class Running:
    """Two web processes and a job process beside a Label Studio."""

    studio: SmallStudio
    folder: Path
    port: int
    web: list[int]
    env: dict[str, str]

    def said(self) -> list[str]:
        """All sentences of connection and problems, the same from both processes."""
        found = []
        for pid in self.web:
            with only(pid, self.web):
                found.append(sentences(ask(self.port, "/", timeout_s=20)))
        assert len(found) == len(self.web) == 2
        return sorted({each for said in found for each in said if all(each in other for other in found)})

    def command(self, capsys: pytest.CaptureFixture[str]) -> str:
        """What `python -m backend status` prints."""
        capsys.readouterr()
        main(["status"], self.env)
        return " ".join(capsys.readouterr().out.split())

    def named(self, words: str) -> list[str]:
        """Wait until both processes say it; all that they say then."""
        return self._until(lambda said: any(words in each for each in said))

    def over(self, words: str) -> None:
        """Wait until neither says it, and both that all is well."""
        self._until(lambda said: not any(words in each for each in said) and any(HEALTHY in each for each in said))

    def _until(self, fits: Callable[[list[str]], bool]) -> list[str]:
        begun = time.monotonic()
        while not fits(said := self.said()):
            assert time.monotonic() - begun < NAMED_S, said
            time.sleep(0.3)
        return said


def sentences(status: dict[str, Any]) -> list[str]:
    projects = [problem for project in status["projects"] for problem in project["problems"]]
    return [status["says"], *status["problems"], *projects]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder, port = tmp_path_factory.mktemp("status"), free_port()
    with small_studio() as studio:
        own = {"POLYVOX_DATA_DIR": str(folder), "LABEL_STUDIO_URL": studio.url, "LABEL_STUDIO_API_KEY": "k",
               "POLYVOX_RECONCILE_EVERY_S": "1", "POLYVOX_SWEEP_EVERY_S": "1"}
        store = open_store(f"sqlite:///{folder}/polyvox.sqlite3")
        store.projects.ensure(KEY)
        store.close()
        command = [sys.executable, "-m", "backend", "serve", "--port", str(port), "--processes", "2"]
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", **own},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: len(web_processes(folder, process.pid)) == 2 and healthy(port))
                web = [pid for pid in web_processes(folder, process.pid)]
                made = Running(studio=studio, folder=folder, port=port, web=web, env={**os.environ, **own})
                for pid in web:
                    with only(pid, web):
                        until(lambda: healthy(port))
                made.over("nothing was read from it yet")
                yield made
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def test_all_is_well(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = running.said()
    assert said.startswith(HEALTHY) and "!" not in running.command(capsys)


def test_a_database_that_somebody_holds_is_named(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    words = "The database is locked by another program"
    with locked(running.folder / "polyvox.sqlite3"):
        said = running.named(words)
        assert any("`fuser -v` on the database file names it" in each for each in said)
        assert words in running.command(capsys)
        assert not any("job process" in each for each in running.said())  # there is one; it waits as well
    running.over(words)
    assert words not in running.command(capsys)


def test_a_disk_that_takes_nothing_is_named(running: Running) -> None:
    words = "Writing into the data folder (POLYVOX_DATA_DIR) fails (File too large): check its disk and its limits."
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in running.web}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1000, hard))
    try:
        running.named(words)
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    running.over(words)
    assert not list(running.folder.glob(".write-probe*"))


def test_little_room_is_named(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    running.env["POLYVOX_DISK_FREE_MB"] = "1e12"
    try:
        assert "The disk of the data folder (POLYVOX_DATA_DIR) is nearly full" in running.command(capsys)
    finally:
        del running.env["POLYVOX_DISK_FREE_MB"]


def test_a_folder_that_may_not_be_written_and_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    settings = Settings(data_dir=tmp_path, model_dir=Path("/sys/polyvox"), disk_free_mb=0.0)  # nobody may write there
    (said,) = StorageWatch(store, settings).problems()
    assert said.startswith("Nothing can be written into the folder of checkpoints (MODEL_DIR) (")
    assert "give it to the user that Polyvox runs as. Until then no new version can be kept." in said

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage_watch, "write_probe", full)
    (said,) = StorageWatch(store, Settings(data_dir=tmp_path, disk_free_mb=0.0)).problems()
    assert said.startswith("The disk of the data folder (POLYVOX_DATA_DIR) is full (No space left on device): make")
    store.close()


@pytest.mark.parametrize("wrong, words", [
    ({"status": 503}, "answers with an error (503): start it again"),
    ({"page": LOGIN_PAGE}, "does not answer, something else does"),
    ({"drips": frozenset({"/health/"})}, "did not finish a short answer within two seconds"),
], ids=["down", "login page", "drips"])
def test_a_label_studio_that_is_none_is_named(
    running: Running, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any], words: str
) -> None:
    right = {name: getattr(running.studio, name) for name in wrong}
    vars(running.studio).update(wrong)
    try:
        said = running.named(words)
        assert not any(each.startswith(HEALTHY) for each in said)
        with only(running.web[0], running.web):
            assert ask(running.port, "/", timeout_s=20)["label_studio"]["connected"] is False
        shown = running.command(capsys)
        assert words in shown and HEALTHY not in shown
    finally:
        vars(running.studio).update(right)
        running.studio.ended.set()
    running.over(words)
    running.studio.ended.clear()


def test_a_list_that_leaves_tasks_out_is_named(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    words = "Label Studio's list of tasks leaves out 30 of 40 known tasks"
    store = open_store(f"sqlite:///{running.folder}/polyvox.sqlite3")
    running.studio.hidden = frozenset(range(1, 31))
    try:
        said = running.named(words)
        assert any("nothing was removed. Look for a proxy that cuts or keeps its answers" in each for each in said)
        assert words in running.command(capsys) and store.tasks.count(KEY) == 40
    finally:
        running.studio.hidden = frozenset()
        store.close()
    running.over(words)


def test_a_list_that_drips_is_named_while_it_drips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process: the limit is lowered, and the job is run here."""
    monkeypatch.setattr("backend.client.transport.WAITING_S", 0.5)
    with small_studio() as studio, contextlib.ExitStack() as ends:
        services = build_services(Settings(data_dir=tmp_path, label_studio_url=studio.url, label_studio_api_key="k"))
        ends.callback(services.close)
        services.store.projects.ensure(KEY)
        studio.drips = frozenset({"/api/tasks"})
        services.store.jobs.enqueue(JobKind.RECONCILE, KEY)
        job = services.store.jobs.claim("test", lease_s=60)
        assert job is not None
        def problems() -> list[str]:
            return [each for view in overview(services).projects for each in view.problems]

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(run_job, services, job, owner="test")
            try:
                until(lambda: any("Label Studio has not finished its answer to GET /api/tasks" in each
                                  and "the proxy in front of it" in each for each in problems()), NAMED_S)
            finally:
                studio.drips = frozenset()
                studio.ended.set()
            done.result(60)
        assert not any("has not finished" in each for each in problems())
