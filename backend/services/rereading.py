"""Reads every task of a project again, for what Label Studio stored and never told.

Label Studio stores an annotation first and stamps its task in a second transaction. Where it is killed in between, or
its database is locked, the task keeps its old `updated_at` and no walk sees the annotation. So after an outage, once a
day, and where no walk ever read a project whole, every known task is read by its id.

Invariants
- A job reads a piece and hands over, with a pause as long as the piece took; every other job of the lane that reads
  whole projects goes first, so none waits behind more than one piece, and nobody's new votes wait at all.
- How far it came is stored after each batch; what was stopped or failed goes on there, and nothing begins before the
  unfinished one has ended. What Label Studio failed at meanwhile has all of them read once more.
- Rereads begin at most so often that Label Studio is asked for `REREAD_RATE` tasks a second on the average, of all
  projects together.
- Nothing is removed: a task that is gone is the sweep's business, which tells an empty answer from a deletion.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Any

from backend.errors import JobFailed, LabelStudioError
from backend.instants import Instants
from backend.ports import Clock, LabelStudio, Progress, Store
from backend.records import JobKind, SyncState
from backend.services.reading import Reader, failed, recovered

log = logging.getLogger(__name__)

REREAD_EVERY = timedelta(days=1)
REREAD_RATE = 20.0  # tasks a second
PIECE_S = 10.0  # as long may a statistic or the comparison of another project wait
LONGEST_PAUSE_S = 60.0  # whatever a piece waited for
BATCH = 100  # tasks that are fetched, decoded and written at a time


class Rereading:
    """All projects of one Label Studio."""

    def __init__(self, *, store: Store, label_studio: LabelStudio, reader: Reader, clock: Clock) -> None:
        self._store = store
        self._label_studio = label_studio
        self._reader = reader
        self._clock = clock
        self._instants = Instants(clock)

    def ask(self, key: str, state: SyncState, now: datetime) -> bool:
        """Queue the first piece when it is time, or the next one of what was left unfinished; whether it was."""
        if self._store.jobs.pending(key, JobKind.REREAD) is not None or not self._is_due(state, now):
            return False
        self._store.jobs.enqueue(JobKind.REREAD, key)
        return True

    def piece(self, key: str, progress: Progress) -> dict[str, Any]:
        """Read on for `PIECE_S`. Figures: `read`, `changed_votes`, `unreadable`, and what is `left` with a `pause_s`.

        Raises JobFailed; what was read until then is kept.
        """
        started = time.monotonic()
        totals = {"read": 0, "changed_votes": 0, "unreadable": 0}
        try:
            self._reader.refresh(self._reader.known(key))  # another project under this id must not be read as this one
            state = self._store.projects.sync_state(key)
            begun = state.reread_begun or self._clock()
            ids = self._store.tasks.ids(key)
            left = ids[ids > (state.reread_after if state.reread_begun else 0)].tolist()
            while left:
                self._store.projects.set_reread(key, last=state.last_reread, begun=begun, after=left[0] - 1)
                progress(1.0 - len(left) / len(ids), f"read {len(ids) - len(left)} of {len(ids)} tasks again")
                if totals["read"] + totals["unreadable"] and time.monotonic() - started > PIECE_S:
                    break
                batch, left = left[:BATCH], left[BATCH:]
                self._batch(key, batch, totals)
            else:
                self._store.projects.set_reread(key, last=begun)
        except (LabelStudioError, JobFailed) as error:
            raise failed(self._store, key, error) from error
        recovered(self._store, key)
        return {**totals, "left": len(left), "pause_s": min(round(time.monotonic() - started, 1), LONGEST_PAUSE_S)}

    def _batch(self, key: str, ids: list[int], totals: dict[str, int]) -> None:
        """Halved where Label Studio is well and fails at it, so that one task keeps no other from being read."""
        project = self._reader.known(key)  # events go on meanwhile, and may bring another configuration
        try:
            raw = self._label_studio.tasks_by_id(project.label_studio_id, ids)
        except LabelStudioError as error:
            if not error.retry:
                raise
            self._reader.refresh(project)  # raises where Label Studio is away
            if len(ids) == 1:
                log.warning("Label Studio fails at task %d of project %s; it is left out: %s", ids[0], key, error)
                totals["unreadable"] += 1
                return
            for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
                self._batch(key, half, totals)
            return
        taken = self._reader.take_page(project, self._reader.config(project), list(raw.values()))
        totals["read"] += len(ids)
        totals["changed_votes"] += taken.changed_votes
        totals["unreadable"] += taken.unreadable

    def _is_due(self, state: SyncState, now: datetime) -> bool:
        if state.reread_begun is not None or state.last_reread is None:
            return True
        passed = now - self._instants.past(state.last_reread, now)
        wanted = state.reread_wanted is not None and state.reread_wanted >= state.last_reread
        if not wanted and passed < REREAD_EVERY:
            return False
        tasks = sum(self._store.tasks.count(project.key) for project in self._store.projects.all())
        return passed >= timedelta(seconds=tasks / REREAD_RATE)
