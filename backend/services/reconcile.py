"""Compares a project with Label Studio, since webhooks are lost, imports send none, and nobody announces deletions.

A walk reads the tasks whose `updated_at` is not older than the cursor, in the order of (updated_at, id), page by page;
the cursor is stored after each page, so a walk that was stopped goes on where it was. It begins `OVERLAP` before the
cursor: Label Studio stamps a task when a transaction begins to write it and shows it when the transaction ends, and an
import of thousands of annotated tasks takes a minute. Tasks read twice are equal to what is stored and change nothing;
so are those whose `updated_at` only our own predictions moved. Once a run began `SETTLED` after the cursor, nothing
stamped before it can still turn up, and the overlap is left out: a big import is not read again and again.

A sweep, now and then, compares all ids: what is gone is removed, what was missed is marked to be read. It removes only
what a complete walk did not see; where that is more than `FEW_GONE` of the tasks, some of them are asked for by their
ids first, and nothing is removed if one is still there.

What Label Studio stored and did not stamp, no walk sees; every task is read again for that, by jobs of their own, which
are asked for here (`rereading`). A walk that began without a cursor and came to its end has read every task, too.

Predictions that Label Studio keeps from before Polyvox' database was lost have numbers, too; new versions begin above.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import JobFailed, LabelStudioError
from backend.instants import Instants
from backend.ports import Clock, LabelStudio, Progress, Store
from backend.prediction_names import parse
from backend.records import Project, SyncState
from backend.services.reading import Reader, failed
from backend.services.rereading import Rereading
from backend.services.webhooks import Webhooks
from backend.settings import Settings

logger = logging.getLogger(__name__)

OVERLAP = timedelta(seconds=120)
SETTLED = OVERLAP + timedelta(minutes=8)  # by as much may our clock differ from Label Studio's
MOST_RESERVED = 10**8  # anybody may store a prediction under any name; numbers of ours must stay within nine digits
FEW_GONE, ALWAYS_FEW = 0.05, 20  # share of the known tasks, and so many in any case
ASKED_AGAIN = 500  # of the tasks that seem to be gone, evenly spread
CUT_SHORT = ("Look for a proxy that cuts or keeps its answers, and whether the owner of LABEL_STUDIO_API_KEY still "
             "sees all tasks.")
PAGE = 200  # tasks with all their annotations in memory at a time


@dataclass(kw_only=True)
class Figures:
    """What a run did."""

    read: int = 0  # tasks that came in
    tasks: int = 0  # of these, new ones and ones that are newer than what was stored
    changed_votes: int = 0
    unreadable: int = 0
    removed: int = 0
    missed: int = 0  # found by the sweep only
    swept: bool = False
    reread: bool = False  # a job was asked for that reads every task again


class Reconciler:
    """Catches up with Label Studio; one project at a time."""

    def __init__(
        self, *, store: Store, label_studio: LabelStudio, settings: Settings, clock: Clock, page_size: int = PAGE
    ) -> None:
        self._store = store
        self._label_studio = label_studio
        self._settings = settings
        self._clock = clock
        self._instants = Instants(clock)
        self._page_size = page_size
        self._reader = Reader(store=store, label_studio=label_studio, settings=settings)
        self._webhooks = Webhooks(store=store, label_studio=label_studio, settings=settings, clock=clock)
        self._rereading = Rereading(store=store, label_studio=label_studio, reader=self._reader, clock=clock)

    def run(self, key: str, progress: Progress) -> dict[str, Any]:
        """Walk, and sweep when it is time. Raises JobFailed; what was read until then is kept."""
        project = self._reader.known(key)
        figures, began = Figures(), self._clock()
        try:
            project, raw = self._reader.refresh(project)
            self._reserve_numbers(project)
            self._learn_names(key)
            self._webhooks.settle(project)
            whole = self._store.projects.sync_state(key).cursor_time is None
            self._walk(project, _count(raw), figures, progress)
            state = self._store.projects.sync_state(key)
            if self._sweep_is_due(state):
                progress(0.95, "comparing task ids")
                self._sweep(project, _count(raw), figures)
            if whole and state.last_reread is None:
                self._store.projects.set_reread(key, last=began)
            else:
                figures.reread = self._rereading.ask(key, state, began)
        except (LabelStudioError, JobFailed) as error:
            raise failed(self._store, key, error) from error
        # The state is as of the beginning: what changed since then may have been passed already.
        swept = began if figures.swept else state.last_sweep
        self._store.projects.set_sync_state(
            key, replace(state, last_sweep=swept, last_success=began, last_error="", failures=0)
        )
        return vars(figures)

    def reread(self, key: str, progress: Progress) -> dict[str, Any]:
        """Read a piece of all tasks again (see `rereading`). Raises JobFailed; what was read until then is kept."""
        return self._rereading.piece(key, progress)

    def _walk(self, project: Project, expected: int, figures: Figures, progress: Progress) -> None:
        config, state = self._reader.config(project), self._store.projects.sync_state(project.key)
        began = self._clock()
        since = _since(state, began)
        pages = self._label_studio.changed_tasks(project.label_studio_id, since, page_size=self._page_size)
        if since is None:
            state = replace(state, cursor_time=None, cursor_id=0)
        for page in pages:
            now = self._reader.known(project.key)
            if now.label_config != project.label_config:  # a walk takes minutes; events go on meanwhile
                project, config = now, self._reader.config(now)
            taken = self._reader.take_page(project, config, page)
            figures.read += len(page)
            figures.tasks += taken.news
            figures.changed_votes += taken.changed_votes
            figures.unreadable += taken.unreadable
            position = _position(page[-1])
            if position[0] > began:
                position = (began, 0)  # stamped by a clock that was ahead: it must hide nothing that comes
            if state.cursor_time is None or position > (state.cursor_time, state.cursor_id):
                state = replace(state, cursor_time=position[0], cursor_id=position[1])
                self._store.projects.set_sync_state(project.key, state)
            progress(0.9 * min(1.0, figures.read / max(expected, 1)), f"read {figures.read} tasks")

    def _sweep_is_due(self, state: SyncState) -> bool:
        if state.last_sweep is None or (state.sweep_wanted is not None and state.sweep_wanted >= state.last_sweep):
            return True
        return self._instants.since_s(state.last_sweep) >= self._settings.sweep_every_s

    def _sweep(self, project: Project, expected: int, figures: Figures) -> None:
        # Known ids are read first, so that a task that comes in meanwhile cannot look deleted.
        known = self._store.tasks.ids(project.key)
        pages = [np.array(page, np.int64) for page in self._label_studio.task_ids(project.label_studio_id)]
        present = np.concatenate(pages) if pages else np.zeros(0, np.int64)
        if len(present) == 0 and len(known) and expected:
            raise LabelStudioError(f"Label Studio lists no task of a project that has some. {CUT_SHORT}", retry=True)
        gone = np.setdiff1d(known, present)
        missed = np.setdiff1d(present, known)
        self._look_again(project, gone, len(known))
        figures.removed = self._store.tasks.remove(project.key, gone.tolist()) if len(gone) else 0
        if len(missed):
            self._store.tasks.mark_dirty(project.key, missed.tolist())
        figures.missed = len(missed)
        figures.swept = True

    def _look_again(self, project: Project, gone: NDArray[np.int64], known: int) -> None:
        """Raises LabelStudioError when tasks that a list left out are there after all."""
        if len(gone) <= max(ALWAYS_FEW, FEW_GONE * known):
            return
        some = gone[np.linspace(0, len(gone) - 1, min(len(gone), ASKED_AGAIN)).astype(np.intp)]
        there = self._label_studio.tasks_by_id(project.label_studio_id, some.tolist())
        if there:
            raise LabelStudioError(
                f"Label Studio's list of tasks leaves out {len(gone)} of {known} known tasks, although some of them "
                f"are there; nothing was removed. {CUT_SHORT}", retry=True,
            )

    def _reserve_numbers(self, project: Project) -> None:
        """A version that is called like one of an earlier life would count as delivered, and higher ones would stay."""
        try:
            there = self._label_studio.prediction_versions(project.label_studio_id)
        except LabelStudioError as error:
            if error.http_status != 403:
                raise
            logger.info("the token may not list prediction versions, so nothing can be delivered either")
            return
        numbers = [name.number for name in map(parse, there) if name is not None and name.number < MOST_RESERVED]
        self._store.versions.reserve(project.key, max(numbers, default=0))

    def _learn_names(self, key: str) -> None:
        try:
            names = self._label_studio.users()
        except LabelStudioError as error:
            if error.http_status != 403:
                raise
            logger.info("the token may not list the annotators, so they are shown by their ids")
            return
        self._store.votes.set_names(key, names)


def _since(state: SyncState, now: datetime) -> datetime | None:
    """Where a walk begins; None for the very first, and where the cursor lies ahead: Label Studio's clock was set back
    since, nobody knows when, and stamps what is new below the cursor."""
    if state.cursor_time is None or state.cursor_time - now > SETTLED:
        return None
    settled = state.last_success is not None and state.last_success - state.cursor_time >= SETTLED
    return state.cursor_time if settled else state.cursor_time - OVERLAP


def _position(task: Mapping[str, Any]) -> tuple[datetime, int]:
    return datetime.fromisoformat(task["updated_at"]), task["id"]


def _count(raw: Mapping[str, Any]) -> int:
    number = raw.get("task_number")
    return number if isinstance(number, int) else 0
