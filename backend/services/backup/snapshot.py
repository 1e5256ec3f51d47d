"""A copy of a SQLite database in use: one state of it, while others go on reading and writing.

SQLite's online backup copies pages in steps and begins anew whenever another process writes in between. A read
transaction that is open on the source all the while keeps it at one state (in WAL mode writers do not wait for it), so
the copy is done after one pass however busy the database is.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backend.errors import BackupError
from backend.ports import Progress

PAGES = 2000  # of 4 kB, in one step
WAIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Files of a version, as the database names them."""

    path: str  # below the folder of checkpoints
    answers: bool  # it is the version that answers


def snapshot(source: Path, target: Path, progress: Progress) -> None:
    """Copy to a new file, as one file without a journal. Raises BackupError when the source is damaged."""

    def told(_: int, left: int, total: int) -> None:
        progress(1.0 - left / max(total, 1), "copied the database")

    try:
        with closing(sqlite3.connect(source, timeout=WAIT_S, isolation_level=None)) as old, \
                closing(sqlite3.connect(target, isolation_level=None)) as new:
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on, one state is seen
            new.execute("PRAGMA synchronous=OFF")  # flushed by whoever needs it
            old.backup(new, pages=PAGES, progress=told)
            new.execute("PRAGMA journal_mode=DELETE")
        check(target)
    except sqlite3.Error as error:
        raise BackupError(f"The database cannot be copied ({error}); check the disk, and try again.") from error


def check(path: Path) -> None:
    """Raises BackupError when a database is damaged."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            found = str(error)
    if found != "ok":
        raise BackupError(f"The database is damaged: {found}.")


def schema(path: Path) -> str:
    """The migration that a database stands at."""
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def checkpoints(path: Path) -> list[Checkpoint]:
    """All that a database names; the files of most older ones are gone."""
    statement = ("SELECT versions.path, versions.name = projects.version FROM versions JOIN projects"
                 " ON projects.id = versions.project_id WHERE versions.path <> '' ORDER BY 1")
    with closing(sqlite3.connect(path)) as connection:
        return [Checkpoint(path=row[0], answers=bool(row[1])) for row in connection.execute(statement)]


def forget_place(path: Path) -> None:
    """Make a database one that was restored: it asks before it acts (see `services.identity`)."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE instance SET place = '[]'")


def in_use(path: Path) -> bool:
    """Whether another process has the database open: only without one can its journal be put away."""
    with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError:
            return True
        except sqlite3.DatabaseError:  # so damaged that nobody can work with it; a reason to restore
            return False
    return False
