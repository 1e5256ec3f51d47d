"""Notices that the wall clock was set, puts stored instants right, and says so for a while.

Each job process compares the wall clock with the monotonic one at every tick. What happened while none ran shows when
one starts: stamps that lie ahead of the clock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from backend.instants import CLOCKS_DIFFER_S, Drift
from backend.ports import Clock, Store
from backend.records import Notice

logger = logging.getLogger(__name__)

NOTICE = "clock"
TELL_FOR = timedelta(hours=1)
CURE = "Nothing is lost; if it happens again, have this machine's clock kept by a time service (NTP)."


class ClockWatch:
    """One per job process."""

    def __init__(self, *, store: Store, clock: Clock, seconds: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._drift = Drift(clock, seconds=seconds)
        self._jump_s = 0.0  # noticed, and not yet dealt with: the database may be away
        self._begun = False

    def look(self) -> None:
        """Deal with a jump, if there was one since the last look. Reads the database at the first look only."""
        self._jump_s += self._drift.look()
        if not self._begun:
            ahead_s = self._store.stamps.ahead_s(by_s=CLOCKS_DIFFER_S)
            if ahead_s:
                self._mend(f"The clock of this machine was set back while Polyvox was off, by {length(ahead_s)} or "
                           "more: what was stored lay ahead of it.", by_s=CLOCKS_DIFFER_S, shift_s=0.0)
            self._begun = True
        if self._jump_s:
            where = "forward (or the machine slept)" if self._jump_s > 0 else "back"
            self._mend(f"The clock of this machine was set {where} by {length(abs(self._jump_s))}.", by_s=0.0,
                       shift_s=min(self._jump_s, 0.0))
            self._jump_s = 0.0

    def _mend(self, sentence: str, *, by_s: float, shift_s: float) -> None:
        logger.warning("%s", sentence)
        if self._store.stamps.ahead_s(by_s=by_s):
            self._store.stamps.put_right(by_s=by_s, shift_s=shift_s)
        self._store.stamps.note(NOTICE, f"{sentence} {CURE}")


def told(notices: Sequence[Notice], now: datetime) -> list[str]:
    """The sentences that are still to be shown."""
    return [each.sentence for each in notices if abs(now - each.noticed_at) < TELL_FOR]


def length(seconds: float) -> str:
    """"3 hours"; rounded down."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a second"
