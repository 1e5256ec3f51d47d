"""How long the current thread may wait for the database: a web request never waits longer than its caller does.

Job processes wait as long as the engine's own limit. `patience` sets a shorter one, in total, for all transactions that
are begun inside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

AWAY = (OperationalError, InterfaceError, PoolTimeout)  # what a database raises that is locked, full or gone
LEAST_MS = 10  # also when the time is up: a free database answers at once
_UNTIL: ContextVar[float | None] = ContextVar("polyvox_patience", default=None)


@contextmanager
def patience(seconds: float, *, anew: bool = False) -> Iterator[None]:
    """Inside, waits for locks end after `seconds` in total; an outer limit that is shorter stays, unless it is to begin
    `anew`."""
    until, outer = time.monotonic() + seconds, _UNTIL.get()
    token = _UNTIL.set(until if outer is None or anew else min(until, outer))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def left_ms(otherwise: int) -> int:
    """Milliseconds that a transaction which begins now may wait."""
    until = _UNTIL.get()
    return otherwise if until is None else max(LEAST_MS, min(otherwise, round((until - time.monotonic()) * 1000)))


def why(error: Exception) -> str:
    """The state of a database that raised one of `AWAY`, for the middle of a sentence."""
    text = str(getattr(error, "orig", None) or error).lower()
    if "locked" in text or "busy" in text or "lock timeout" in text or isinstance(error, PoolTimeout):
        return "is locked by another program"
    if "full" in text or "i/o error" in text or "no space" in text:
        return "cannot be written, since its disk is full or fails"
    if "readonly" in text or "read-only" in text:
        return "may not be written"
    return "cannot be reached"
