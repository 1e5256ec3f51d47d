"""The interface of a queue: hand out due jobs, and be told that there is something new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from backend.records import Job, JobKind


class JobQueue(Protocol):
    """Several threads may take from one queue; a job is handed to exactly one taker in the world at a time."""

    def take(self, owner: str, kinds: Sequence[JobKind], *, wait_s: float) -> Job | None:
        """Claim the next due job of these kinds, waiting up to `wait_s` seconds for one; None when there was none."""

    def ring(self) -> None:
        """Something was queued: who waits looks again at once. Losing a ring costs time, never a job."""
