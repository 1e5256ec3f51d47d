"""Looks at Label Studio that requests ask for: none is lost, and there are few."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.records import JobKind, JobState
from backend.services.looks import EVERY_S, Looks
from backend.store import SqlStore, open_store

KEY = "3.1764288000"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Hands:
    """Both clocks, and the store."""

    def __init__(self, folder: Path) -> None:
        self.monotonic = 1000.0
        self.store: SqlStore = open_store(f"sqlite:///{folder}/x.sqlite3", clock=self.clock)
        self.looks = Looks(self.store.jobs, self.clock, seconds=lambda: self.monotonic)

    def clock(self) -> datetime:
        return NOW + timedelta(seconds=self.monotonic - 1000.0)

    def run(self) -> bool:
        """Do the job that is due, if one is."""
        job = self.store.jobs.claim("test", lease_s=60)
        if job is not None:
            self.store.jobs.finish(job.id, "test", figures={})
        return job is not None


@pytest.fixture
def at(tmp_path: Path) -> Hands:
    return Hands(tmp_path)


def test_the_first_is_at_once_and_the_rest_of_a_moment_is_one_more(at: Hands) -> None:
    at.looks.ask(KEY)
    assert at.run()
    for _ in range(50):
        at.monotonic += 0.1
        at.looks.ask(KEY)
        assert not at.run()
    at.monotonic += EVERY_S
    assert at.run() and not at.run()
    assert len(at.store.jobs.recent(KEY, limit=100)) == 2


def test_a_flood_gets_a_look_every_ten_seconds(at: Hands) -> None:
    ran = 0
    for _ in range(360):
        at.monotonic += 1.0
        at.looks.ask(KEY)
        ran += at.run()
    assert 360 / EVERY_S - 1 <= ran <= 360 / EVERY_S + 1


def test_a_look_that_somebody_had_begun_earlier_is_followed_by_another(at: Hands) -> None:
    at.looks.ask(KEY)
    assert at.run()
    at.monotonic += 1
    at.looks.ask(KEY)
    at.store.jobs.enqueue(JobKind.RECONCILE, KEY)  # "start training": at once
    assert at.run()
    at.monotonic += 1
    at.looks.ask(KEY)
    pending = at.store.jobs.pending(KEY, JobKind.RECONCILE)
    assert pending is not None and pending.state is JobState.QUEUED


def test_projects_wait_for_themselves_only(at: Hands) -> None:
    at.looks.ask(KEY)
    at.looks.ask("4.1764288000")
    assert at.run() and at.run() and not at.run()


def test_invented_projects_are_not_remembered_for_ever() -> None:
    now, queued = 1000.0, []
    jobs = SimpleNamespace(enqueue=lambda kind, project, not_before: queued.append((project, not_before)))
    looks = Looks(jobs, lambda: NOW, seconds=lambda: now)  # type: ignore[arg-type]
    for number in range(1, 5000):
        looks.ask(f"{number}.1764288000")
        now += EVERY_S / 100
    assert len(looks._due) <= 1001 and {not_before for _, not_before in queued} == {None}
    looks.ask("4999.1764288000")  # of late: it waits for its turn, as ever
    assert queued[-1][1] is not None
