"""Two web processes and two job machines on one store: nobody sees an old version, and nothing runs twice."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from backend.queues.children import ROOT
from backend.records import JobKind, JobState
from backend.store import SqlStore, open_store
from tests.backend.queues.redis_server import RedisServer, redis_server
from tests.backend.small_services import CONFIG
from tests.backend.test_serve import free_port, healthy, until

PROJECTS = [f"{number}.1764288000" for number in range(1, 13)]
CHECKS = 1000


@contextlib.contextmanager
def web(folder: Path, redis: RedisServer) -> Iterator[int]:
    port = free_port()
    env = {**os.environ, "POLYVOX_DATA_DIR": str(folder), "REDIS_URL": redis.url, "OMP_NUM_THREADS": "1",
           "LABEL_STUDIO_URL": "", "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--threads", "2",
               "--keep-alive", "60", "--log-level", "warning", "_wsgi:app"]
    with subprocess.Popen(command, cwd=ROOT, env=env) as process:
        try:
            yield port
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def machine(folder: Path, redis: RedisServer) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.backend.queues.machine", str(folder), redis.url, "--tick-s", "0.05"]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(30) == 0


class Trainings(threading.Thread):
    """Queues a training of each project as soon as its last one ended."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(name="trainings", daemon=True)
        self._store = store
        self._stop_queueing = threading.Event()
        self.queued: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stop_queueing.wait(0.02):
            for project in PROJECTS:
                if self._store.jobs.pending(project, JobKind.TRAIN) is None:
                    self._store.jobs.enqueue(JobKind.TRAIN, project)
                    self.queued[project] += 1

    def stop(self) -> None:
        self._stop_queueing.set()
        self.join()


def published(store: SqlStore, project: str) -> int:
    version = store.versions.published(project)
    return version.number if version is not None else 0


def answered(connection: http.client.HTTPConnection, project: str) -> int:
    """The version that /setup tells."""
    body = json.dumps({"project": project, "schema": CONFIG})
    connection.request("POST", "/setup", body, {"Content-Type": "application/json"})
    name: str = json.load(connection.getresponse())["model_version"]
    return int(name.removeprefix("consensus@r"))


def test_a_version_published_elsewhere_is_seen_at_the_next_request_and_no_job_runs_twice(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    for project in PROJECTS:
        store.projects.ensure(project, label_config=CONFIG)
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(redis_server(tmp_path))
        ports = [stack.enter_context(web(tmp_path, redis)) for _ in range(2)]
        for _ in range(2):
            stack.enter_context(machine(tmp_path, redis))
        until(lambda: all(healthy(port) for port in ports), 120)
        trainings = Trainings(store)
        trainings.start()
        until(lambda: all(published(store, project) for project in PROJECTS))
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for port in ports]
        seen: Counter[tuple[int, str]] = Counter()
        checks = fresh = 0
        begun = time.monotonic()
        while checks < CHECKS:
            for place, connection in enumerate(connections):
                for project in PROJECTS:
                    least = published(store, project)
                    answer = answered(connection, project)
                    assert least <= answer <= published(store, project)
                    fresh += answer > seen[place, project]
                    seen[place, project] = answer
                    checks += 1
        seconds = time.monotonic() - begun
        trainings.stop()
        until(lambda: all(store.jobs.pending(project, JobKind.TRAIN) is None for project in PROJECTS))
    print(f"{checks} checks in {seconds:.1f} s, {fresh} of them the first after a new version; "
          f"{trainings.queued.total()} trainings")
    assert fresh >= CHECKS / 10, "too little was published to show anything"
    runs = [line.split() for line in (tmp_path / "runs").read_text().splitlines()]
    assert Counter(project for project, _ in runs) == trainings.queued
    assert len({pid for _, pid in runs}) == 2, "one machine did all the work"
    jobs = [job for project in PROJECTS for job in store.jobs.recent(project, limit=10_000)]
    waiting = (JobKind.STATISTICS, JobKind.GAPS)  # the last of them still wait
    jobs = [job for job in jobs if job.kind not in waiting]
    assert {(job.state, job.attempts) for job in jobs} == {(JobState.DONE, 1)}
    assert Counter(job.project for job in jobs) == trainings.queued
    assert {project: published(store, project) for project in PROJECTS} == trainings.queued
    store.close()
