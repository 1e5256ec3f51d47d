"""Who writes into a SQLite file when several want to: lanes that look for work do not, nobody sleeps past their turn,
and only what Label Studio cannot tell again waits for the disk."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from backend.records import JobKind
from backend.store import SqlStore, open_store
from backend.store.patience import AWAY, patience, why
from tests.backend.holding import locked
from tests.backend.store.samples import KEY, snapshot, vote


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "polyvox.sqlite3"


@pytest.fixture
def store(file: Path) -> Iterator[SqlStore]:
    opened = open_store(f"sqlite:///{file}")
    opened.projects.ensure(KEY)
    yield opened
    opened.close()


def claim(store: SqlStore) -> object:
    return store.jobs.claim("me", lease_s=60, kinds=(JobKind.TRAIN, JobKind.SYNC))


def test_a_lane_that_finds_nothing_to_do_takes_no_turn(store: SqlStore, file: Path) -> None:
    with locked(file), patience(0.2):
        assert claim(store) is None
    store.jobs.enqueue(JobKind.TRAIN, KEY)
    assert claim(store) is not None
    store.jobs.enqueue(JobKind.TRAIN, KEY)  # waits for the one that runs, maybe for an hour
    with locked(file), patience(0.2):
        assert claim(store) is None
    store.jobs.enqueue(JobKind.SYNC, KEY)
    with locked(file), patience(0.2), pytest.raises(AWAY):
        claim(store)  # there is something, and it is not told to be nothing
    assert claim(store) is not None


def test_who_waits_for_another_process_begins_when_that_ends(store: SqlStore, file: Path) -> None:
    """SQLite's own waiting looks every 100 ms by then, so that some moment of these four is just after a look."""
    late = max(min(delay(store, file, moment) for _ in range(3)) for moment in (0.25, 0.275, 0.3, 0.325))
    assert late < 0.04, f"{1000 * late:.0f} ms after the file was free"


def delay(store: SqlStore, file: Path, moment: float) -> float:
    """How long after another process let the file go, so many seconds after we asked, we have written."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begun, written = threading.Event(), [0.0]

    def write() -> None:
        begun.set()
        store.tasks.mark_dirty(KEY, [1])
        written[0] = time.monotonic()

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    time.sleep(moment)
    other.execute("ROLLBACK")
    free = time.monotonic()
    thread.join()
    other.close()
    return written[0] - free


def test_threads_of_one_process_wait_for_each_other_and_no_longer_than_they_may(store: SqlStore) -> None:
    with store.database.write():
        refused: list[Exception] = []

        def write() -> None:
            try:
                with patience(0.1):
                    store.tasks.mark_dirty(KEY, [1])
            except AWAY as error:
                refused.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
    assert [why(error) for error in refused] == ["is locked by another program"]
    store.tasks.mark_dirty(KEY, [1])
    assert store.tasks.dirty_count(KEY) == 1


def test_what_label_studio_tells_again_does_not_wait_for_the_disk_and_all_else_does(store: SqlStore) -> None:
    levels: list[int] = []

    def note(connection: Connection) -> None:
        levels.append(connection.connection.cursor().execute("PRAGMA synchronous").fetchone()[0])

    event.listen(store.database.engine, "commit", note)

    def synced(write: Callable[[], object]) -> bool:
        levels.clear()
        write()
        assert levels, "nothing was committed"
        return levels[-1] == 2  # FULL

    job = store.jobs.enqueue(JobKind.TRAIN, KEY)
    assert not synced(lambda: store.tasks.mark_dirty(KEY, [1]))
    assert not synced(lambda: store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")])]))
    assert not synced(lambda: store.tasks.clear_dirty(KEY, store.tasks.dirty(KEY, 9)))
    assert synced(lambda: store.jobs.enqueue(JobKind.DELIVER, KEY))
    assert synced(lambda: store.jobs.claim("me", lease_s=60, job_id=job.id))
    assert not synced(lambda: store.jobs.heartbeat(job.id, "me", progress=0.5, note="", lease_s=60))
    assert synced(lambda: store.jobs.finish(job.id, "me", figures={}))
    assert synced(lambda: store.projects.update_settings(KEY, {"shadow_mode": True}))
