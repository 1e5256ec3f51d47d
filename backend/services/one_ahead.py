"""One call at a time in a thread of its own, so that the next one is prepared while another machine answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

log = logging.getLogger(__name__)


class OneAhead:
    """A context. What the calls raise is raised by `start` or `settle`, in the thread that uses it.

    After leaving it no call is under way. Left with an error, what was to come after the call is not done: whoever lost
    its job must write nothing more.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="one-ahead")
        self._under_way: tuple[Future[object], Callable[[], None]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.settle()
        finally:
            self._pool.shutdown()  # waits
            if self._under_way is not None and (other := self._under_way[0].exception()) is not None:
                # What stopped the work is what its caller must hear of.
                log.warning("a call that was under way failed as well: %s", type(other).__name__)

    @property
    def free(self) -> bool:
        """Whether a new call would begin at once."""
        return self._under_way is None or self._under_way[0].done()

    def start(self, call: Callable[[], object], then: Callable[[], None]) -> None:
        """Begin `call` when the one before is settled; `then` is done in this thread when `call` has returned."""
        self.settle()
        self._under_way = (self._pool.submit(call), then)

    def settle(self) -> None:
        """Wait for the call that is under way, and do what comes then."""
        if self._under_way is None:
            return
        (future, then), self._under_way = self._under_way, None
        future.result()
        then()
