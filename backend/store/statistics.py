"""Documents of statistics as JSON texts, the history of votes that they are made from, and what people checked.

Shape legend: N votes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, func, select

from backend import records
from backend.store.engine import Database, from_us, id_of, project_id, to_us
from backend.store.schema import checks, raw_annotations, statistics, votes
from backend.store.votes import VoteTables

_DRAWN = 500  # annotations in memory at a time
_ROWS = 20_000  # votes that are held as Python objects at a time while columns are built
_WRITTEN = 200  # documents in one statement
_OF_CHECK = ("unit", "annotator", "control", "value", "verdict")


class SqlStatisticsStore:
    """`ports.StatisticsStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(
        self, project: str, version: str, bodies: Mapping[tuple[str, str], str], *, kinds: Collection[str] | None = None
    ) -> None:
        """See `ports.StatisticsStore`. Raises NotFound."""
        with self._db.write() as connection:
            row_id = project_id(connection, project)
            gone = statistics.c.project_id == row_id
            if kinds is not None:
                gone &= statistics.c.kind.in_(list(kinds))
            connection.execute(delete(statistics).where(gone))
            rows = [
                {"project_id": row_id, "kind": kind, "part": part, "version": version, "body": body}
                for (kind, part), body in bodies.items()
            ]
            for start in range(0, len(rows), _WRITTEN):
                connection.execute(statistics.insert(), rows[start : start + _WRITTEN])

    def version(self, project: str, kind: str, part: str = "") -> str | None:
        """See `ports.StatisticsStore`."""
        columns = statistics.c
        here = (columns.project_id == id_of(project)) & (columns.kind == kind) & (columns.part == part)
        with self._db.read() as connection:
            found = connection.execute(select(columns.version).where(here)).scalar()
        return None if found is None else str(found)

    def body(self, project: str, kind: str, part: str = "") -> tuple[str, str] | None:
        """See `ports.StatisticsStore`."""
        columns = statistics.c
        here = (columns.project_id == id_of(project)) & (columns.kind == kind) & (columns.part == part)
        with self._db.read() as connection:
            row = connection.execute(select(columns.version, columns.body).where(here)).first()
        return None if row is None else (row.version, row.body)

    def history(self, project: str) -> records.VoteHistory:
        """See `ports.StatisticsStore`. A later revision of one annotation is a correction, not a second opinion, so
        only the latest of each (annotation, unit, control) is there."""
        columns = votes.c
        latest = (
            select(func.max(columns.id))
            .where(columns.project_id == id_of(project))
            .group_by(columns.annotation_id, columns.unit, columns.control)
        )
        statement = select(
            columns.unit, columns.annotator, columns.control, columns.kind, columns.value, columns.updated_at,
            columns.provenance, columns.shown, columns.control_arm, columns.is_current, columns.lead_time_s,
        ).where(columns.id.in_(latest))
        tables, more = VoteTables(), _More()
        with self._db.read() as connection:
            result = connection.execution_options(yield_per=_ROWS).execute(statement)
            for rows in result.partitions():
                tables.add([row[:9] for row in rows])
                more.add(rows)
        return records.VoteHistory(votes=tables.votes(), **more.columns())

    def drawn(self, project: str) -> Iterator[records.DrawnAnnotation]:
        """See `ports.StatisticsStore`."""
        columns = raw_annotations.c
        statement = select(columns.task_id, columns.annotator, columns.result).where(
            columns.project_id == id_of(project), columns.deleted_at.is_(None), columns.was_cancelled.is_(False)
        ).order_by(columns.task_id, columns.annotator, columns.updated_at, columns.annotation_id)
        with self._db.read() as connection:
            for task_id, annotator, result in connection.execution_options(yield_per=_DRAWN).execute(statement):
                found = json.loads(result)
                yield records.DrawnAnnotation(task_id=task_id, annotator=annotator, result=found)

    def annotations_made(self, project: str) -> int:
        """See `ports.StatisticsStore`; 0 without any. Their number is in it, so that a deletion is seen as well."""
        columns = raw_annotations.c
        statement = select(func.count(), func.max(columns.updated_at)).where(
            columns.project_id == id_of(project), columns.deleted_at.is_(None))
        with self._db.read() as connection:
            count, last = connection.execute(statement).one()
        return int(count) + int(last or 0)

    def checks(self, project: str) -> list[records.Check]:
        """See `ports.StatisticsStore`."""
        columns = checks.c
        statement = select(checks).where(columns.project_id == id_of(project))
        with self._db.read() as connection:
            rows = connection.execute(statement.order_by(columns.unit, columns.annotator, columns.control)).all()
        return [
            records.Check(**{name: getattr(row, name) for name in _OF_CHECK}, checked_at=from_us(row.checked_at))
            for row in rows
        ]

    def check(self, project: str, check: records.Check) -> None:
        """Raises NotFound."""
        with self._db.write() as connection:
            row = {name: getattr(check, name) for name in _OF_CHECK}
            at = {"project_id": project_id(connection, project), "checked_at": to_us(check.checked_at)}
            self._db.upsert(connection, checks, [at | row])

    def uncheck(self, project: str, unit: str, annotator: str, control: str) -> bool:
        """Raises NotFound for an unknown project."""
        columns = checks.c
        with self._db.write() as connection:
            here = (columns.project_id == project_id(connection, project)) & (columns.unit == unit)
            here &= (columns.annotator == annotator) & (columns.control == control)
            return connection.execute(delete(checks).where(here)).rowcount > 0

    def checks_made(self, project: str) -> int:
        """See `ports.StatisticsStore`; 0 without any."""
        statement = select(func.count(), func.max(checks.c.checked_at)).where(checks.c.project_id == id_of(project))
        with self._db.read() as connection:
            count, last = connection.execute(statement).one()
        return int(count) + int(last or 0)


class _More:
    """The columns that `Votes` does not have, under construction."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(self, rows: Any) -> None:
        shown, control_arm, current, lead = zip(*(row[7:11] for row in rows), strict=True)
        seconds = np.array([np.nan if each is None else each for each in lead], np.float64)
        self._parts.append((
            np.array(shown, np.bool_), np.array(control_arm, np.bool_), np.array(current, np.bool_), seconds,
        ))

    def columns(self) -> dict[str, NDArray[Any]]:
        """name -> (N,)."""
        nothing = np.zeros(0, np.bool_)
        parts = self._parts or [(nothing, nothing, nothing, np.zeros(0))]
        shown, control_arm, current, lead = (np.concatenate(each) for each in zip(*parts, strict=True))
        return {"shown": shown, "control_arm": control_arm, "current": current, "lead_time_s": lead}
