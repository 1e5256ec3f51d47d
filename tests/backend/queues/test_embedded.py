"""The queue over the database: real SQLite file, real threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.queues import EmbeddedQueue
from backend.records import Job, JobKind
from backend.store import SqlStore, open_store

ALL = tuple(JobKind)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3")
    store.projects.ensure("1.1")
    yield store
    store.close()


def test_hands_out_due_jobs_of_the_kinds_asked_for(store: SqlStore) -> None:
    queue = EmbeddedQueue(store.jobs, lease_s=60)
    store.jobs.enqueue(JobKind.TRAIN, "1.1")
    assert queue.take("me", (JobKind.SYNC,), wait_s=0) is None
    job = queue.take("me", (JobKind.SYNC, JobKind.TRAIN), wait_s=0)
    assert job is not None and job.kind is JobKind.TRAIN and job.lease_owner == "me"
    assert queue.take("other", ALL, wait_s=0) is None


def test_waits_as_long_as_asked(store: SqlStore) -> None:
    begun = time.monotonic()
    assert EmbeddedQueue(store.jobs, lease_s=60, poll_s=0.05).take("me", ALL, wait_s=0.3) is None
    assert 0.3 <= time.monotonic() - begun < 2


@pytest.mark.parametrize("ring", [True, False])
def test_a_job_queued_meanwhile_is_taken_at_a_ring_or_the_next_look(store: SqlStore, ring: bool) -> None:
    queue = EmbeddedQueue(store.jobs, lease_s=60, poll_s=60 if ring else 0.1)
    taken: list[Job | None] = []
    taker = threading.Thread(target=lambda: taken.append(queue.take("me", ALL, wait_s=30)))
    taker.start()
    time.sleep(0.3)
    assert not taken
    store.jobs.enqueue(JobKind.SYNC, "1.1")
    if ring:
        queue.ring()
    taker.join(5)
    assert taken and taken[0] is not None


def test_a_ring_between_looking_and_waiting_is_heard(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, claim = EmbeddedQueue(store.jobs, lease_s=60, poll_s=60), store.jobs.claim

    def claim_then_enqueue(*arguments: Any, **options: Any) -> Job | None:
        job = claim(*arguments, **options)
        store.jobs.enqueue(JobKind.SYNC, "1.1")
        queue.ring()
        return job

    monkeypatch.setattr(store.jobs, "claim", claim_then_enqueue)
    begun = time.monotonic()
    assert queue.take("me", ALL, wait_s=20) is not None
    assert time.monotonic() - begun < 10


def test_of_many_takers_each_job_has_one(store: SqlStore) -> None:
    for number in range(1, 9):
        store.projects.ensure(f"{number}.1")
        store.jobs.enqueue(JobKind.SYNC, f"{number}.1")
    taken: list[str] = []

    def take_all(owner: str) -> None:
        queue = EmbeddedQueue(store.jobs, lease_s=60)
        while (job := queue.take(owner, ALL, wait_s=0)) is not None:
            taken.append(job.project)

    takers = [threading.Thread(target=take_all, args=(f"t{index}",)) for index in range(4)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert sorted(taken) == [f"{number}.1" for number in range(1, 9)]
