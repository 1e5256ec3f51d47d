"""The job process: in this process with small services, and as a real process that is stopped and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from backend.bootstrap import Services, build_queue, build_supervisor
from backend.ports import Progress
from backend.queues.children import ROOT
from backend.records import Job, JobKind, JobState
from backend.settings import Settings
from backend.store import open_store
from backend.worker import Worker
from backend.worker.lanes import TickPace
from tests.backend.small_services import small_services


def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@contextlib.contextmanager
def running(services: Services, **options: Any) -> Iterator[Worker]:
    worker = Worker(services, build_queue(services), tick_s=0.05, **options)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join()


def state(services: Services, job: Job) -> JobState:
    now = services.store.jobs.get(job.id)
    assert now is not None
    return now.state


def test_reading_does_not_wait_for_a_training(tmp_path: Path) -> None:
    release = threading.Event()

    def train(project: str, progress: Progress) -> Mapping[str, Any]:
        release.wait(10)
        return {}

    services = small_services(tmp_path, on_train=train)
    training = services.store.jobs.enqueue(JobKind.TRAIN, "1.1")
    with running(services):
        until(lambda: state(services, training) is JobState.RUNNING)
        reading = services.store.jobs.enqueue(JobKind.SYNC, "1.1")
        until(lambda: state(services, reading) is JobState.DONE)
        assert state(services, training) is JobState.RUNNING
        release.set()
        until(lambda: state(services, training) is JobState.DONE)


def test_ticks_queue_and_run_what_is_due(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []
    services = small_services(
        tmp_path, asked=asked, label_studio_url="http://ls", label_studio_api_key="key", sync_delay_s=0.0)
    services.store.tasks.mark_dirty("1.1", [3])
    with running(services):
        until(lambda: len(asked) >= 2)  # a sync and the reconcile of the start


def test_a_database_that_is_away_does_not_end_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = small_services(tmp_path)
    tick, calls = services.triggers.tick, []

    def failing() -> list[Job]:
        calls.append(1)
        if len(calls) < 3:
            raise OperationalError("SELECT", {"text": "secret"}, Exception("away"))
        return tick()

    monkeypatch.setattr(services.triggers, "tick", failing)
    with running(services):
        until(lambda: len(calls) >= 4)


def test_a_tick_that_waited_for_the_database_is_soon_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = small_services(tmp_path)
    begun: list[float] = []

    def locked() -> list[Job]:
        begun.append(time.monotonic())
        time.sleep(0.5)
        raise OperationalError("BEGIN IMMEDIATE", {}, Exception("database is locked"))

    monkeypatch.setattr(services.triggers, "tick", locked)
    with running(services):
        until(lambda: len(begun) >= 3)
    assert begun[2] - begun[0] < 5.0  # 20 s if half a second of waiting counted as work


def test_ticking_takes_a_small_share_of_a_processor_and_never_pauses_for_long() -> None:
    spent = iter([0.0, 0.1, 10.0, 10.01, 20.0, 80.0])
    pace = TickPace(0.5, spent=lambda: next(spent))
    waits = []
    for _ in range(3):
        with pace.tick():
            pass
        waits.append(pace.wait_s)
    assert waits == [pytest.approx(2.0), 0.5, 30.0]


def test_a_mistake_in_a_lane_ends_the_whole_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = small_services(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(services.store.jobs, "claim", broken)
    with pytest.raises(ZeroDivisionError):
        Worker(services, build_queue(services)).run()


def test_a_lane_inside_a_long_step_is_left_after_the_grace_time(tmp_path: Path) -> None:
    release = threading.Event()

    def train(project: str, progress: Progress) -> Mapping[str, Any]:
        release.wait(30)
        return {}

    services = small_services(tmp_path, on_train=train)
    training = services.store.jobs.enqueue(JobKind.TRAIN, "1.1")
    worker = Worker(services, build_queue(services), grace_s=0.2)
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: ended.append(worker.run()))
    thread.start()
    until(lambda: state(services, training) is JobState.RUNNING)
    worker.stop()
    thread.join(10)
    release.set()
    assert ended == [False]


# --- real processes -------------------------------------------------------------------------------------------------


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.backend.slow_worker", str(folder), *more]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)


def test_a_job_whose_process_is_killed_runs_again_and_finishes(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    store.projects.ensure("1.1")
    job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
    first = start(tmp_path)
    until(lambda: (tmp_path / "begun").exists())
    first.kill()
    first.wait()
    left = store.jobs.get(job.id)
    assert left is not None and left.state is JobState.RUNNING
    second = start(tmp_path)
    until(lambda: (found := store.jobs.get(job.id)) is not None and found.state is JobState.DONE)
    ended = store.jobs.get(job.id)
    assert ended is not None and ended.attempts == 2 and ended.figures == {"verdict": "rejected"}
    second.terminate()
    assert second.wait(10) == 0
    store.close()


def test_the_supervisor_gives_the_job_of_a_killed_process_to_the_next_at_once(tmp_path: Path) -> None:
    """The lease is a minute; nobody waits for it."""
    settings = Settings(data_dir=tmp_path)
    store = open_store(settings.database_url)
    store.projects.ensure("1.1")
    job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
    supervisor = build_supervisor(settings)
    assert supervisor is not None
    supervisor._command = [sys.executable, "-m", "tests.backend.slow_worker", str(tmp_path), "--embedded",
                           "--lease-s", "60"]
    supervisor.start()
    try:
        until(lambda: (tmp_path / "begun").exists())
        assert supervisor.pid is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        until(lambda: (found := store.jobs.get(job.id)) is not None and found.state is JobState.DONE, 20)
    finally:
        supervisor.stop()
    ended = store.jobs.get(job.id)
    assert ended is not None and ended.attempts == 2
    store.close()


@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "parent"])
def test_a_stopped_process_ends_soon_and_gives_its_job_back(tmp_path: Path, way: str) -> None:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    store.projects.ensure("1.1")
    job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
    process = start(tmp_path, *(["--embedded"] if way == "parent" else []))
    until(lambda: (tmp_path / "begun").exists())
    if way == "parent":
        assert process.stdin is not None
        process.stdin.close()
    else:
        process.send_signal(signal.Signals[way])
    assert process.wait(10) == 0
    found = store.jobs.get(job.id)
    assert found is not None and found.state is JobState.QUEUED
    store.close()


def test_the_process_is_nice_and_torch_gets_its_threads() -> None:
    code = ("import backend.cli, os; from backend.worker import be_nice; be_nice(1); import torch; "
            "print(torch.get_num_threads(), os.nice(0))")
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", str(min(os.nice(0) + 10, 19))]
