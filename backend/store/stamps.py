"""Puts stored instants right after the clock was set back, and keeps what is to be said of the service as a whole.

Stamps that lie ahead of the clock were made while it was ahead. All of them move by the same span, so their order
stays, and what waits for them waits no longer than it should.
"""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Connection, Table, func, select, update

from backend import records
from backend.records import JobState
from backend.store.engine import Database, from_us
from backend.store.schema import deliveries, dirty, jobs, notices, projects, shown, versions

SECOND = 1_000_000
RETRIES_WITHIN_S = 600  # no retry of a job waits longer
RENEWED_WITHIN_S = 600  # a running job whose lease reaches further ahead has one of another time

# What was stamped when it happened. Instants to come (`not_before`, `lease_until`) are treated apart.
STAMPS: tuple[tuple[Table, tuple[str, ...]], ...] = (
    (jobs, ("created_at", "started_at", "finished_at", "interrupted_at")),
    (projects, ("last_change", "last_sweep", "sweep_wanted", "last_reread", "reread_wanted", "reread_begun",
                "last_success")),
    (versions, ("created_at",)),
    (deliveries, ("started_at", "finished_at")),
    (shown, ("shown_at",)),
    (dirty, ("sequence",)),
)


class SqlStamps:
    """`ports.StampStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def ahead_s(self, *, by_s: float) -> float:
        """See `ports.StampStore`. Reads only."""
        now = self._db.now_us()
        limit = now + round(by_s * SECOND)
        with self._db.read() as connection:
            greatest = _greatest(connection, limit)
            waits = connection.execute(select(func.count()).where(_too_late(now) | _too_long(now))).scalar_one()
        return (greatest - now) / SECOND if greatest else float(bool(waits))

    def put_right(self, *, by_s: float, shift_s: float = 0.0) -> None:
        """See `ports.StampStore`."""
        with self._db.write() as connection:
            now = self._db.now_us()
            limit, known = now + round(by_s * SECOND), round(shift_s * SECOND)
            shift = min(known, now - _greatest(connection, limit)) if _greatest(connection, limit) else known
            stamped = (jobs.c.created_at > limit) | (jobs.c.started_at > limit)
            _set(connection, jobs.c.not_before, now, stamped & (jobs.c.not_before > now))
            _set(connection, jobs.c.not_before, now, _too_late(now))
            _set(connection, jobs.c.lease_until, now + RENEWED_WITHIN_S * SECOND, _too_long(now))
            for table, names in STAMPS:
                for name in names:
                    column = table.c[name]
                    connection.execute(update(table).where(column > limit).values({column: column + shift}))

    def note(self, name: str, sentence: str) -> None:
        """See `ports.StampStore`."""
        row = {"name": name, "sentence": sentence, "noticed_at": self._db.now_us()}
        with self._db.write() as connection:
            self._db.upsert(connection, notices, [row])

    def notices(self) -> list[records.Notice]:
        """See `ports.StampStore`."""
        with self._db.read() as connection:
            rows = connection.execute(select(notices).order_by(notices.c.name)).all()
        return [records.Notice(name=row.name, sentence=row.sentence, noticed_at=from_us(row.noticed_at))
                for row in rows]


def _greatest(connection: Connection, limit: int) -> int:
    """The stamp that lies furthest ahead; 0 when none is beyond the limit."""
    tops = [connection.execute(select(func.max(table.c[name]))).scalar() or 0 for table, names in STAMPS
            for name in names]
    top = max(tops)
    return int(top) if top > limit else 0


def _too_late(now: int) -> ColumnElement[bool]:
    """Jobs that were begun before and whose next try lies further ahead than any retry waits."""
    waits = (jobs.c.state == JobState.QUEUED.value) & (jobs.c.attempts > 0)
    return waits & (jobs.c.not_before > now + RETRIES_WITHIN_S * SECOND)


def _too_long(now: int) -> ColumnElement[bool]:
    return (jobs.c.state == JobState.RUNNING.value) & (jobs.c.lease_until > now + RENEWED_WITHIN_S * SECOND)


def _set(connection: Connection, column: Column[int], value: int, where: ColumnElement[bool]) -> None:
    connection.execute(update(jobs).where(where).values({column: value}))
