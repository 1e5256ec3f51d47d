"""Opens the database and hands out the two kinds of transactions, `read` and `write`.

SQLite runs in WAL mode. A commit survives a killed process. With `synchronous=FULL`, the default here, it returns after
its bytes were synced, and so survives a power cut too; all commits before it do as well. `write(synced=False)` leaves
that to the next synced commit, checkpoint or the system: a sync takes as long as the disk likes, and everybody who
wants to write waits for it. It is for what Label Studio tells again when it is asked (marks of tasks, tasks, votes: the
comparison after a start finds what a power cut took, since commits are lost in order, the last one first) and for signs
of life of jobs. A write begins with `BEGIN IMMEDIATE`: it waits for its turn (`turns`) instead of failing half-way when
another process wrote since it began to read. PostgreSQL has these properties by default, and syncs every commit, except
that each statement of a transaction would see what was committed meanwhile: `read` asks for REPEATABLE READ there.
Writers of one project take turns by locking its row.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, Table, bindparam, create_engine, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from backend.errors import NotFound, SettingsError
from backend.ports import Clock
from backend.store.patience import left_ms
from backend.store.schema import projects
from backend.store.turns import Turns, begin

BUSY_TIMEOUT_MS = 30_000
_NORMAL, _FULL = 1, 2  # of SQLite's `synchronous`
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
        self._turns = Turns() if engine.dialect.name == "sqlite" else None
        self._write_engine = engine.execution_options(polyvox_write=True)
        self._unsynced_engine = engine.execution_options(polyvox_write=True, polyvox_synced=False)
        one_state = {} if self._turns is not None else {"isolation_level": "REPEATABLE READ"}
        self._read_engine = engine.execution_options(**one_state)
        self.clock = clock
        self.seconds = seconds

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database, that of its first statement."""
        with self._read_engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, synced: bool = True) -> Iterator[Connection]:
        """A transaction that commits as a whole at the end of the block, or not at all; not inside another one of the
        same thread. `synced`: it survives a power cut from then on."""
        engine = self._write_engine if synced else self._unsynced_engine
        wait_ms = left_ms(BUSY_TIMEOUT_MS)
        with nullcontext() if self._turns is None else self._turns.mine(wait_ms / 1000), engine.begin() as connection:
            if self._turns is None and wait_ms < BUSY_TIMEOUT_MS:
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
    cursor.execute(f"PRAGMA busy_timeout={left_ms(BUSY_TIMEOUT_MS)}")  # reading the mode waits as well
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    options, wait_ms = connection.get_execution_options(), left_ms(BUSY_TIMEOUT_MS)
    if not options.get("polyvox_write", False):
        _set(connection, "busy_timeout", wait_ms)
        connection.exec_driver_sql("BEGIN")
        return
    _set(connection, "synchronous", _FULL if options.get("polyvox_synced", True) else _NORMAL)
    _set(connection, "busy_timeout", 0)
    if not begin(_driver(connection), wait_ms / 1000):
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # raises what the driver raises, as SQLAlchemy's error


def _set(connection: Connection, pragma: str, value: int) -> None:
    """Without SQLAlchemy's overhead, since every transaction does it; not at all where it is so already."""
    if connection.info.get(pragma) != value:
        _driver(connection).execute(f"PRAGMA {pragma}={value}").close()
        connection.info[pragma] = value


def _driver(connection: Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.driver_connection)
