"""The loop with job machines: a real Label Studio, a web process without jobs, `python -m backend worker`, and Redis.

What is learned, published and delivered is as without Redis; here it must go on when Redis is killed, when the process
that trains is killed, and when Redis is back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rq import Worker

from backend.records import JobKind, JobState
from demo.client import Account, choice
from demo.personas import PERSONAS
from demo.processes import Service, clean_env
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from tests.backend.queues.redis_server import redis_server
from tests.e2e.polyvox import PATIENCE_S, Polyvox, serve
from tests.e2e.server import OWNER, LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

OPEN_TASKS, FIRST, LATER = 10, 40, 10
ADA, EMIL = PERSONAS[0], PERSONAS[4]
SETTINGS = {
    "POLYVOX_TRAIN_AFTER_VOTES": "10000", "POLYVOX_TRAIN_AFTER_QUIET_S": "4", "POLYVOX_CONSENSUS_EVERY_S": "1",
    "POLYVOX_RECONCILE_EVERY_S": "10",  # Label Studio gives a webhook a second, which a busy test machine may not have
}


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited too long for {what}"
        time.sleep(0.1)


@contextlib.contextmanager
def job_machine(label_studio: LabelStudio, polyvox: Polyvox, folder: Path, redis: str) -> Iterator[Service]:
    """With the settings of the web process: it registers the webhook that this one accepts."""
    env = clean_env(
        POLYVOX_URL=polyvox.url, POLYVOX_WEBHOOK_SECRET="a-secret-of-the-tests",
        LABEL_STUDIO_URL=label_studio.url, LABEL_STUDIO_API_KEY=OWNER.token, REDIS_URL=redis, PYTHONUNBUFFERED="1",
        POLYVOX_DATA_DIR=str(folder / "polyvox"), POLYVOX_CONTROL_ARM_PERCENT="0", **SETTINGS,
    )
    command = [sys.executable, "-m", "backend", "worker"]
    with Service("job machine", command, env=env, log=folder / "worker.log", health="", cwd=Path.cwd()) as service:
        yield service


def lane_processes(folder: Path, lane: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = f"POLYVOX_DATA_DIR={folder / 'polyvox'}\0".encode() in (entry / "environ").read_bytes()
            if ours and f"--lane\0{lane}\0".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


class Labelling:
    """Two simulated annotators of one project."""

    def __init__(self, label_studio: LabelStudio, polyvox: Polyvox) -> None:
        self._label_studio = label_studio
        self._messages = load()[: OPEN_TASKS + FIRST + 2 * LATER]
        owner = label_studio.owner
        self.project = owner.create_project("Over RQ", LABEL_CONFIG, maximum_annotations=5)
        self.tasks = owner.import_tasks(self.project, [{"data": {"text": each.text}} for each in self._messages])
        owner.add_ml_backend(self.project, polyvox.url, "Polyvox")
        self.annotators: list[Account] = list(label_studio.annotators[:2])

    def label(self, begin: int, count: int) -> None:
        for account, persona in zip(self.annotators, (ADA, EMIL), strict=True):
            client = self._label_studio.as_annotator(account)
            for task, message in list(zip(self.tasks, self._messages, strict=True))[begin : begin + count]:
                client.annotate(task, [choice(CONTROL, OBJECT, persona.label(message, seed=3))])


def test_the_loop_goes_on_whatever_is_killed(label_studio: LabelStudio, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(redis_server(tmp_path))
        polyvox = stack.enter_context(serve(label_studio, tmp_path, {**SETTINGS, "REDIS_URL": redis.url}, 0.0))
        labelling = Labelling(label_studio, polyvox)
        project = labelling.project

        labelling.label(OPEN_TASKS, FIRST)
        key = polyvox.project(project).key
        assert polyvox.store.jobs.recent(key) == [], "the web process runs jobs"
        machine = stack.enter_context(job_machine(label_studio, polyvox, tmp_path, redis.url))
        polyvox.wait_for_delivery(project, "r1")
        shown = label_studio.owner.call("GET", f"/api/tasks/{labelling.tasks[0]}")["predictions"]
        wanted = {"consensus@r1", *(f"annotator:{account.id}@r1" for account in labelling.annotators)}
        assert wanted <= {each["model_version"] for each in shown}
        with redis.client() as client:
            assert len(Worker.all(connection=client)) == 3

        # Neither Redis nor a job machine: the web process takes in what comes. Then the process that trains is killed.
        machine.stop()
        redis.kill()
        labelling.label(OPEN_TASKS + FIRST, LATER)
        until(lambda: polyvox.store.tasks.dirty_count(key) >= LATER / 2, "marks", 10)
        machine = stack.enter_context(job_machine(label_studio, polyvox, tmp_path, redis.url))
        until(lambda: lane_processes(tmp_path, "heavy"), "the lane")
        (heavy,) = lane_processes(tmp_path, "heavy")  # before the training, which may be shorter than looking it up
        training = (JobKind.TRAIN, JobState.RUNNING)
        until(lambda: training in {(job.kind, job.state) for job in polyvox.store.jobs.recent(key)}, "a training")
        os.kill(heavy, signal.SIGKILL)
        killed_at = time.monotonic()
        polyvox.wait_for_version(project, "r2")
        print(f"\nfrom the kill of the training to the version: {time.monotonic() - killed_at:.1f} s")
        until(lambda: polyvox.store.votes.counts(key).total == 2 * (FIRST + LATER), "all votes")
        assert max(job.attempts for job in polyvox.finished(project, JobKind.TRAIN)) == 2

        # Redis is back, empty.
        redis.start()
        with redis.client() as client:
            until(lambda: len(Worker.all(connection=client)) == 3, "the lanes to listen again", 30)
        labelling.label(OPEN_TASKS + FIRST + LATER, LATER)
        polyvox.wait_for_version(project, "r3")
        until(lambda: polyvox.store.votes.counts(key).total == 2 * (FIRST + 2 * LATER), "all votes")
        assert machine.running
    log = (tmp_path / "worker.log").read_text()
    assert "Redis is away" in log and "Redis is back" in log and "Traceback" not in log
    assert OWNER.token not in log and redis.url not in log
    assert not any(message.text in log for message in load()[:5])
