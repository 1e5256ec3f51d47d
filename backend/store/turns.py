"""Whose turn it is to write into a SQLite file, which takes one writer at a time.

Writers of one process queue for a lock of theirs, which passes on in the moment that it is given back. The first of
them asks SQLite, and where another process writes it looks again every few milliseconds: SQLite waits by sleeping up
to a tenth of a second, so that a webhook sleeps on while the file has long been free, and who comes later is first.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import OperationalError

_SHORTEST_S, _LONGEST_S = 0.0005, 0.004  # between two looks
_GROWTH = 1.3


class Turns:
    """The writers of one engine in one process. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def mine(self, seconds: float) -> Iterator[None]:
        """Inside, no other thread of this process writes. Raises OperationalError when that is not so in time."""
        if not self._lock.acquire(timeout=seconds):
            error = sqlite3.OperationalError("database is locked")
            raise OperationalError("BEGIN IMMEDIATE", None, error)
        try:
            yield
        finally:
            self._lock.release()


def begin(connection: sqlite3.Connection, seconds: float) -> bool:
    """Begin a transaction that may write; False when another process has not let us within `seconds`.

    The connection's own `busy_timeout` is 0. Raises what SQLite says of anything but a lock.
    """
    until, pause = time.monotonic() + seconds, _SHORTEST_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return True
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(_LONGEST_S, pause * _GROWTH)
