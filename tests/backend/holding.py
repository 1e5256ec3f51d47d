"""Another process that holds the database of SQLite locked, as a backup program or a stuck job would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = ("import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE'); "
        "print('held', flush=True); sys.stdin.read(); c.execute('ROLLBACK')")


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Inside, nobody can write."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(database)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.stdin.close()
        holder.wait(10)
        holder.stdout.close()
