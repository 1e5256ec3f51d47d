"""One job process with a thread per lane, which looks into the database; the default.

The main thread looks at the triggers and at the wish to stop. It ends on SIGTERM or SIGINT, and when embedded also as
soon as its web process is gone. A job that is running then goes back to the queue at its next progress call; one that
makes none within the grace time is taken over when its lease ends, or sooner by the supervisor.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from backend.bootstrap import Services
from backend.jobs import run_job
from backend.queues.base import JobQueue
from backend.queues.children import new_name
from backend.records import JobKind
from backend.worker.lanes import GRACE_S, OUTAGE_S, TICK_S, LaneThreads, Outage, TickPace

TAKE_S = 1.0  # longest single wait for a job: how often a lane comes by to see the stop flag


class Worker:
    """The loops of one job process. `run` blocks until `stop` is called."""

    def __init__(
        self, services: Services, queue: JobQueue, *, name: str = "", tick_s: float = TICK_S, grace_s: float = GRACE_S
    ) -> None:
        """`name`: jobs are claimed as "<name>:<lane>"; one of its own when empty."""
        self._services = services
        self._queue = queue
        self._name = name or new_name()
        self._tick_s = tick_s
        self._grace_s = grace_s
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask the loops to end; safe from any thread and from a signal handler, returns at once."""
        self._stop.set()

    def run(self) -> bool:
        """Work until stopped. False when a lane is still inside a long step after the grace time.

        Raises what a lane died of, if one did.
        """
        lanes = LaneThreads(self._lane, self._stop)
        lanes.start()
        self._tick_until_stopped()
        self._queue.ring()
        return lanes.join(self._grace_s)

    def _tick_until_stopped(self) -> None:
        pace = TickPace(self._tick_s)
        while not self._stop.wait(pace.wait_s):
            with Outage("looking for work"), pace.tick():
                if self._services.triggers.tick():
                    self._queue.ring()

    def _lane(self, name: str, kinds: Sequence[JobKind]) -> None:
        owner = f"{self._name}:{name}"
        while not self._stop.is_set():
            outage = Outage("taking a job")
            with outage:
                job = self._queue.take(owner, kinds, wait_s=TAKE_S)
                if job is not None:
                    run_job(self._services, job, owner=owner, stop=self._stop)
                    self._queue.ring()  # it may have queued a follow-up for the other lane
            if outage.happened:
                self._stop.wait(OUTAGE_S)
