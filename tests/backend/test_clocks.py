"""A wall clock that is set a day forward and back: nothing waits for it, nothing is missed, and the status says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.instants import Drift, Instants
from backend.jobs import run_job
from backend.records import Delivery, DeliveryStep, JobKind, SyncState, Verdict, Version
from backend.routes.sentences import ago
from backend.services.clock_watch import TELL_FOR, told
from backend.services.triggers import Triggers
from backend.settings import Settings
from backend.store import SqlStore, open_store
from tests.backend.services.reading_bench import Bench
from tests.backend.small_services import small_services

KEY = "1.1"
DAY = 86400.0


class Clock:
    """A wall clock that may be set, and the monotonic one, which may not."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 11, 28, 12, tzinfo=UTC)
        self.run_s = 1000.0

    def __call__(self) -> datetime:
        return self.wall

    def seconds(self) -> float:
        return self.run_s

    def pass_s(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.run_s += seconds

    def set_by(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> SqlStore:
    opened = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=clock, seconds=clock.seconds)
    opened.projects.ensure(KEY)
    return opened


@pytest.fixture
def triggers(store: SqlStore, clock: Clock) -> Triggers:
    settings = Settings(label_studio_url="http://ls", label_studio_api_key="k")
    return Triggers(store=store, settings=settings, clock=clock, seconds=clock.seconds)


def kinds(triggers: Triggers) -> set[JobKind]:
    return {job.kind for job in triggers.tick()}


def end(store: SqlStore, kind: JobKind, *, error: str = "") -> None:
    job = store.jobs.claim("me", lease_s=60, kinds=[kind])
    assert job is not None
    if error:
        store.jobs.fail(job.id, "me", error=error, retry_at=None)
    else:
        store.jobs.finish(job.id, "me", figures={})


def test_an_instant_ahead_counts_from_when_it_was_first_seen(clock: Clock) -> None:
    instants, ahead = Instants(clock, seconds=clock.seconds), clock.wall + timedelta(days=1)
    assert instants.since_s(ahead) == 0.0
    clock.pass_s(30.0)
    assert instants.since_s(ahead) == 30.0
    assert instants.since_s(clock.wall - timedelta(seconds=5)) == 5.0


def test_jumps_are_told_from_time_that_passes(clock: Clock) -> None:
    drift = Drift(clock, seconds=clock.seconds)
    assert drift.look() == 0.0
    clock.pass_s(5000.0)
    assert drift.look() == 0.0
    clock.set_by(-DAY)
    assert drift.look() == -DAY and drift.look() == 0.0
    for _ in range(4):
        clock.set_by(3.0)  # small steps add up
    assert drift.look() == 12.0


def test_a_published_version_is_delivered_after_the_clock_was_set_forward_and_back(
    store: SqlStore, triggers: Triggers, clock: Clock
) -> None:
    """Also what was stamped meanwhile: the last comparison, a failed job, a delivery."""
    triggers.tick()
    clock.set_by(DAY)
    store.versions.add(version(1, clock()))
    store.deliveries.save(Delivery(project=KEY, version="consensus@r0", step=DeliveryStep.DONE, started_at=clock(),
                                   finished_at=clock()))
    triggers.tick()
    end(store, JobKind.RECONCILE)
    store.projects.set_sync_state(KEY, SyncState(last_success=clock()))
    clock.set_by(-DAY)
    clock.pass_s(triggers.settings_of(store.projects.all()[0]).consensus_every_s + 1.0)
    assert JobKind.DELIVER in kinds(triggers)
    assert store.jobs.claim("me", lease_s=60, kinds=[JobKind.RECONCILE]) is not None, "it is compared again, too"


def version(number: int, at: datetime) -> Version:
    return Version(project=KEY, name=f"r{number}", number=number, path=f"{KEY}/r{number}", verdict=Verdict.PUBLISHED,
                   reason="", figures={}, changes=0, created_at=at)


def test_jobs_and_leases_of_a_clock_that_was_ahead_are_due(store: SqlStore, triggers: Triggers, clock: Clock) -> None:
    triggers.tick()
    claimed = store.jobs.enqueue(JobKind.TRAIN, KEY)
    assert store.jobs.claim("me", lease_s=60, kinds=[JobKind.TRAIN]) is not None
    clock.set_by(DAY)
    triggers.tick()
    store.jobs.fail(claimed.id, "me", error="x", retry_at=clock() + timedelta(seconds=5))
    store.jobs.enqueue(JobKind.ENCODE, KEY, not_before=clock() + timedelta(seconds=60))
    store.jobs.enqueue(JobKind.GAPS, KEY)
    gaps = store.jobs.claim("dead", lease_s=60, kinds=[JobKind.GAPS])
    clock.set_by(-DAY)
    triggers.tick()
    for kind in (JobKind.TRAIN, JobKind.ENCODE):
        assert store.jobs.claim("me", lease_s=60, kinds=[kind]) is not None, kind
    clock.pass_s(700.0)  # the lease of the dead one
    again = store.jobs.claim("me", lease_s=60, kinds=[JobKind.GAPS])
    assert gaps is not None and again is not None and again.id == gaps.id


def test_a_process_that_lives_keeps_its_job_when_the_clock_is_set_forward(store: SqlStore, clock: Clock) -> None:
    store.jobs.enqueue(JobKind.TRAIN, KEY)
    mine = store.jobs.claim("me", lease_s=60)
    assert mine is not None and store.jobs.claim("other", lease_s=60) is None
    clock.set_by(DAY)
    assert store.jobs.claim("other", lease_s=60) is None
    clock.pass_s(20.0)
    assert store.jobs.heartbeat(mine.id, "me", progress=0.5, note="", lease_s=60)
    clock.pass_s(50.0)
    assert store.jobs.claim("other", lease_s=60) is None, "it was renewed"
    clock.pass_s(61.0)
    assert store.jobs.claim("other", lease_s=60) is not None, "now it is over"


def test_failures_stamped_ahead_hold_nothing_up_and_do_not_repeat_at_once(
    store: SqlStore, triggers: Triggers, clock: Clock
) -> None:
    triggers.tick()
    clock.set_by(DAY)
    triggers.tick()
    end(store, JobKind.RECONCILE, error="down")
    clock.set_by(-DAY)
    assert JobKind.RECONCILE not in kinds(triggers), "the cool-down of 15 s has only begun"
    clock.pass_s(20.0)
    assert JobKind.RECONCILE in kinds(triggers)


def test_a_vote_without_a_webhook_is_seen_after_the_clock_was_set_back(tmp_path: Path) -> None:
    at = Bench(tmp_path)
    at.store.projects.ensure(at.key)
    first = at.studio.add_task(at.project_id, text="one")
    at.reconcile()
    now, at.studio.now = at.studio.now, at.studio.now + timedelta(days=1)
    second = at.studio.add_task(at.project_id, text="two")
    at.reconcile()
    at.studio.now = now + timedelta(minutes=15)
    at.studio.annotate(first, 5, "A")
    at.reconcile()
    assert at.labels() == {(first, "5"): "A"}
    at.studio.now += timedelta(minutes=15)
    at.studio.annotate(second, 5, "B")
    at.reconcile()
    at.sync()  # a page that is older than the store is not taken over; its tasks are read by their ids
    assert at.labels()[second, "5"] == "B", "the cursor is not ahead again"


def test_gaps_do_not_wait_for_a_jump_of_the_clock(tmp_path: Path, clock: Clock) -> None:
    services = small_services(tmp_path, clock=clock, gaps_every_s=60.0)
    services.store.jobs.enqueue(JobKind.GAPS, KEY)
    job = services.store.jobs.claim("me", lease_s=60)
    assert job is not None
    clock.set_by(DAY)  # in the middle of the job
    run_job(services, job, owner="me")
    clock.set_by(-DAY)
    services.store.jobs.enqueue(JobKind.STATISTICS, KEY)
    statistics = services.store.jobs.claim("me", lease_s=60, kinds=[JobKind.STATISTICS])
    assert statistics is not None
    run_job(services, statistics, owner="me")
    waiting = services.store.jobs.pending(KEY, JobKind.GAPS)
    assert waiting is not None and (waiting.not_before - clock()).total_seconds() <= 60.0


@pytest.mark.parametrize("by, says", [
    (DAY, "The clock of this machine was set forward (or the machine slept) by 1 day."),
    (-7300.0, "The clock of this machine was set back by 2 hours."),
])
def test_a_jump_is_named_for_an_hour(
    by: float, says: str, store: SqlStore, triggers: Triggers, clock: Clock
) -> None:
    triggers.tick()
    assert told(store.stamps.notices(), clock()) == []
    clock.set_by(by)
    triggers.tick()
    assert [sentence.startswith(says) for sentence in told(store.stamps.notices(), clock())] == [True]
    clock.pass_s(TELL_FOR.total_seconds())
    assert told(store.stamps.notices(), clock()) == []


def test_a_clock_set_back_while_nothing_ran_is_noticed_at_the_start(
    store: SqlStore, clock: Clock, triggers: Triggers
) -> None:
    clock.set_by(DAY)
    store.projects.set_sync_state(KEY, SyncState(last_success=clock(), last_sweep=clock() - timedelta(hours=1)))
    clock.set_by(-DAY)
    triggers.tick()
    assert "set back while Polyvox was off, by 1 day" in told(store.stamps.notices(), clock())[0]
    state = store.projects.sync_state(KEY)
    assert state.last_success == clock() and state.last_sweep == clock() - timedelta(hours=1), "their order stays"


@pytest.mark.parametrize("moved, said", [(-60.0, "just now"), (-DAY, "by a clock that was ahead of this one")])
def test_the_status_does_not_call_a_moment_ahead_just_now(moved: float, said: str, clock: Clock) -> None:
    assert ago(clock() - timedelta(seconds=moved), clock()) == said

