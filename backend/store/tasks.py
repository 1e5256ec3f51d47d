"""Tasks, the marks of those to be read again, and the reading of both. Writing a snapshot is `take_over`'s business."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, select, update

from backend import records
from backend.store import marks
from backend.store.engine import Database, chunks, from_us, id_of, project_id
from backend.store.schema import dirty, drafts, own_predictions, projects, raw_annotations, tasks, votes
from backend.store.take_over import TakeOver


class SqlTaskStore:
    """`ports.TaskStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def take_over(self, project: str, snapshots: Iterable[records.TaskSnapshot]) -> int:
        """See `ports.TaskStore`. Raises NotFound. The snapshots are gathered before the transaction begins, so a
        generator that fetches holds no lock; memory is the caller's choice of how many to hand in."""
        newest = {snapshot.task.id: snapshot for snapshot in snapshots}
        if not newest:
            return 0
        with self._db.write(synced=False) as connection:
            row_id = project_id(connection, project, lock=True)
            run = TakeOver(self._db, connection, row_id)
            changed = sum(run.batch([newest[task_id] for task_id in ids]) for ids in chunks(sorted(newest), 200))
            self._count_changes(connection, row_id, changed)
        return changed

    def mark_dirty(self, project: str, task_ids: Iterable[int]) -> None:
        """See `ports.TaskStore`. Raises NotFound."""
        ids = sorted(set(task_ids))
        if not ids:
            return
        with self._db.write(synced=False) as connection:
            marks.mark(self._db, connection, project_id(connection, project), ids)

    def dirty(self, project: str, limit: int) -> list[tuple[int, int]]:
        """See `ports.TaskStore`."""
        statement = (
            select(dirty.c.task_id, dirty.c.sequence)
            .where(dirty.c.project_id == id_of(project))
            .order_by(dirty.c.sequence, dirty.c.task_id)
            .limit(limit)
        )
        with self._db.read() as connection:
            return [(task_id, sequence) for task_id, sequence in connection.execute(statement)]

    def clear_dirty(self, project: str, cleared: Iterable[tuple[int, int]]) -> None:
        """See `ports.TaskStore`."""
        wanted = dict(cleared)
        with self._db.write(synced=False) as connection:
            ours = dirty.c.project_id == project_id(connection, project)
            for ids in chunks(sorted(wanted)):
                # Read and compare here: one statement per chunk instead of one per mark. The rows stay locked.
                found = select(dirty.c.task_id, dirty.c.sequence).where(ours, dirty.c.task_id.in_(ids))
                rows = connection.execute(found.order_by(dirty.c.task_id).with_for_update())  # locks in one order
                done = [task_id for task_id, sequence in rows if wanted[task_id] == sequence]
                connection.execute(delete(dirty).where(ours, dirty.c.task_id.in_(done)))

    def dirty_count(self, project: str) -> int:
        """See `ports.TaskStore`."""
        return self._count(dirty.c.project_id == id_of(project))

    def newest_mark(self, project: str) -> int:
        """See `ports.TaskStore`."""
        with self._db.read() as connection:
            newest = connection.execute(select(func.max(dirty.c.sequence)).where(dirty.c.project_id == id_of(project)))
            return int(newest.scalar() or 0)

    def task_of_annotation(self, project: str, annotation_ids: Iterable[int]) -> dict[int, int]:
        """See `ports.TaskStore`."""
        return {row.annotation_id: row.task_id for row in self._annotations(project, annotation_ids)}

    def known_annotator(self, project: str, annotation_ids: Iterable[int]) -> dict[int, str]:
        """See `ports.TaskStore`."""
        return {row.annotation_id: row.annotator for row in self._annotations(project, annotation_ids)}

    def remove(self, project: str, task_ids: Iterable[int]) -> int:
        """See `ports.TaskStore`. Their marks, own predictions and drafts are forgotten, their votes become history."""
        gone = sorted(set(task_ids))
        known = changed = 0
        with self._db.write() as connection:
            row_id = project_id(connection, project, lock=True)
            now = self._db.now_us()
            for ids in chunks(gone):
                here = (tasks.c.project_id == row_id) & tasks.c.task_id.in_(ids) & tasks.c.deleted_at.is_(None)
                known += connection.execute(update(tasks).where(here).values(deleted_at=now)).rowcount
                there = (raw_annotations.c.project_id == row_id) & raw_annotations.c.task_id.in_(ids)
                left = raw_annotations.c.deleted_at.is_(None)
                connection.execute(update(raw_annotations).where(there, left).values(deleted_at=now))
                live = (votes.c.project_id == row_id) & votes.c.task_id.in_(ids) & votes.c.ended_at.is_(None)
                ended = update(votes).where(live).values(ended_at=now, is_current=False)
                changed += connection.execute(ended).rowcount
                for table in (dirty, own_predictions, drafts):
                    connection.execute(delete(table).where(table.c.project_id == row_id, table.c.task_id.in_(ids)))
            self._count_changes(connection, row_id, changed)
        return known

    def ids(self, project: str) -> NDArray[np.int64]:
        """See `ports.TaskStore`."""
        statement = select(tasks.c.task_id).where(_present(project)).order_by(tasks.c.task_id)
        with self._db.read() as connection:
            return np.fromiter((row[0] for row in connection.execute(statement)), np.int64)

    def get(self, project: str, task_ids: Sequence[int]) -> list[records.Task]:
        """See `ports.TaskStore`."""
        found: dict[int, records.Task] = {}
        with self._db.read() as connection:
            for ids in chunks(task_ids):
                statement = select(tasks).where(_present(project), tasks.c.task_id.in_(ids))
                found.update((row.task_id, _task(row)) for row in connection.execute(statement))
        return [found[task_id] for task_id in task_ids if task_id in found]

    def annotations(self, project: str, task_ids: Sequence[int]) -> list[records.Annotation]:
        """See `ports.TaskStore`."""
        found: list[records.Annotation] = []
        columns = raw_annotations.c
        with self._db.read() as connection:
            for ids in chunks(sorted(set(task_ids))):
                here = and_(columns.project_id == id_of(project), columns.task_id.in_(ids))
                kept = select(raw_annotations).where(here, columns.deleted_at.is_(None), ~columns.was_cancelled)
                rows = connection.execute(kept.order_by(columns.task_id, columns.annotation_id))
                found.extend(_annotation(row) for row in rows)
        return found

    def iterate(self, project: str, *, after_id: int = 0, batch: int = 500) -> Iterator[list[records.Task]]:
        """Batches by rising id; each is a transaction of its own, so nothing is held while the caller works."""
        while True:
            statement = select(tasks).where(_present(project), tasks.c.task_id > after_id)
            with self._db.read() as connection:
                page = [_task(row) for row in connection.execute(statement.order_by(tasks.c.task_id).limit(batch))]
            if not page:
                return
            yield page
            after_id = page[-1].id

    def count(self, project: str) -> int:
        """See `ports.TaskStore`."""
        return self._count(_present(project))

    def _count(self, condition: ColumnElement[bool]) -> int:
        with self._db.read() as connection:
            return int(connection.execute(select(func.count()).where(condition)).scalar_one())

    def _annotations(self, project: str, annotation_ids: Iterable[int]) -> Iterator[Any]:
        columns = raw_annotations.c
        with self._db.read() as connection:
            for ids in chunks(sorted(set(annotation_ids))):
                statement = select(columns.annotation_id, columns.task_id, columns.annotator)
                yield from connection.execute(
                    statement.where(columns.project_id == id_of(project), columns.annotation_id.in_(ids))
                ).all()

    def _count_changes(self, connection: Connection, row_id: int, changed: int) -> None:
        if changed:
            values = {"changes": projects.c.changes + changed, "last_change": self._db.now_us()}
            connection.execute(update(projects).where(projects.c.id == row_id).values(values))


def _present(project: str) -> ColumnElement[bool]:
    return and_(tasks.c.project_id == id_of(project), tasks.c.deleted_at.is_(None))


def _task(row: Row[Any]) -> records.Task:
    return records.Task(id=row.task_id, data=json.loads(row.data), updated_at=from_us(row.updated_at))


def _annotation(row: Row[Any]) -> records.Annotation:
    return records.Annotation(
        id=row.annotation_id, task_id=row.task_id, annotator=row.annotator, result=json.loads(row.result),
        was_cancelled=row.was_cancelled, ground_truth=row.ground_truth, created_at=from_us(row.created_at),
        updated_at=from_us(row.updated_at), lead_time_s=row.lead_time_s, imported=row.imported,
        parent_prediction=row.parent_prediction,
    )
