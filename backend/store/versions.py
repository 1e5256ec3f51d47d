"""Trained versions and the pointer to the published one."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, insert, select, update

from backend import records
from backend.store.engine import Database, from_us, id_of, project_id, to_us
from backend.store.schema import projects, versions


class SqlVersionStore:
    """`ports.VersionStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def next_number(self, project: str) -> int:
        """See `ports.VersionStore`; 1 for the first."""
        highest = select(func.max(versions.c.number)).where(versions.c.project_id == id_of(project))
        floor = select(projects.c.version_floor).where(projects.c.key == project)
        with self._db.read() as connection:
            return max(connection.execute(each).scalar() or 0 for each in (highest, floor)) + 1

    def reserve(self, project: str, number: int) -> None:
        """See `ports.VersionStore`. Raises NotFound when there is something to write and the project is unknown."""
        if number < self.next_number(project):
            return
        with self._db.write() as connection:
            row_id = project_id(connection, project, lock=True)
            higher = (projects.c.id == row_id) & (projects.c.version_floor < number)
            connection.execute(update(projects).where(higher).values(version_floor=number))

    def add(self, version: records.Version) -> None:
        """Raises NotFound for an unknown project, IntegrityError when the number is taken."""
        with self._db.write() as connection:
            row_id = project_id(connection, version.project, lock=True)
            connection.execute(
                insert(versions).values(
                    project_id=row_id,
                    number=version.number,
                    name=version.name,
                    path=version.path,
                    verdict=version.verdict.value,
                    reason=version.reason,
                    figures=json.dumps(dict(version.figures)),
                    changes=version.changes,
                    created_at=to_us(version.created_at),
                )
            )
            if version.verdict is records.Verdict.PUBLISHED:
                connection.execute(update(projects).where(projects.c.id == row_id).values(version=version.name))

    def published(self, project: str) -> records.Version | None:
        """See `ports.VersionStore`."""
        with self._db.read() as connection:
            row = connection.execute(_PUBLISHED, {"project": project}).first()
        return None if row is None else _version(row)

    def recent(
        self, project: str, *, limit: int = 20, verdict: records.Verdict | None = None
    ) -> list[records.Version]:
        """See `ports.VersionStore`."""
        statement = _select(project).order_by(versions.c.number.desc()).limit(limit)
        if verdict is not None:
            statement = statement.where(versions.c.verdict == verdict.value)
        with self._db.read() as connection:
            return [_version(row) for row in connection.execute(statement)]


def _select(project: Any) -> Select[Any]:
    return select(versions, projects.c.key).join(projects).where(projects.c.key == project)


_POINTED = _select(bindparam("project")).where(versions.c.name == projects.c.version)
_PUBLISHED = _POINTED.order_by(versions.c.number.desc()).limit(1)  # asked by every request


@lru_cache(maxsize=64)
def _figures(text: str) -> dict[str, Any]:
    """Figures of a version, which never change; decoding them takes longer than reading them."""
    found: dict[str, Any] = json.loads(text)
    return found


def _version(row: Row[Any]) -> records.Version:
    return records.Version(
        project=row.key,
        name=row.name,
        number=row.number,
        path=row.path,
        verdict=records.Verdict(row.verdict),
        reason=row.reason,
        figures=dict(_figures(row.figures)),
        changes=row.changes,
        created_at=from_us(row.created_at),
    )
