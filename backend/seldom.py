"""A look at something outside that is taken seldom: its answer is kept for seconds, and one thread at a time looks.

Invariants: the first answer is waited for; later, one caller waits for the new answer and the others get the last one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Seldom(Generic[T]):
    """Call it for the answer. Safe for threads."""

    def __init__(self, look: Callable[[], T], *, every_s: float, seconds: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._every_s = every_s
        self._seconds = seconds
        self._one = threading.Lock()
        self._last: tuple[float, T] | None = None  # when, and what

    def __call__(self) -> T:
        """What was seen last, at most `every_s` ago unless somebody looks right now. Raises what the look raises."""
        last = self._last
        if (last is None or self._due(last)) and self._one.acquire(blocking=last is None):
            try:
                if self._last is None or self._due(self._last):
                    found = self._look()
                    self._last = self._seconds(), found
            finally:
                self._one.release()
        last = self._last
        assert last is not None
        return last[1]

    def _due(self, last: tuple[float, T]) -> bool:
        return self._seconds() - last[0] >= self._every_s
