"""Large request bodies, a few at a time: whatever many clients send at once, what is made of it in memory is bounded.

A body has arrived whole before anything here sees it, and lies on disk. One after another is brought into memory and
its cost told; it is parsed as soon as that fits beside the others, and counts until its request has been answered.
Small ones are never counted and never wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from backend.errors import Busy
from backend.json_cost import DEAREST, cost_of

SMALL = 16 * 2**20 // DEAREST  # bytes of a body that cannot take more than 16 MB of memory
WAIT_S = 2.0  # a thread waits with it


class LargeBodies:
    """Those of one process. Safe for threads."""

    def __init__(self, most: int, *, wait_s: float = WAIT_S) -> None:
        """`most` bytes of memory for all of them, beside the one that is being brought into memory."""
        self._most = most
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._reading = False
        self._taken = 0

    def read(self, read: Callable[[], bytes]) -> tuple[bytes, Callable[[], None]]:
        """The body, and what to call when nothing that was made of it is needed any more. Raises Busy."""
        until = time.monotonic() + self._wait_s
        with self._changed:
            self._wait(until, lambda: not self._reading)
            self._reading = True
        try:
            raw = read()
            cost = cost_of(raw)
            cost = cost if cost <= self._most else len(raw)  # too dear ones are refused unparsed
            with self._changed:
                self._wait(until, lambda: self._taken + cost <= self._most)
                self._taken += cost
        finally:
            with self._changed:
                self._reading = False
                self._changed.notify_all()
        return raw, lambda: self._release(cost)

    def _wait(self, until: float, fits: Callable[[], bool]) -> None:
        if not self._changed.wait_for(fits, max(0.0, until - time.monotonic())):
            raise Busy("Other large requests take all the room; try again in a moment, or send fewer tasks at a time.")

    def _release(self, cost: int) -> None:
        with self._changed:
            self._taken -= cost
            self._changed.notify_all()
