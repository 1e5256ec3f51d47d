"""Opens the database and hands out the two kinds of transactions, `read` and `write`.

SQLite runs in WAL mode with `synchronous=FULL`: a commit returns after its bytes were synced, so a dirty mark that a
webhook was answered for survives a killed process and a power cut alike (NORMAL would survive the former only; the
price is one sync per commit, 0.1 ms on an SSD, and bulk work is one commit). A write begins with `BEGIN IMMEDIATE`: it
waits for its turn (`busy_timeout`) instead of failing half-way when another process wrote since it began to read.
PostgreSQL has these properties by default, except that each statement of a transaction would see what was committed
meanwhile: `read` asks for REPEATABLE READ there. Writers of one project take turns by locking its row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, bindparam, create_engine, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from backend.errors import NotFound, SettingsError
from backend.ports import Clock
from backend.store.patience import left_ms
from backend.store.schema import projects

BUSY_TIMEOUT_MS = 30_000
Id = TypeVar("Id", int, str)
# Statements of every request are built once: that takes longer than the database takes to answer them.
_ID = select(projects.c.id).where(projects.c.key == bindparam("key"))
_LOCKED = _ID.with_for_update(key_share=True)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_us(moment: datetime) -> int:
    """Microseconds since the epoch. Raises ValueError for a time without a zone."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot be stored")
    return (moment - EPOCH) // MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The inverse of `to_us`."""
    return EPOCH + timedelta(microseconds=microseconds)


def optional_us(moment: datetime | None) -> int | None:
    """`to_us`, for columns that may be null."""
    return None if moment is None else to_us(moment)


def optional_time(microseconds: int | None) -> datetime | None:
    """`from_us`, for columns that may be null."""
    return None if microseconds is None else from_us(microseconds)


def chunks(ids: Sequence[Id], size: int = 500) -> Iterator[Sequence[Id]]:
    """Parts of a list of ids, short enough for one IN (...)."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


class Database:
    """An engine, a clock, and the statements that differ between the two databases."""

    def __init__(self, engine: Engine, clock: Clock, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self.engine = engine
        self._write_engine = engine.execution_options(polyvox_write=True)
        one_state = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        self._read_engine = engine.execution_options(**one_state)
        self.clock = clock
        self.seconds = seconds

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database, that of its first statement."""
        with self._read_engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that commits as a whole at the end of the block, or not at all."""
        with self._write_engine.begin() as connection:
            if self.engine.dialect.name != "sqlite" and (wait_ms := left_ms(BUSY_TIMEOUT_MS)) < BUSY_TIMEOUT_MS:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {wait_ms}")
            yield connection

    def now_us(self) -> int:
        """The clock, in microseconds since the epoch."""
        return to_us(self.clock())

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """INSERT with `on_conflict_do_nothing` / `on_conflict_do_update`, alike on both databases."""
        return sqlite.insert(table) if self.engine.dialect.name == "sqlite" else postgresql.insert(table)

    def upsert(self, connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
        """Insert rows, overwriting the columns outside the primary key of those that are there; one statement."""
        if not rows:
            return
        statement = self.insert(table)
        keys = [column.name for column in table.primary_key]
        rest = {name: statement.excluded[name] for name in rows[0] if name not in keys}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest), rows)


def project_id(connection: Connection, key: str, *, lock: bool = False) -> int:
    """The row id of a project. Raises NotFound. With `lock`, others that lock it wait.

    Inserts of rows that refer to the project do not wait: on PostgreSQL no webhook waits for a long `take_over`.
    SQLite has one writer at a time anyway.
    """
    found = connection.execute(_LOCKED if lock else _ID, {"key": key}).scalar()
    if found is None:
        raise NotFound("Polyvox does not know this project.")
    return int(found)


def id_of(key: str) -> Any:
    """The row id of a project as a subquery; null, and so equal to nothing, when it is unknown."""
    return select(projects.c.id).where(projects.c.key == key).scalar_subquery()


def create(url: str) -> Engine:
    """An engine for `sqlite:///path` or `postgresql://...`. Raises SettingsError when the URL cannot be used."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(parsed)
        if parsed.get_backend_name() in ("postgresql", "postgres"):
            return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ArgumentError as error:
        raise SettingsError("DATABASE_URL cannot be read; it takes sqlite:///path or postgresql://...") from error
    except ModuleNotFoundError as error:
        message = "DATABASE_URL names PostgreSQL, whose driver is missing: pip install 'psycopg[binary]'"
        raise SettingsError(message) from error
    raise SettingsError(f"DATABASE_URL names {parsed.get_backend_name()!r}; it takes sqlite or postgresql")


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise SettingsError("DATABASE_URL must name a file (sqlite:///path); several processes share the database")
    Path(url.database).absolute().parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(dbapi_connection: Any, _record: object) -> None:
    dbapi_connection.isolation_level = None  # the driver would begin transactions by its own rules
    cursor = dbapi_connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("polyvox_write", False)
    wait_ms = left_ms(BUSY_TIMEOUT_MS)
    if connection.info.get("wait_ms", BUSY_TIMEOUT_MS) != wait_ms:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={wait_ms}")
        connection.info["wait_ms"] = wait_ms
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
