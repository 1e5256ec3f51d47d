"""Where a database lies, in three facts; a copy of it differs in at least two.

SQLite: number and time of change (`st_ctime`, which no program sets) of a small file beside the database, and the id of
its file system. A copied folder has another number and another time; a volume that moves to another container, host
name or path has all three. One may change by itself: the time by `chown`, the id of some file systems when disks are
numbered anew, the number on some network shares. So two of three make the same place.

PostgreSQL: name and number of the database, and the id of its cluster. A dump that is restored has another number, and
another name or another cluster.

A copy of a whole disk differs in nothing; `services.webhook_lease` finds that one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, Engine

SUFFIX = ".place"
SAME = 2  # of three facts
_TEXT = ("By this file Polyvox knows that its database was not copied to another place. If it is lost, Polyvox asks "
         "before it delivers again.\n")


def place(engine: Engine, connection: Connection, *, make: bool) -> list[str]:
    """The three facts as text; [] where the file is missing and shall not be made."""
    if engine.dialect.name != "sqlite":
        row = connection.exec_driver_sql(
            "SELECT datname, oid, (SELECT system_identifier FROM pg_control_system()) FROM pg_database"
            " WHERE datname = current_database()"
        ).one()
        return [str(each) for each in row]
    path = Path(f"{engine.url.database}{SUFFIX}")
    if make:
        with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(_TEXT)
    if not path.exists():
        return []
    found = path.stat()
    return [str(found.st_ino), str(found.st_ctime_ns), str(os.statvfs(path).f_fsid)]


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two places are one."""
    return sum(a == b for a, b in zip(one, other, strict=False)) >= SAME
