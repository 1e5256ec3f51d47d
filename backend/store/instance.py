"""Which instance this database is: its id, whether it still lies where it got it, and its marks on webhooks."""

from __future__ import annotations

import json
import uuid

from sqlalchemy import delete, insert, select, update

from backend import records
from backend.store.engine import Database, from_us, id_of, project_id
from backend.store.place import place, same
from backend.store.schema import instance, webhook_marks


class SqlInstanceStore:
    """`ports.InstanceStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self) -> records.Instance:
        """See `ports.InstanceStore`."""
        with self._db.read() as connection:
            row = connection.execute(select(instance)).one()
            now = place(self._db.engine, connection, make=False)
        return records.Instance(id=row.id, moved=not same(json.loads(row.place), now), contested=row.contested)

    def claim(self) -> None:
        """Make the id of a database that has none yet; safe from several processes at once."""
        with self._db.read() as connection:
            if connection.execute(select(instance.c.one)).first() is not None:
                return
        with self._db.write() as connection:
            here = place(self._db.engine, connection, make=True)
            row = {"one": 1, "id": uuid.uuid4().hex, "place": json.dumps(here), "contested": ""}
            connection.execute(self._db.insert(instance).values(row).on_conflict_do_nothing())

    def contest(self, address: str) -> None:
        """See `ports.InstanceStore`."""
        with self._db.write() as connection:
            connection.execute(update(instance).values(contested=address))

    def adopt(self) -> records.Instance:
        """See `ports.InstanceStore`."""
        with self._db.write() as connection:
            here = place(self._db.engine, connection, make=True)
            connection.execute(update(instance).values(id=uuid.uuid4().hex, place=json.dumps(here), contested=""))
            connection.execute(delete(webhook_marks))
        return self.get()

    def mark(self, project: str) -> records.WebhookMark | None:
        """See `ports.InstanceStore`."""
        with self._db.read() as connection:
            statement = select(webhook_marks).where(webhook_marks.c.project_id == id_of(project))
            row = connection.execute(statement).first()
        if row is None:
            return None
        return records.WebhookMark(mark=row.mark, offered=row.offered, written_at=from_us(row.written_at))

    def offer_mark(self, project: str, mark: str) -> None:
        """See `ports.InstanceStore`. Raises NotFound."""
        with self._db.write() as connection:
            row = {"project_id": project_id(connection, project), "mark": "", "offered": mark, "written_at": 0}
            done = connection.execute(
                update(webhook_marks).where(webhook_marks.c.project_id == row["project_id"]).values(offered=mark)
            )
            if not done.rowcount:
                connection.execute(insert(webhook_marks).values(row))

    def settle_mark(self, project: str) -> None:
        """See `ports.InstanceStore`."""
        with self._db.write() as connection:
            values = {"mark": webhook_marks.c.offered, "written_at": self._db.now_us()}
            connection.execute(
                update(webhook_marks).where(webhook_marks.c.project_id == id_of(project)).values(values))
