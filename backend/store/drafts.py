"""Drafts that Polyvox made for annotators, and how each was left."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select

from backend import records
from backend.store.engine import Database, id_of, project_id
from backend.store.schema import drafts

_OF_DRAFT = ("task_id", "annotator", "draft_id", "version", "digest", "written", "pending", "updated_at", "theirs")


class SqlDraftStore:
    """`ports.DraftStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, project: str) -> dict[tuple[int, str], records.Draft]:
        """See `ports.DraftStore`."""
        statement = select(*(drafts.c[name] for name in _OF_DRAFT)).where(drafts.c.project_id == id_of(project))
        with self._db.read() as connection:
            rows = connection.execute(statement).all()
        return {(row.task_id, row.annotator): records.Draft(**row._mapping) for row in rows}

    def put(self, project: str, draft: records.Draft) -> None:
        """Raises NotFound."""
        with self._db.write() as connection:
            row = {name: getattr(draft, name) for name in _OF_DRAFT}
            self._db.upsert(connection, drafts, [{"project_id": project_id(connection, project), **row}])

    def forget(self, project: str, pairs: Iterable[tuple[int, str]]) -> None:
        """Raises NotFound."""
        with self._db.write() as connection:
            row_id = project_id(connection, project)
            for task_id, annotator in pairs:
                here = (drafts.c.project_id == row_id) & (drafts.c.task_id == task_id)
                connection.execute(delete(drafts).where(here, drafts.c.annotator == annotator))
