"""`open_store`: one database behind `ports.Store`."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection, inspect, text

from backend.ports import Clock, utc_now
from backend.store.deliveries import SqlDeliveryStore
from backend.store.drafts import SqlDraftStore
from backend.store.engine import Database, create
from backend.store.instance import SqlInstanceStore
from backend.store.jobs import SqlJobStore
from backend.store.patience import AWAY, patience, why
from backend.store.projects import SqlProjectStore
from backend.store.schema import HEAD
from backend.store.stamps import SqlStamps
from backend.store.statistics import SqlStatisticsStore
from backend.store.tasks import SqlTaskStore
from backend.store.tokens import SqlTokenStore
from backend.store.versions import SqlVersionStore
from backend.store.votes import SqlVoteStore


class SqlStore:
    """All of the state; build it with `open_store`. Threads and processes may share the database."""

    def __init__(self, database: Database, *, job_attempts: int) -> None:
        self.database = database
        self.projects = SqlProjectStore(database)
        self.tasks = SqlTaskStore(database)
        self.votes = SqlVoteStore(database)
        self.jobs = SqlJobStore(database, job_attempts=job_attempts)
        self.versions = SqlVersionStore(database)
        self.deliveries = SqlDeliveryStore(database)
        self.tokens = SqlTokenStore(database)
        self.drafts = SqlDraftStore(database)
        self.statistics = SqlStatisticsStore(database)
        self.stamps = SqlStamps(database)
        self.instance = SqlInstanceStore(database)

    def refuses(self, *, wait_s: float) -> str:
        """See `ports.Store`."""
        try:
            with patience(wait_s, anew=True), self.database.write() as connection:
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql("LOCK TABLE projects, jobs, dirty, votes IN ROW EXCLUSIVE MODE")
        except AWAY as error:
            return why(error)
        return ""

    def close(self) -> None:
        """Give back the connections; the store can be used again and opens new ones."""
        self.database.engine.dispose()


def open_store(
    url: str, *, clock: Clock = utc_now, seconds: Callable[[], float] = time.monotonic, job_attempts: int = 3
) -> SqlStore:
    """Open (and make or migrate) the database at `sqlite:///path` or `postgresql://...`.

    `clock` stamps jobs and changes, `seconds` is the monotonic one; `job_attempts` is how often a job is tried whose
    process dies.
    Raises SettingsError when the URL cannot be used.
    """
    database = Database(create(url), clock, seconds=seconds)
    with database.read() as connection:
        ready = _revision(connection) == HEAD
    if not ready:
        from backend.store.migrate import upgrade  # Alembic takes time to load and is needed once

        with database.write() as connection:
            upgrade(connection)
    store = SqlStore(database, job_attempts=job_attempts)
    store.instance.claim()
    return store


def _revision(connection: Connection) -> str | None:
    """The migration that the database stands at; None when it is new."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
