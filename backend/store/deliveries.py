"""What was delivered to Label Studio, and since when our pre-annotations could be seen there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import select

from backend import records
from backend.store.engine import Database, chunks, from_us, id_of, optional_time, optional_us, project_id, to_us
from backend.store.schema import deliveries, own_predictions, shown

AT_ONCE = 500  # own predictions that are written in one transaction, so that webhooks need not wait for all of them
_REMEMBERED = 100_000  # tasks that are known to be remembered


class SqlDeliveryStore:
    """`ports.DeliveryStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._known: set[tuple[str, int]] = set()  # some of the tasks that are remembered as shown, which only grow

    def latest(self, project: str) -> records.Delivery | None:
        """See `ports.DeliveryStore`."""
        statement = (
            select(deliveries)
            .where(deliveries.c.project_id == id_of(project))
            .order_by(deliveries.c.started_at.desc())
            .limit(1)
        )
        with self._db.read() as connection:
            row = connection.execute(statement).first()
        if row is None:
            return None
        return records.Delivery(
            project=project,
            version=row.version,
            step=records.DeliveryStep(row.step),
            started_at=from_us(row.started_at),
            finished_at=optional_time(row.finished_at),
            imported_through=row.imported_through,
            figures=json.loads(row.figures),
        )

    def save(self, delivery: records.Delivery) -> None:
        """Deliveries are told apart by `started_at`; saving one again overwrites it. Raises NotFound."""
        with self._db.write() as connection:
            row = {
                "project_id": project_id(connection, delivery.project),
                "started_at": to_us(delivery.started_at),
                "version": delivery.version,
                "step": delivery.step.value,
                "finished_at": optional_us(delivery.finished_at),
                "imported_through": delivery.imported_through,
                "figures": json.dumps(dict(delivery.figures)),
            }
            self._db.upsert(connection, deliveries, [row])

    def own(self, project: str) -> dict[tuple[int, str], records.OwnPrediction]:
        """See `ports.DeliveryStore`."""
        columns = own_predictions.c
        statement = select(columns.task_id, columns.annotator, columns.version, columns.digest)
        with self._db.read() as connection:
            rows = connection.execute(statement.where(columns.project_id == id_of(project))).all()
        return {
            (task_id, annotator): records.OwnPrediction(
                task_id=task_id, annotator=annotator, version=version, digest=digest
            )
            for task_id, annotator, version, digest in rows
        }

    def set_own(self, project: str, predictions: Iterable[records.OwnPrediction]) -> None:
        """Raises NotFound."""
        newest = {(prediction.task_id, prediction.annotator): prediction for prediction in predictions}
        ordered = list(newest.values())
        for begin in range(0, len(ordered), AT_ONCE):
            with self._db.write() as connection:
                row_id = project_id(connection, project)
                self._db.upsert(connection, own_predictions, [
                    {"project_id": row_id, "task_id": each.task_id, "annotator": each.annotator,
                     "version": each.version, "digest": each.digest}
                    for each in ordered[begin : begin + AT_ONCE]
                ])

    def remember_shown(self, project: str, task_ids: Iterable[int], *, at: datetime) -> None:
        """Raises NotFound."""
        ids = sorted({task_id for task_id in task_ids if (project, task_id) not in self._known})
        if not ids:
            return  # asked on every answered prediction: nothing is read or written when nothing is new
        if len(self.shown_since(project, ids)) < len(ids):
            with self._db.write() as connection:
                row_id = project_id(connection, project)
                rows = [{"project_id": row_id, "task_id": task_id, "shown_at": to_us(at)} for task_id in ids]
                connection.execute(self._db.insert(shown).on_conflict_do_nothing(), rows)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        self._known |= {(project, task_id) for task_id in ids}

    def shown_since(self, project: str, task_ids: Sequence[int]) -> dict[int, datetime]:
        """See `ports.DeliveryStore`."""
        found: dict[int, datetime] = {}
        with self._db.read() as connection:
            for ids in chunks(task_ids):
                statement = select(shown.c.task_id, shown.c.shown_at).where(
                    shown.c.project_id == id_of(project), shown.c.task_id.in_(ids)
                )
                found.update((task_id, from_us(at)) for task_id, at in connection.execute(statement))
        return found
