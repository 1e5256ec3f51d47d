"""What runs side by side in a job process, and what every job process does at its start and end.

Three lanes, so that an annotator's new votes never wait: `sync` (the tasks that webhooks named), `read` (whole
projects: the first time takes minutes; when every task is read again, that goes in pieces) and `heavy` (torch). The
process is nice to the web process: `os.nice(10)` and a limit on torch's threads.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from backend.errors import PolyvoxError
from backend.records import JobKind

logger = logging.getLogger(__name__)

LANES: Mapping[str, Sequence[JobKind]] = {
    "sync": (JobKind.SYNC,),
    "read": (JobKind.RECONCILE, JobKind.REREAD, JobKind.STATISTICS),
    "heavy": (JobKind.TRAIN, JobKind.DELIVER, JobKind.ENCODE, JobKind.GAPS),
}
TICK_S = 0.5
TICK_SHARE = 20.0  # ticking takes at most one part in so many of a processor, however many projects there are
LONGEST_TICK_WAIT_S = 30.0  # and is never further apart than this
OUTAGE_S = 5.0  # wait before asking a failing database again
GRACE_S = 10.0
NICENESS = 10


class TickPace:
    """How long to wait until the next tick, from the processor time that the last ones took.

    Time spent waiting (for a lock of the database, say) does not count: a tick that waited a minute would otherwise
    be followed by twenty minutes without any.
    """

    def __init__(self, tick_s: float, *, spent: Callable[[], float] = time.thread_time) -> None:
        """`spent`: seconds of the processor that this thread has used."""
        self._tick_s = tick_s
        self._spent = spent
        self.wait_s = 0.0

    @contextmanager
    def tick(self) -> Iterator[None]:
        """Around one tick, however it ends."""
        begun = self._spent()
        try:
            yield
        finally:
            self.wait_s = min(max(self._tick_s, TICK_SHARE * (self._spent() - begun)), LONGEST_TICK_WAIT_S)


class Stoppable(Protocol):
    """A job process."""

    def stop(self) -> None:
        """Ask it to end; safe from any thread and from a signal handler, returns at once."""


class LaneThreads:
    """A thread per lane. One that dies of a mistake sets `stop`: half a job process must not be left behind."""

    def __init__(self, run: Callable[[str, Sequence[JobKind]], None], stop: threading.Event) -> None:
        self._run = run
        self._stop = stop
        self._crash: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guard, args=(name, kinds), name=f"lane-{name}", daemon=True)
            for name, kinds in LANES.items()
        ]

    def start(self) -> None:
        """Begin all lanes."""
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for all; False when one is still busy then. Raises what a lane died of, if one did."""
        until = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        if self._crash is not None:
            raise self._crash
        return not any(thread.is_alive() for thread in self._threads)

    def _guard(self, name: str, kinds: Sequence[JobKind]) -> None:
        try:
            self._run(name, kinds)
        except BaseException as error:
            self._crash = error
            self._stop.set()


class Outage:
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


def stop_on_signals(worker: Stoppable) -> None:
    """SIGTERM and SIGINT end the worker in order; a second one ends the process at once."""

    def handle(number: int, _: FrameType | None) -> None:
        worker.stop()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def stop_with_parent(worker: Stoppable, descriptor: int, *, grace_s: float = 2 * GRACE_S) -> None:
    """End the worker when the other end of the pipe `descriptor` closes, which happens however the parent dies."""

    def watch() -> None:
        while os.read(descriptor, 1024):
            pass
        logger.info("the web process is gone; the job process ends")
        worker.stop()
        time.sleep(grace_s)
        os._exit(1)  # something holds the interpreter up, and nobody is left to kill it

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
