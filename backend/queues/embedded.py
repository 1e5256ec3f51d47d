"""The queue that needs nothing but the database: look into it every half second, or when rung in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from backend.ports import JobStore
from backend.records import Job, JobKind


class EmbeddedQueue:
    """Polls the job table. Satisfies `JobQueue`."""

    def __init__(self, jobs: JobStore, *, lease_s: float, poll_s: float = 0.5) -> None:
        self._jobs = jobs
        self._lease_s = lease_s
        self._poll_s = poll_s
        self._rings = 0
        self._changed = threading.Condition()

    def take(self, owner: str, kinds: Sequence[JobKind], *, wait_s: float) -> Job | None:
        """See `JobQueue.take`."""
        deadline = time.monotonic() + wait_s
        while True:
            with self._changed:
                heard = self._rings
            job = self._jobs.claim(owner, lease_s=self._lease_s, kinds=kinds)
            left_s = deadline - time.monotonic()
            if job is not None or left_s <= 0:
                return job
            with self._changed:
                # A ring between the look and this line counts too, hence the comparison.
                if self._rings == heard:
                    self._changed.wait(min(self._poll_s, left_s))

    def ring(self) -> None:
        """See `JobQueue.ring`."""
        with self._changed:
            self._rings += 1
            self._changed.notify_all()
