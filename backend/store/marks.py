"""Writes the marks of tasks that are to be read again, inside a transaction of the caller's.

Sequence numbers are microseconds of the system clock, moved on where a mark is renewed, so a number never comes back
for a task, not even after its mark was cleared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Connection, case

from backend.store.engine import Database
from backend.store.schema import dirty


def mark(database: Database, connection: Connection, row_id: int, task_ids: Sequence[int]) -> None:
    """Mark tasks of the project with this row id; a task that is marked already gets a new sequence number."""
    now = time.time_ns() // 1000
    statement = database.insert(dirty)
    fresh = statement.excluded.sequence
    later = case((fresh > dirty.c.sequence, fresh), else_=dirty.c.sequence + 1)
    rows = [{"project_id": row_id, "task_id": task_id, "sequence": now} for task_id in task_ids]
    renew = statement.on_conflict_do_update(index_elements=["project_id", "task_id"], set_={"sequence": later})
    connection.execute(renew, rows)
