"""How SQLite answers the queries of a store."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import event

from backend.store import SqlStore


def watched_plans(store: SqlStore, table: str) -> list[str]:
    """A list to which the plan of each later query of `table` is added: by which index it is searched, or scanned."""
    plans: list[str] = []
    wanted = re.compile(rf"(SCAN|SEARCH) {table}")

    def explain(_: object, cursor: Any, statement: str, parameters: Any, *__: object) -> None:
        if f"FROM {table}" in statement and not statement.startswith("EXPLAIN"):
            other = cursor.connection.cursor()
            other.execute("EXPLAIN QUERY PLAN " + statement, parameters)
            plans.extend(row[3] for row in other.fetchall() if wanted.match(row[3]))

    event.listen(store.database.engine, "before_cursor_execute", explain)
    return plans
