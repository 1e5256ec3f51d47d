"""Every test of the store runs on a real SQLite file, and on PostgreSQL too where POLYVOX_TEST_POSTGRES names an empty
database (it is emptied before each test)."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from backend.store import SqlStore, open_store
from tests.backend.store.samples import KEY

POSTGRES = os.environ.get("POLYVOX_TEST_POSTGRES", "")


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 27, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        """The monotonic clock that goes with it."""
        return self.now.timestamp()

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture(params=["sqlite", "postgresql"] if POSTGRES else ["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'polyvox.sqlite3'}"
    engine = create_engine(POSTGRES.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()
    return POSTGRES


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(url: str, clock: FakeClock) -> Iterator[SqlStore]:
    opened = open_store(url, clock=clock, seconds=clock.seconds)
    opened.projects.ensure(KEY, title="A project", label_config="<View/>")
    yield opened
    opened.close()
