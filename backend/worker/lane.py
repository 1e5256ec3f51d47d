"""The process of one lane: runs the jobs whose ids come in on a pipe. See `backend.queues.lane_process` for its parent.

Each id is claimed in the database first, so one that somebody else has, that is done or not due yet costs nothing but
the look. It talks to no Redis: whatever becomes of that, a running job goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time

from backend.bootstrap import Services
from backend.jobs import run_job
from backend.worker.lanes import GRACE_S, LANES, OUTAGE_S, Outage

logger = logging.getLogger(__name__)

LOOK_S = 0.5  # how soon a wish to stop is noticed while nothing runs


class LaneServer:
    """One lane of one job machine. `run` blocks until the parent closes the pipe or `stop` is called."""

    def __init__(
        self, services: Services, lane: str, *, name: str, requests: int, answers: int, grace_s: float = 2 * GRACE_S
    ) -> None:
        """`requests` and `answers` are file descriptors; jobs are claimed as "<name>:<lane>"."""
        self._services = services
        self._lane = lane
        self._owner = f"{name}:{lane}"
        self._requests = requests
        self._answers = answers
        self._grace_s = grace_s
        self._stop = threading.Event()
        self._inbox: queue.SimpleQueue[str] = queue.SimpleQueue()

    def stop(self) -> None:
        """Give back the running job at its next progress call, then end."""
        self._stop.set()

    def run(self) -> None:
        """Serve until stopped."""
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        while not self._stop.is_set():
            with contextlib.suppress(queue.Empty):
                self._serve(self._inbox.get(timeout=LOOK_S))

    def _serve(self, job_id: str) -> None:
        outage = Outage("running a job")
        with outage:
            jobs, lease_s = self._services.store.jobs, self._services.settings.job_lease_s
            job = jobs.claim(self._owner, lease_s=lease_s, kinds=LANES[self._lane], job_id=job_id)
            if job is not None:
                run_job(self._services, job, owner=self._owner, stop=self._stop)
        if outage.happened:
            self._stop.wait(OUTAGE_S)
        with contextlib.suppress(BrokenPipeError):  # the parent died; the closed input says so too
            os.write(self._answers, b"no\n" if outage.happened else b"ok\n")

    def _read(self) -> None:
        with os.fdopen(self._requests, "rb", buffering=0, closefd=False) as lines:
            for line in lines:
                self._inbox.put(line.decode("ascii", "replace").strip())
        self.stop()
        time.sleep(self._grace_s)
        os._exit(1)  # a long step holds the interpreter up, and the parent may not be there to kill it
