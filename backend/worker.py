"""The job process: claims jobs and runs them, and queues what is due.

Three lanes, so that an annotator's new votes never wait: `sync` (the tasks that webhooks named), `read` (whole
projects; the first time takes minutes) and `heavy` (torch). The main thread looks at the triggers and at the wish to
stop. The process is nice to the web process: `os.nice(10)` and a limit on torch's threads.

It ends on SIGTERM or SIGINT, and when embedded also as soon as its web process is gone. A job that is running then
goes back to the queue at its next progress call; one that makes none within the grace time is taken over when its lease
ends.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from types import FrameType

from sqlalchemy.exc import SQLAlchemyError

from backend.bootstrap import Services
from backend.errors import PolyvoxError
from backend.jobs import run_job
from backend.queues.base import JobQueue
from backend.records import JobKind

logger = logging.getLogger(__name__)

LANES: dict[str, Sequence[JobKind]] = {
    "sync": (JobKind.SYNC,),
    "read": (JobKind.RECONCILE,),
    "heavy": (JobKind.TRAIN, JobKind.DELIVER, JobKind.ENCODE),
}
TICK_S = 0.5
TICK_SHARE = 20.0  # ticking takes at most one part in so many of the time, however many projects there are
TAKE_S = 1.0  # longest single wait for a job: how often a lane comes by to see the stop flag
OUTAGE_S = 5.0  # wait before asking a failing database again
GRACE_S = 10.0
NICENESS = 10


class Worker:
    """The loops of one job process. `run` blocks until `stop` is called."""

    def __init__(
        self, services: Services, queue: JobQueue, *, tick_s: float = TICK_S, grace_s: float = GRACE_S
    ) -> None:
        self._services = services
        self._queue = queue
        self._tick_s = tick_s
        self._grace_s = grace_s
        self._stop = threading.Event()
        self._crash: BaseException | None = None

    def stop(self) -> None:
        """Ask the loops to end; safe from any thread and from a signal handler, returns at once."""
        self._stop.set()

    def run(self) -> bool:
        """Work until stopped. False when a lane is still inside a long step after the grace time.

        Raises what a lane died of, if one did.
        """
        lanes = [
            threading.Thread(target=self._guard, args=(name, kinds), name=f"lane-{name}", daemon=True)
            for name, kinds in LANES.items()
        ]
        for lane in lanes:
            lane.start()
        self._tick_until_stopped()
        self._queue.ring()
        until = time.monotonic() + self._grace_s
        for lane in lanes:
            lane.join(max(until - time.monotonic(), 0.0))
        if self._crash is not None:
            raise self._crash
        return not any(lane.is_alive() for lane in lanes)

    def _tick_until_stopped(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            begun = time.monotonic()
            with _Outage("looking for work"):
                if self._services.triggers.tick():
                    self._queue.ring()
            wait_s = max(self._tick_s, TICK_SHARE * (time.monotonic() - begun))

    def _guard(self, name: str, kinds: Sequence[JobKind]) -> None:
        """A lane that dies of a mistake must not leave half a job process behind: all of it ends and is restarted."""
        try:
            self._lane(name, kinds)
        except BaseException as error:
            self._crash = error
            self._stop.set()

    def _lane(self, name: str, kinds: Sequence[JobKind]) -> None:
        owner = f"{socket.gethostname()}:{os.getpid()}:{name}"
        while not self._stop.is_set():
            outage = _Outage("taking a job")
            with outage:
                job = self._queue.take(owner, kinds, wait_s=TAKE_S)
                if job is not None:
                    run_job(self._services, job, owner=owner, stop=self._stop)
                    self._queue.ring()  # it may have queued a follow-up for the other lane
            if outage.happened:
                self._stop.wait(OUTAGE_S)


class _Outage:
    """Context that survives a database that is away for a while: says so in the log, without the statement's data."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self.happened = False

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        self.happened = isinstance(error, SQLAlchemyError | PolyvoxError)
        if self.happened:
            logger.error("%s failed (%s); trying again", self._doing, type(error).__name__)
        return self.happened


def be_nice(threads: int) -> None:
    """Lower this process's priority and limit its computing threads; call before torch is imported."""
    os.nice(NICENESS)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def stop_on_signals(worker: Worker) -> None:
    """SIGTERM and SIGINT end the worker in order; a second one ends the process at once."""

    def handle(number: int, _: FrameType | None) -> None:
        worker.stop()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def stop_with_parent(worker: Worker, descriptor: int, *, grace_s: float = 2 * GRACE_S) -> None:
    """End the worker when the other end of the pipe `descriptor` closes, which happens however the parent dies."""

    def watch() -> None:
        while os.read(descriptor, 1024):
            pass
        logger.info("the web process is gone; the job process ends")
        worker.stop()
        time.sleep(grace_s)
        os._exit(1)  # something holds the interpreter up, and nobody is left to kill it

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
