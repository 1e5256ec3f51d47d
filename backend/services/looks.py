"""Comparisons with Label Studio that a request gives reason for: asked for at once, and then at a bounded rate.

Whoever can send a request can claim that a project changed. A claim is never believed, Label Studio is asked; and since
that costs Label Studio a request or more, claims of one project within `EVERY_S` seconds lead to one look at their end.

Invariants: no claim is lost (a look begins after it); waits are measured on a monotonic clock, each process by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from backend.ports import Clock, JobStore
from backend.records import JobKind, JobState

EVERY_S = 10.0  # a project whose webhooks carry no payload is compared this often while people label
REMEMBERED = 1000  # projects, before those are looked for that may be forgotten


class Looks:
    """Queues comparisons. Safe for threads. Anybody may invent projects: of those that were not asked for of late
    nothing is remembered."""

    def __init__(self, jobs: JobStore, clock: Clock, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}  # project -> when its latest look may begin
        self._most = REMEMBERED

    def ask(self, project: str) -> None:
        """Have a project compared, soon; nothing is written when a look waits already."""
        now = self._seconds()
        with self._lock:
            due = self._due.get(project)
            waits = due is not None and due > now
            due = now if due is None else due if waits else max(now, due + EVERY_S)
            self._due[project] = due
            self._forget(now)
        if waits and self._is_queued(project):
            return
        not_before = None if due <= now else self._clock() + timedelta(seconds=due - now)
        self._jobs.enqueue(JobKind.RECONCILE, project, not_before=not_before)

    def _forget(self, now: float) -> None:
        """Those that would be looked at at once, as if nothing was known of them."""
        if len(self._due) > self._most:
            self._due = {project: due for project, due in self._due.items() if due + EVERY_S > now}
            self._most = max(REMEMBERED, 2 * len(self._due))

    def _is_queued(self, project: str) -> bool:
        """Somebody else may have had it run earlier, before what is claimed now."""
        pending = self._jobs.pending(project, JobKind.RECONCILE)
        return pending is not None and pending.state is JobState.QUEUED
