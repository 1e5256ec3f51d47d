"""Stored instants and a wall clock that may be set: how long ago something was, and whether the clock jumped.

Waits within a process are measured on the monotonic clock. What must outlive the process is stored as an instant of the
wall clock, which somebody may set a day forward and back, and which differs a little between machines. The rule for
such instants: one that lies ahead counts as having been when this process first saw it. So no wait is ever longer than
it says, and none is skipped again and again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

JUMP_S = 10.0  # by less the wall clock is corrected now and then, and nobody needs to hear of it
CLOCKS_DIFFER_S = 120.0  # as far may the clocks of two machines be apart
REMEMBERED = 1000  # instants ahead
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Instants:
    """Reads stored instants by the rule above. Safe for threads."""

    def __init__(self, clock: Callable[[], datetime], *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._ahead: OrderedDict[datetime, float] = OrderedDict()  # instant -> when it was first seen

    def past(self, moment: datetime, now: datetime | None = None) -> datetime:
        """The moment, or, when it lies ahead, as long before now as it has been known here. Never after now."""
        now = self._clock() if now is None else now
        if moment <= now:
            return moment
        with self._lock:
            seen = self._ahead.setdefault(moment, self._seconds())
            while len(self._ahead) > REMEMBERED:
                self._ahead.popitem(last=False)
        return now - timedelta(seconds=self._seconds() - seen)

    def since_s(self, moment: datetime) -> float:
        """Seconds since a moment; at least 0."""
        now = self._clock()
        return (now - self.past(moment, now)).total_seconds()


class Drift:
    """Compares the wall clock with the monotonic one. Safe for threads; each `look` tells of a jump once."""

    def __init__(self, clock: Callable[[], datetime], *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._offset: float | None = None

    def look(self) -> float:
        """By how many seconds the wall clock was set since the last look: forward is positive; 0 below `JUMP_S`, and at
        the first look.

        Small steps are not lost: they add up until they make a jump.
        """
        with self._lock:
            offset = self._now()
            moved = 0.0 if self._offset is None else offset - self._offset
            if self._offset is not None and abs(moved) < JUMP_S:
                return 0.0
            self._offset = offset
            return moved

    def _now(self) -> float:
        return (self._clock() - EPOCH).total_seconds() - self._seconds()
