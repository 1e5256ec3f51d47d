"""Writes the marks of tasks that are to be read again, inside a transaction of the caller's.

Sequence numbers are microseconds of the system clock, moved on where a mark is renewed, so a number never comes back
for a task, not even after its mark was cleared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case
from sqlalchemy.dialects import postgresql, sqlite

from backend.store.engine import Database
from backend.store.schema import dirty


def mark(database: Database, connection: Connection, row_id: int, task_ids: Sequence[int]) -> None:
    """Mark tasks of the project with this row id; a task that is marked already gets a new sequence number."""
    now = time.time_ns() // 1000
    rows = [{"project_id": row_id, "task_id": task_id, "sequence": now} for task_id in task_ids]
    connection.execute(_RENEW[database.engine.dialect.name], rows)


def _renew(statement: Any) -> Any:
    fresh = statement.excluded.sequence
    later = case((fresh > dirty.c.sequence, fresh), else_=dirty.c.sequence + 1)
    return statement.on_conflict_do_update(index_elements=["project_id", "task_id"], set_={"sequence": later})


# Built once: that takes longer than the database takes to execute it, and every webhook waits for it.
_RENEW = {"sqlite": _renew(sqlite.insert(dirty)), "postgresql": _renew(postgresql.insert(dirty))}
