"""Every rule of the triggers as rows: a situation -> the jobs that are queued."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.records import (
    Delivery,
    DeliveryStep,
    Job,
    JobKind,
    JobState,
    SyncState,
    Task,
    TaskSnapshot,
    Verdict,
    Version,
    VoteCounts,
)
from backend.services.trigger_rules import Lately, Situation, decide, growing, lately, rejected_in_a_row
from backend.services.triggers import Triggers
from backend.settings import Settings
from backend.store import open_store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = Settings(label_studio_url="http://ls", label_studio_api_key="key")
CONNECTED = {"label_studio_url": "http://ls", "label_studio_api_key": "key"}


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def votes(changes: int, *, total: int | None = None, classes: int = 2, quiet_s: float = 1.0) -> VoteCounts:
    return VoteCounts(total=changes if total is None else total, tasks_with_votes=5, annotators=2, classes=classes,
                      last_change=ago(quiet_s), changes=changes)


def version(
    number: int, *, changes: int, published: bool = True, age_s: float = 1000.0, started_from: str = "r1",
) -> Version:
    return Version(project="1.1", name=f"r{number}", number=number, path="p",
                   verdict=Verdict.PUBLISHED if published else Verdict.REJECTED, reason="",
                   figures={"started_from": started_from}, changes=changes,
                   created_at=ago(age_s))


def delivered(name: str = "r1", *, step: DeliveryStep = DeliveryStep.DONE, age_s: float = 1000.0) -> Delivery:
    return Delivery(project="1.1", version=f"consensus@{name}", step=step, started_at=ago(age_s), finished_at=None,
                    imported_through=7)


def situation(**changes: Any) -> Situation:
    """Idle unless changed: read a minute ago, 30 votes, r1 published from all of them and delivered."""
    idle: dict[str, Any] = {
        "now": NOW, "started_at": ago(5000), "settings": SETTINGS, "connected": True, "votes": votes(30, quiet_s=500),
        "sync": SyncState(last_success=ago(60)), "tried": (version(1, changes=30),),
        "published": version(1, changes=30), "delivery": delivered(),
        "lately": {JobKind.DELIVER: Lately(ended_at=ago(900), changes=30)},
    }
    return Situation(**(idle | changes))


def with_lately(kind: JobKind, **about: Any) -> dict[JobKind, Lately]:
    return {JobKind.DELIVER: Lately(ended_at=ago(900), changes=30), kind: Lately(**about)}


NEVER: dict[str, Any] = {"tried": (), "published": None, "delivery": None}
REJECTED = (version(2, changes=30, published=False, age_s=100), version(1, changes=30))
TABLE: list[tuple[str, dict[str, Any], set[str]]] = [
    ("idle", {}, set()),
    # sync
    ("dirty", {"dirty": 1}, {"sync"}),
    ("dirty, not connected", {"dirty": 1, "connected": False}, set()),
    ("dirty, sync runs", {"dirty": 1, "lately": with_lately(JobKind.SYNC, pending=True)}, set()),
    ("dirty, sync just failed", {"dirty": 1, "lately": with_lately(JobKind.SYNC, failures=1, ended_at=ago(2))}, set()),
    ("dirty, sync failed a while ago",
     {"dirty": 1, "lately": with_lately(JobKind.SYNC, failures=1, ended_at=ago(6))}, {"sync"}),
    ("dirty, failed often, one minute at most",
     {"dirty": 1, "lately": with_lately(JobKind.SYNC, failures=50, ended_at=ago(61))}, {"sync"}),
    ("dirty, sync waits after a failure, nothing new",
     {"dirty": 1, "newest_mark": 7, "lately": with_lately(JobKind.SYNC, pending=True, starts_at=ago(-200), mark=7)},
     set()),
    ("dirty, sync waits after a failure, a new mark",
     {"dirty": 1, "newest_mark": 8, "lately": with_lately(JobKind.SYNC, pending=True, starts_at=ago(-200), mark=7)},
     {"sync"}),
    ("dirty, sync starts at once, a new mark",
     {"dirty": 1, "newest_mark": 8, "lately": with_lately(JobKind.SYNC, pending=True, starts_at=ago(-0.4), mark=7)},
     set()),
    ("dirty, sync runs, a new mark",
     {"dirty": 1, "newest_mark": 8, "lately": with_lately(JobKind.SYNC, pending=True, mark=7)}, set()),
    ("dirty, sync just failed for good, a new mark",
     {"dirty": 1, "newest_mark": 8, "lately": with_lately(JobKind.SYNC, failures=1, ended_at=ago(2), mark=7)},
     {"sync"}),
    # reconcile
    ("never read", {"sync": SyncState()}, {"reconcile"}),
    ("never read, not connected", {"sync": SyncState(), "connected": False}, set()),
    ("the process started since", {"started_at": ago(30)}, {"reconcile"}),
    ("read long ago", {"sync": SyncState(last_success=ago(301))}, {"reconcile"}),
    ("read almost that long ago", {"sync": SyncState(last_success=ago(299))}, set()),
    ("reading fails", {"sync": SyncState(last_success=ago(999)),
                       "lately": with_lately(JobKind.RECONCILE, failures=3, ended_at=ago(50))}, set()),
    ("reading failed, time to try again", {"sync": SyncState(last_success=ago(999)),
     "lately": with_lately(JobKind.RECONCILE, failures=3, ended_at=ago(61))}, {"reconcile"}),
    # train: the first
    ("too few votes", NEVER | {"votes": votes(19, quiet_s=99)}, set()),
    ("enough votes", NEVER | {"votes": votes(20)}, {"train"}),
    ("enough votes, not connected any more", NEVER | {"votes": votes(20), "connected": False}, {"train"}),
    ("many changes, few votes left", NEVER | {"votes": votes(90, total=19)}, set()),
    ("all say the same", NEVER | {"votes": votes(50, classes=1)}, set()),
    ("first reading still runs", NEVER | {"votes": votes(20), "sync": SyncState(),
                                          "lately": with_lately(JobKind.RECONCILE, pending=True)}, set()),
    ("a later reading runs", NEVER | {"votes": votes(20), "lately": with_lately(JobKind.RECONCILE, pending=True)},
     {"train"}),
    # train: the next (a change of votes also moves the own predictions on)
    ("nine new votes, no quiet", {"votes": votes(39)}, set()),
    ("ten new votes", {"votes": votes(40)}, {"train", "deliver"}),
    ("one new vote, no quiet", {"votes": votes(31, quiet_s=19)}, set()),
    ("one new vote, quiet", {"votes": votes(31, quiet_s=21)}, {"train", "deliver"}),
    ("new votes, training runs", {"votes": votes(40), "lately": with_lately(JobKind.TRAIN, pending=True)},
     {"deliver"}),
    ("training failed on these votes, the wait is over", {
        "votes": votes(40), "lately": with_lately(JobKind.TRAIN, failures=1, changes=40, ended_at=ago(61))},
     {"deliver", "train"}),
    ("training failed often on these votes, the wait is not over", {
        "votes": votes(40), "lately": with_lately(JobKind.TRAIN, failures=7, changes=40, ended_at=ago(3599))},
     {"deliver"}),
    ("training failed for ever on these votes, one hour at most", {
        "votes": votes(40), "lately": with_lately(JobKind.TRAIN, failures=70, changes=40, ended_at=ago(3601))},
     {"deliver", "train"}),
    ("training failed on earlier votes", {
        "votes": votes(50), "lately": with_lately(JobKind.TRAIN, failures=1, changes=40, ended_at=ago(61))},
     {"deliver", "train"}),
    ("training failed often on earlier votes, five minutes at most", {
        "votes": votes(50), "lately": with_lately(JobKind.TRAIN, failures=70, changes=40, ended_at=ago(301))},
     {"deliver", "train"}),
    ("training failed often on earlier votes, not long ago", {
        "votes": votes(50), "lately": with_lately(JobKind.TRAIN, failures=70, changes=40, ended_at=ago(299))},
     {"deliver"}),
    ("training failed on earlier votes just now", {
        "votes": votes(50), "lately": with_lately(JobKind.TRAIN, failures=1, changes=40, ended_at=ago(59))},
     {"deliver"}),
    # after a rejected version
    ("rejected: one full retrain without new votes", {"tried": REJECTED}, {"train"}),
    ("rejected, and it had been trained from scratch", {
        "tried": (version(2, changes=30, published=False, age_s=100, started_from="scratch"), *REJECTED[1:])}, set()),
    ("rejected just now", {"tried": (version(2, changes=30, published=False, age_s=39), *REJECTED[1:])}, set()),
    ("rejected, and the full retrain failed", {
        "tried": REJECTED, "lately": with_lately(JobKind.TRAIN, failures=1, changes=30, ended_at=ago(59))}, set()),
    ("rejected, and the full retrain failed a while ago", {
        "tried": REJECTED, "lately": with_lately(JobKind.TRAIN, failures=1, changes=30, ended_at=ago(61))}, {"train"}),
    ("rejected twice, no new votes",
     {"tried": (version(3, changes=30, published=False, age_s=9000), *REJECTED)}, set()),
    ("rejected twice, new votes, wait is over", {
        "tried": (version(3, changes=30, published=False, age_s=81), *REJECTED), "votes": votes(40)},
     {"train", "deliver"}),
    ("rejected twice, new votes, wait is not over", {
        "tried": (version(3, changes=30, published=False, age_s=79), *REJECTED), "votes": votes(40)}, {"deliver"}),
    ("the first was rejected, no new votes",
     NEVER | {"tried": (version(1, changes=30, published=False, age_s=9000),)}, set()),
    # where the files of the published version are gone
    ("lost", {"lost": True}, {"train"}),
    ("lost, training runs", {"lost": True, "lately": with_lately(JobKind.TRAIN, pending=True)}, set()),
    ("lost, too few votes left", {"lost": True, "votes": votes(30, total=19, quiet_s=500)}, set()),
    ("lost, training failed just now",
     {"lost": True, "lately": with_lately(JobKind.TRAIN, failures=1, changes=30, ended_at=ago(59))}, set()),
    ("lost, training failed a while ago",
     {"lost": True, "lately": with_lately(JobKind.TRAIN, failures=1, changes=30, ended_at=ago(61))}, {"train"}),
    ("lost, training fails again and again",
     {"lost": True, "lately": with_lately(JobKind.TRAIN, failures=7, changes=30, ended_at=ago(3599))}, set()),
    ("lost, the next one was rejected just now", {"lost": True, "tried": (
        version(2, changes=30, published=False, age_s=39, started_from="scratch"), *REJECTED[1:])}, set()),
    ("lost, the next one was rejected a while ago", {"lost": True, "tried": (
        version(2, changes=30, published=False, age_s=41, started_from="scratch"), *REJECTED[1:])}, {"train"}),
    # deliver
    ("published, nothing delivered", {"delivery": None}, {"deliver"}),
    ("another version is published", {"published": version(2, changes=30)}, {"deliver"}),
    ("another is published, delivered just now",
     {"published": version(2, changes=30), "delivery": delivered(age_s=299)}, set()),
    ("new tasks", {"newest_task": 8}, {"deliver"}),
    ("new tasks, delivered just now", {"newest_task": 8, "delivery": delivered(age_s=299)}, set()),
    ("no new tasks", {"newest_task": 7}, set()),
    ("interrupted", {"delivery": delivered(step=DeliveryStep.DELETE, age_s=10)}, {"deliver"}),
    ("interrupted, but it runs", {"delivery": delivered(step=DeliveryStep.IMPORT, age_s=10),
                                  "lately": with_lately(JobKind.DELIVER, pending=True)}, set()),
    ("another is published, nothing could be delivered when it was due", {
        "published": version(2, changes=30),
        "lately": with_lately(JobKind.DELIVER, began_at=ago(300), ended_at=ago(299), version="r2", changes=30)}, set()),
    ("another is published, nothing could be delivered a while ago", {
        "published": version(2, changes=30),
        "lately": with_lately(JobKind.DELIVER, began_at=ago(302), ended_at=ago(301), version="r2", changes=30)},
     {"deliver"}),
    ("another is published, own predictions went before the consensus was due", {
        "published": version(2, changes=30), "delivery": delivered(age_s=301),
        "lately": with_lately(JobKind.DELIVER, began_at=ago(2), ended_at=ago(0.5), version="r2", changes=30)},
     {"deliver"}),
    ("another is published since nothing could be delivered", {
        "published": version(2, changes=30),
        "lately": with_lately(JobKind.DELIVER, began_at=ago(9), ended_at=ago(8), version="r1", changes=30)},
     {"deliver"}),
    ("new tasks, nothing could be delivered", {
        "newest_task": 8,
        "lately": with_lately(JobKind.DELIVER, began_at=ago(9), ended_at=ago(8), version="r1", changes=30)}, set()),
    ("published, nothing could be delivered", {
        "delivery": None,
        "lately": with_lately(JobKind.DELIVER, began_at=ago(9), ended_at=ago(8), version="r1", changes=30)}, set()),
    ("interrupted, and then nothing could be delivered", {
        "delivery": delivered(step=DeliveryStep.IMPORT, age_s=10),
        "lately": with_lately(JobKind.DELIVER, began_at=ago(9), ended_at=ago(8), version="r1", changes=30)}, set()),
    ("interrupted, before that it went well", {
        "delivery": delivered(step=DeliveryStep.IMPORT, age_s=8),
        "lately": with_lately(JobKind.DELIVER, began_at=ago(30), ended_at=ago(20), version="r1", changes=30)},
     {"deliver"}),
    ("delivery switched off", {"delivery": None, "settings": Settings(deliver=False, **CONNECTED)}, set()),
    ("shadow mode", {"delivery": None, "settings": Settings(shadow_mode=True, **CONNECTED)}, set()),
    ("nowhere to deliver", {"delivery": None, "connected": False}, set()),
]


@pytest.mark.parametrize(("changes", "wanted"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_table(changes: dict[str, Any], wanted: set[str]) -> None:
    assert {wish.kind.value for wish in decide(situation(**changes))} == wanted


def test_sync_waits_to_gather_webhooks() -> None:
    (wish,) = decide(situation(dirty=3))
    assert wish.not_before == NOW + timedelta(seconds=SETTINGS.sync_delay_s)


def test_training_goes_from_scratch_after_a_rejected_version_only() -> None:
    (retrain,) = decide(situation(tried=REJECTED))
    assert retrain.payload == {"changes": 30, "full": True}
    train = next(wish for wish in decide(situation(votes=votes(40))) if wish.kind is JobKind.TRAIN)
    assert train.payload == {"changes": 40, "full": False}
    (anew,) = decide(situation(lost=True))
    assert anew.payload == {"changes": 30, "full": True}


def test_back_off_doubles_up_to_a_limit() -> None:
    assert [growing(5, times, 60) for times in (1, 2, 3, 4, 5, 1000)] == [5, 10, 20, 40, 60, 60]


def test_rejected_in_a_row_counts_from_the_newest() -> None:
    assert rejected_in_a_row(()) == 0
    assert rejected_in_a_row(REJECTED) == 1
    assert rejected_in_a_row(REJECTED[::-1]) == 0


def job(kind: JobKind, state: JobState, age_s: float, changes: int = 0) -> Job:
    ended = ago(age_s) if state in (JobState.DONE, JobState.FAILED) else None
    return Job(id=f"{kind}-{age_s}", kind=kind, project="1.1", payload={"changes": changes}, state=state, progress=0.0,
               note="", error="", figures={}, attempts=1, created_at=ago(age_s + 1), not_before=ago(age_s + 1),
               started_at=None, finished_at=ended, lease_until=None, lease_owner="")


def test_lately_counts_failures_up_to_now() -> None:
    jobs = [
        job(JobKind.TRAIN, JobState.QUEUED, 1), job(JobKind.SYNC, JobState.DONE, 2),
        job(JobKind.TRAIN, JobState.FAILED, 3, changes=7), job(JobKind.TRAIN, JobState.FAILED, 4),
        job(JobKind.TRAIN, JobState.DONE, 5), job(JobKind.TRAIN, JobState.FAILED, 6),
    ]
    waits = Lately(pending=True, failures=2, ended_at=ago(3), changes=7, starts_at=ago(2))
    assert lately(jobs, JobKind.TRAIN) == waits
    assert lately([job(JobKind.TRAIN, JobState.RUNNING, 1), *jobs], JobKind.TRAIN).starts_at is None
    assert lately(jobs, JobKind.SYNC) == Lately(ended_at=ago(2))
    assert lately(jobs, JobKind.DELIVER) == Lately()


# --- Triggers on a real store ---------------------------------------------------------------------------------------


def test_ticks_queue_each_job_once(tmp_path: Any) -> None:
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: NOW)
    store.projects.ensure("1.1")
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: NOW)
    assert [job.kind for job in triggers.tick()] == [JobKind.RECONCILE]
    assert triggers.tick() == []
    store.tasks.mark_dirty("1.1", [5])
    assert [job.kind for job in triggers.tick()] == [JobKind.SYNC]
    assert triggers.tick() == []
    store.close()


def test_a_new_mark_ends_the_wait_after_an_outage(tmp_path: Any) -> None:
    """A webhook shows that Label Studio is back; without one the waiting job keeps its time."""
    now = [NOW]
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())
    project = store.projects.ensure("1.1")
    store.projects.set_sync_state("1.1", SyncState(last_success=NOW))
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())
    store.tasks.mark_dirty("1.1", [5])
    (job,) = triggers.tick_project(project)
    now[0] += timedelta(seconds=1)
    assert store.jobs.claim("me", lease_s=60) is not None
    store.jobs.fail(job.id, "me", error="down", retry_at=now[0] + timedelta(seconds=300))
    now[0] += timedelta(seconds=2)
    assert triggers.tick_project(project) == []
    store.tasks.mark_dirty("1.1", [5])  # the same task again counts too
    (again,) = triggers.tick_project(project)
    assert again.id == job.id and again.not_before == now[0] + timedelta(seconds=0.5)
    assert triggers.tick_project(project) == []
    store.close()


def test_a_job_that_is_pending_for_long_is_not_queued_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that runs through more syncs than are looked at."""
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: NOW)
    project = store.projects.ensure("1.1")
    store.jobs.enqueue(JobKind.RECONCILE, "1.1")
    store.jobs.claim("me", lease_s=60)
    monkeypatch.setattr("backend.services.triggers.JOBS_LOOKED_AT", 0)
    assert Triggers(store=store, settings=SETTINGS, clock=lambda: NOW).tick_project(project) == []
    store.close()


def test_a_failure_is_remembered_however_many_jobs_of_other_kinds_follow(tmp_path: Any) -> None:
    now = [NOW]
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())
    project = store.projects.ensure("1.1")
    for kind, times in ((JobKind.TRAIN, 3), (JobKind.SYNC, 100)):
        for _ in range(times):
            now[0] += timedelta(milliseconds=1)
            store.jobs.enqueue(kind, "1.1", payload={"changes": 5})
            job = store.jobs.claim("me", lease_s=60)
            assert job is not None
            if kind is JobKind.TRAIN:
                store.jobs.fail(job.id, "me", error="No.", retry_at=None)
            else:
                store.jobs.finish(job.id, "me", figures={})
    about = Triggers(store=store, settings=SETTINGS, clock=lambda: now[0],
        seconds=lambda: now[0].timestamp()).situation(project).of(JobKind.TRAIN)
    assert (about.failures, about.changes) == (3, 5)
    store.close()


def test_rows_of_old_jobs_go_every_hour(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOW]
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())
    monkeypatch.setattr("backend.services.triggers.PRUNE_AT_ONCE", 2)
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())

    def tick_after(wait: timedelta) -> int:
        now[0] += wait
        triggers.tick()
        return len(store.jobs.recent(limit=99))

    assert tick_after(timedelta()) == 0
    for _ in range(4):
        now[0] += timedelta(seconds=1)
        store.jobs.enqueue(JobKind.SYNC, "1.1")
        job = store.jobs.claim("me", lease_s=60)
        assert job is not None
        store.jobs.finish(job.id, "me", figures={})
    assert tick_after(timedelta(days=6, hours=23)) == 4
    assert tick_after(timedelta(minutes=59)) == 4
    assert tick_after(timedelta(minutes=2)) == 2
    assert tick_after(timedelta(seconds=1)) == 1  # there were more than go at once
    store.close()


def test_a_delivery_that_delivers_nothing_is_not_asked_for_again_at_once(tmp_path: Any) -> None:
    now = [NOW]
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())
    project = store.projects.ensure("1.1")
    store.projects.set_sync_state("1.1", SyncState(last_success=NOW))
    store.versions.add(replace(version(1, changes=0), created_at=NOW))
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: now[0],
        seconds=lambda: now[0].timestamp())
    times = 0
    for _ in range(299):
        now[0] += timedelta(seconds=1)
        for job in triggers.tick_project(project):
            assert job.kind is JobKind.DELIVER and store.jobs.claim("me", lease_s=60) is not None
            store.jobs.finish(job.id, "me", figures={"reason": "There is no published version yet."})
            times += 1
    assert times == 1
    now[0] += timedelta(seconds=2)
    assert [job.kind for job in triggers.tick_project(project)][-1] is JobKind.DELIVER
    store.close()


def test_situation_counts(tmp_path: Any) -> None:
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: NOW)
    project = store.projects.ensure("1.1")
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: NOW)
    assert (triggers.situation(project).newest_task, triggers.situation(project).dirty) == (0, 0)
    for number in (4, 9):
        store.tasks.take_over("1.1", [TaskSnapshot(
            task=Task(id=number, data={}, updated_at=NOW), annotations=[], votes=[])])
        assert triggers.situation(project).newest_task == number
    store.tasks.remove("1.1", [9])
    store.tasks.mark_dirty("1.1", [4])
    assert (triggers.situation(project).newest_task, triggers.situation(project).dirty) == (4, 1)
    store.close()


def test_a_projects_own_settings_hold(tmp_path: Any) -> None:
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: NOW)
    store.projects.ensure("1.1")
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: NOW)
    project = store.projects.get("1.1")
    assert project is not None and triggers.delivers(project)
    store.projects.update_settings("1.1", {"shadow_mode": True})
    project = store.projects.get("1.1")
    assert project is not None and not triggers.delivers(project)
    store.close()


def test_start_training_reads_first_and_what_was_asked_for_survives_a_merge(tmp_path: Any) -> None:
    store = open_store(f"sqlite:///{tmp_path}/db.sqlite3", clock=lambda: NOW)
    store.projects.ensure("1.1")
    triggers = Triggers(store=store, settings=SETTINGS, clock=lambda: NOW)
    first = triggers.start_training("1.1")
    assert (first.kind, first.payload) == (JobKind.RECONCILE, {"then_train": True})
    forced = triggers.deliver_now("1.1", force=True)
    merged = triggers.deliver_now("1.1")
    assert merged.id == forced.id and merged.payload["force"] is True
    alone = Triggers(store=store, settings=Settings(), clock=lambda: NOW)
    assert alone.start_training("1.1").kind is JobKind.TRAIN
    store.close()
