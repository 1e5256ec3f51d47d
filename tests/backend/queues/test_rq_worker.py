"""Job machines over RQ as real processes with a real Redis: what is killed, lost or late costs time, never a job."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rq import Worker

from backend.bootstrap import build_doorbell
from backend.queues.children import ROOT
from backend.records import Job, JobKind, JobState
from backend.settings import Settings
from backend.store import SqlStore, open_store
from tests.backend.queues.redis_server import RedisServer, redis_server


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    store.projects.ensure("1.1")
    yield store
    store.close()


@contextlib.contextmanager
def machine(folder: Path, redis: RedisServer, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """One job machine; its lease time is the default of a minute, so that nothing here passes by waiting for it."""
    command = [sys.executable, "-m", "tests.backend.queues.machine", str(folder), redis.url, *more]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield process
            process.terminate()
            assert process.wait(30) in (0, -signal.SIGKILL)
        finally:
            process.kill()


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def now(store: SqlStore, job: Job) -> Job:
    found = store.jobs.get(job.id)
    assert found is not None
    return found


def done(store: SqlStore, job: Job) -> bool:
    return now(store, job).state is JobState.DONE


def runs(folder: Path) -> list[int]:
    """Process ids of the runs begun so far."""
    path = folder / "runs"
    return [int(line.split()[1]) for line in path.read_text().splitlines()] if path.exists() else []


def works(store: SqlStore) -> Job:
    job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
    until(lambda: done(store, job))
    return now(store, job)


def test_a_due_row_is_rung_for_and_run_and_nothing_stays_in_redis(
    tmp_path: Path, redis: RedisServer, store: SqlStore
) -> None:
    with machine(tmp_path, redis) as process, redis.client() as client:
        first = works(store)
        assert (first.attempts, first.figures) == (1, {"verdict": "published"})
        begun = time.monotonic()
        works(store)
        assert time.monotonic() - begun < 2  # no process is started, nothing loaded
        assert len(set(runs(tmp_path))) == 1 and process.pid not in runs(tmp_path)
        workers = Worker.all(connection=client)
        assert sorted(worker.name.split(":")[2] for worker in workers) == ["heavy", "read", "sync"]
        until(lambda: not client.keys("rq:job:*") and not client.keys("rq:queue:*"))
    with redis.client() as client:
        assert Worker.all(connection=client) == []


def test_a_killed_lane_process_loses_its_claim_at_once_and_the_job_runs_again(
    tmp_path: Path, redis: RedisServer, store: SqlStore
) -> None:
    (tmp_path / "hang").touch()
    with machine(tmp_path, redis):
        job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
        until(lambda: runs(tmp_path))
        (tmp_path / "hang").unlink()
        os.kill(runs(tmp_path)[0], signal.SIGKILL)
        until(lambda: done(store, job), 20)
        assert now(store, job).attempts == 2 and len(set(runs(tmp_path))) == 2


def test_a_killed_machine_gives_its_job_to_another(tmp_path: Path, redis: RedisServer, store: SqlStore) -> None:
    (tmp_path / "hang").touch()
    with machine(tmp_path, redis) as first:
        job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
        until(lambda: runs(tmp_path))
        first.kill()
        until(lambda: now(store, job).state is JobState.QUEUED)
        (tmp_path / "hang").unlink()
        with machine(tmp_path, redis):
            until(lambda: done(store, job), 20)
    assert len(set(runs(tmp_path))) == 2


def test_a_stopped_machine_gives_its_job_back(tmp_path: Path, redis: RedisServer, store: SqlStore) -> None:
    (tmp_path / "hang").touch()
    with machine(tmp_path, redis) as process:
        job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
        until(lambda: runs(tmp_path))
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0 and time.monotonic() - begun < 10
    assert now(store, job).state is JobState.QUEUED
    until(lambda: not Path(f"/proc/{runs(tmp_path)[0]}").exists())


def test_redis_is_killed_and_comes_back_empty(tmp_path: Path, redis: RedisServer, store: SqlStore) -> None:
    """In the middle of a job; jobs queued meanwhile run without it, and later ones are rung for again."""
    (tmp_path / "hang").touch()
    with machine(tmp_path, redis):
        job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
        until(lambda: runs(tmp_path))
        redis.kill()
        time.sleep(1)
        (tmp_path / "hang").unlink()
        until(lambda: done(store, job))
        assert now(store, job).attempts == 1
        works(store)
        redis.start()
        with redis.client() as client:
            until(lambda: len(Worker.all(connection=client)) == 3)
        works(store)
    assert len(runs(tmp_path)) == 3


def test_redis_that_is_not_there_at_the_start_is_found_later(
    tmp_path: Path, redis: RedisServer, store: SqlStore
) -> None:
    redis.kill()
    with machine(tmp_path, redis):
        works(store)
        redis.start()
        with redis.client() as client:
            until(lambda: len(Worker.all(connection=client)) == 3)
        works(store)


def test_redis_that_hangs_is_as_good_as_gone(tmp_path: Path, redis: RedisServer, store: SqlStore) -> None:
    with machine(tmp_path, redis):
        works(store)
        redis.pause()
        works(store)
        redis.resume()
        with redis.client() as client:
            until(lambda: client.keys("rq:worker:*"))
        works(store)


def test_a_job_that_is_rung_for_twice_runs_once(tmp_path: Path, redis: RedisServer, store: SqlStore) -> None:
    """As when a machine looks for due rows between another's hearing of a ring and its claim."""
    bell = build_doorbell(Settings(data_dir=tmp_path, redis_url=redis.url), limits_s={"heavy": 60.0})
    job = store.jobs.enqueue(JobKind.TRAIN, "1.1")
    bell.ring("heavy", [job.id])
    for _ in range(20):
        bell.redis.rpush(bell.queue("heavy").key, job.id)
    bell.queue("heavy").enqueue_call("os.abort", job_id="not-a-row")  # nothing of ours, and never called
    with machine(tmp_path, redis), machine(tmp_path, redis):
        until(lambda: done(store, job))
        works(store)
        until(lambda: not bell.redis.keys("rq:queue:*") and not bell.redis.keys("rq:job:*"))
    assert len(runs(tmp_path)) == 2


def test_rings_that_are_lost_are_rung_again(tmp_path: Path, redis: RedisServer, store: SqlStore) -> None:
    (tmp_path / "hang").touch()
    with machine(tmp_path, redis), redis.client() as client:
        store.projects.ensure("2.1")
        jobs = [store.jobs.enqueue(JobKind.TRAIN, project) for project in ("1.1", "2.1")]
        until(lambda: len(runs(tmp_path)) == 1 and client.keys("rq:queue:*"))  # the other's ring waits
        client.flushall()
        (tmp_path / "hang").unlink()
        until(lambda: all(done(store, job) for job in jobs))
    assert len(runs(tmp_path)) == 2
