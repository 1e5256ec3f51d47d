"""Requests of a moment are computed together: what waits while one computation runs shares the next one.

Nobody waits for company: whoever finds a lane free computes at once, with all that waits there and fits. So one request
after another is as fast as ever, and many at once cost one forward instead of many. Work of different lanes (versions)
never waits for each other.

Invariants: first come, first served; whoever has waited too long leaves, unless their work is being done; where work
that was put together fails, each is done again alone, so that an error stays with whose it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Work = TypeVar("Work")
Result = TypeVar("Result")


class WaitedTooLong(Exception):
    """The work was not begun in time."""


@dataclass(eq=False)
class _Waiting(Generic[Work, Result]):
    work: Work
    taken: bool = False
    results: list[Result] = field(default_factory=list)  # one, once done
    error: BaseException | None = None

    @property
    def done(self) -> bool:
        return bool(self.results) or self.error is not None


@dataclass(eq=False)
class _Lane(Generic[Work, Result]):
    waiting: list[_Waiting[Work, Result]] = field(default_factory=list)
    busy: bool = False


class Together(Generic[Work, Result]):
    """Safe for threads, in which the work is done: there are no others."""

    def __init__(
        self, compute: Callable[[Sequence[Work]], Sequence[Result]], *, fits: Callable[[Sequence[Work], Work], bool],
    ) -> None:
        """`compute` gives a result for each work; `fits` says whether work may join some that is to be done."""
        self._compute, self._fits = compute, fits
        self._turn = threading.Condition()
        self._lanes: dict[Hashable, _Lane[Work, Result]] = {}

    def do(self, lane: Hashable, work: Work, *, seconds: float) -> Result:
        """The result for this work. Raises WaitedTooLong when it was not begun within `seconds`, else what
        computing it raises."""
        mine: _Waiting[Work, Result] = _Waiting(work)
        with self._turn:
            here = self._lanes.setdefault(lane, _Lane())
            here.waiting.append(mine)
            try:
                batch = self._wait(here, mine, seconds)
            finally:
                if mine in here.waiting:
                    here.waiting.remove(mine)
                    self._turn.notify_all()  # somebody else may be the first now
                self._tidy(lane)
        if batch:
            self._run(lane, here, batch)
        if mine.error is not None:
            raise mine.error
        return mine.results[0]

    def _wait(
        self, here: _Lane[Work, Result], mine: _Waiting[Work, Result], seconds: float
    ) -> list[_Waiting[Work, Result]]:
        """What to compute, beginning with `mine`; nothing where another thread has done it."""
        self._turn.wait_for(lambda: mine.taken or (not here.busy and here.waiting[0] is mine), max(seconds, 0.0))
        if mine.taken:  # it is being computed, which ends
            self._turn.wait_for(lambda: mine.done)
            return []
        if here.busy or here.waiting[0] is not mine:
            raise WaitedTooLong
        batch = [mine]
        for other in here.waiting[1:]:
            if self._fits([each.work for each in batch], other.work):
                batch.append(other)
        for each in batch:
            each.taken = True
            here.waiting.remove(each)
        here.busy = True
        return batch

    def _run(self, lane: Hashable, here: _Lane[Work, Result], batch: list[_Waiting[Work, Result]]) -> None:
        try:
            self._do(batch)
        finally:
            with self._turn:
                for each in batch:
                    if not each.done:
                        each.error = RuntimeError("the computation was broken off")
                here.busy = False
                self._tidy(lane)
                self._turn.notify_all()

    def _do(self, batch: list[_Waiting[Work, Result]]) -> None:
        try:
            results = self._compute([each.work for each in batch])
        except Exception as error:  # whatever it is goes to whose request it is
            if len(batch) == 1:
                batch[0].error = error
            else:
                for each in batch:
                    self._do([each])
            return
        for each, result in zip(batch, results, strict=True):
            each.results.append(result)

    def _tidy(self, lane: Hashable) -> None:
        """Forget a lane that nobody uses."""
        here = self._lanes.get(lane)
        if here is not None and not here.busy and not here.waiting:
            del self._lanes[lane]
