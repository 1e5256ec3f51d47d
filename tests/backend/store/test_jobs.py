"""The queue: who may run what, and what becomes of jobs whose process dies."""

import subprocess
import sys
from datetime import timedelta
from threading import Barrier, Thread

import pytest

from backend.records import Job, JobKind, JobState
from backend.store import SqlStore, open_store
from tests.backend.store.conftest import FakeClock
from tests.backend.store.plans import watched_plans
from tests.backend.store.samples import KEY


def claim(store: SqlStore, owner: str = "me", **more: object) -> Job | None:
    return store.jobs.claim(owner, lease_s=60, **more)  # type: ignore[arg-type]


def test_a_job_runs_its_course(store: SqlStore, clock: FakeClock) -> None:
    queued = store.jobs.enqueue(JobKind.TRAIN, KEY, payload={"full": True})
    assert (queued.state, queued.attempts, queued.payload) == (JobState.QUEUED, 0, {"full": True})
    job = claim(store)
    assert job is not None and job.id == queued.id and job.state is JobState.RUNNING
    assert (job.attempts, job.lease_owner, job.started_at) == (1, "me", clock.now)
    assert claim(store) is None
    clock.move(5)
    assert store.jobs.heartbeat(job.id, "me", progress=0.5, note="half", lease_s=60)
    assert not store.jobs.heartbeat(job.id, "somebody else", progress=0.9, note="", lease_s=60)
    running = store.jobs.get(job.id)
    assert running is not None and (running.progress, running.note) == (0.5, "half")
    assert running.lease_until == clock.now + timedelta(seconds=60)
    store.jobs.finish(job.id, "me", figures={"votes": 12})
    done = store.jobs.get(job.id)
    assert done is not None and (done.state, done.progress, done.figures) == (JobState.DONE, 1.0, {"votes": 12})
    assert done.finished_at == clock.now and done.lease_until is None
    assert store.jobs.pending(KEY, JobKind.TRAIN) is None


def test_a_claim_by_id_takes_this_job_or_none(store: SqlStore, clock: FakeClock) -> None:
    store.jobs.enqueue(JobKind.SYNC, KEY)
    wanted = store.jobs.enqueue(JobKind.TRAIN, KEY)
    later = store.jobs.enqueue(JobKind.DELIVER, KEY, not_before=clock.now + timedelta(seconds=5))
    assert claim(store, job_id=later.id) is None
    assert claim(store, job_id=wanted.id, kinds=(JobKind.SYNC,)) is None
    taken = claim(store, job_id=wanted.id)
    assert taken is not None and taken.id == wanted.id
    assert claim(store, "other", job_id=wanted.id) is None
    again = store.jobs.enqueue(JobKind.TRAIN, KEY)
    assert claim(store, "other", job_id=again.id) is None  # one of its kind runs
    store.jobs.finish(wanted.id, "me", figures={})
    assert claim(store, job_id=wanted.id) is None
    assert claim(store, job_id="no such job") is None


def test_due_lists_what_a_claim_could_take(store: SqlStore, clock: FakeClock) -> None:
    heavy = (JobKind.TRAIN, JobKind.DELIVER)
    first = store.jobs.enqueue(JobKind.TRAIN, KEY)
    clock.move(1)
    second = store.jobs.enqueue(JobKind.DELIVER, KEY)
    store.jobs.enqueue(JobKind.SYNC, KEY)
    later = store.jobs.enqueue(JobKind.TRAIN, "8.1", not_before=clock.now + timedelta(seconds=5))
    assert store.jobs.due(heavy, limit=9) == [first.id, second.id]
    assert store.jobs.due(heavy, limit=1) == [first.id]
    assert claim(store, job_id=first.id) is not None
    store.jobs.enqueue(JobKind.TRAIN, KEY)  # waits for the one that runs
    assert store.jobs.due(heavy, limit=9) == [second.id]
    clock.move(61)
    due = store.jobs.due(heavy, limit=9)
    assert due[0] == first.id and later.id in due  # its process went silent
    taken = claim(store, "other", job_id=first.id)
    assert taken is not None and taken.attempts == 2


def test_a_dead_process_loses_its_jobs_at_once(store: SqlStore) -> None:
    mine, others = (store.jobs.enqueue(JobKind.TRAIN, project) for project in (KEY, "8.1"))
    assert claim(store, "host:a_1:heavy", job_id=mine.id) and claim(store, "host:ab1:heavy", job_id=others.id)
    assert store.jobs.release("host:a", error="Gone.") == 0
    assert store.jobs.release("host:a_1", error="Gone.") == 1
    found = store.jobs.get(mine.id)
    assert found is not None and (found.state, found.error) == (JobState.QUEUED, "Gone.")
    assert not store.jobs.heartbeat(mine.id, "host:a_1:heavy", progress=1.0, note="", lease_s=60)
    for _ in range(2):
        assert claim(store, "host:c:heavy", job_id=mine.id)
        assert store.jobs.release("host:c", error="Gone.") == 1
    found = store.jobs.get(mine.id)
    assert found is not None and (found.state, found.error) == (JobState.FAILED, "Gone. Tried 3 times.")


def test_replace_keeps_one_waiting_job_with_the_earlier_start(store: SqlStore, clock: FakeClock) -> None:
    later = store.jobs.enqueue(JobKind.TRAIN, KEY, payload={"a": 1}, not_before=clock.now + timedelta(seconds=60))
    assert claim(store) is None
    sooner = store.jobs.enqueue(JobKind.TRAIN, KEY, not_before=clock.now + timedelta(seconds=30))
    assert sooner.id == later.id and sooner.payload == {"a": 1}
    again = store.jobs.enqueue(JobKind.TRAIN, KEY, payload={"a": 2}, not_before=clock.now + timedelta(seconds=90))
    assert again.not_before == clock.now + timedelta(seconds=30) and again.payload == {"a": 2}
    assert store.jobs.enqueue(JobKind.TRAIN, KEY, replace=False).id != later.id
    assert len(store.jobs.recent(KEY)) == 2


def test_one_running_job_per_project_and_kind(store: SqlStore) -> None:
    first = store.jobs.enqueue(JobKind.TRAIN, KEY)
    assert claim(store) is not None
    second = store.jobs.enqueue(JobKind.TRAIN, KEY)
    assert second.id != first.id
    assert claim(store) is None
    store.jobs.enqueue(JobKind.SYNC, KEY)
    store.jobs.enqueue(JobKind.TRAIN, "8.1")
    others = [claim(store), claim(store)]
    assert {(job.kind, job.project) for job in others if job} == {(JobKind.SYNC, KEY), (JobKind.TRAIN, "8.1")}
    pending = store.jobs.pending(KEY, JobKind.TRAIN)
    assert pending is not None and pending.id == first.id
    store.jobs.finish(first.id, "me", figures={})
    job = claim(store)
    assert job is not None and job.id == second.id


def test_kinds_and_order(store: SqlStore, clock: FakeClock) -> None:
    store.jobs.enqueue(JobKind.TRAIN, KEY, not_before=clock.now - timedelta(seconds=5))
    store.jobs.enqueue(JobKind.DELIVER, KEY, not_before=clock.now - timedelta(seconds=9))
    store.jobs.enqueue(JobKind.SYNC, KEY)
    only = claim(store, kinds=[JobKind.SYNC])
    assert only is not None and only.kind is JobKind.SYNC
    assert [job.kind for job in (claim(store), claim(store)) if job] == [JobKind.DELIVER, JobKind.TRAIN]


def test_what_is_read_again_in_pieces_goes_last(store: SqlStore, clock: FakeClock) -> None:
    """However long it waited: otherwise many projects that are read again would keep a comparison waiting."""
    again = store.jobs.enqueue(JobKind.REREAD, KEY, not_before=clock.now - timedelta(seconds=9))
    new = store.jobs.enqueue(JobKind.RECONCILE, KEY)
    assert store.jobs.due([JobKind.REREAD, JobKind.RECONCILE], limit=5) == [new.id, again.id]
    assert [job.kind for job in (claim(store), claim(store)) if job] == [JobKind.RECONCILE, JobKind.REREAD]


def test_a_lease_that_ran_out_is_taken_over_and_fails_in_the_end(store: SqlStore, clock: FakeClock) -> None:
    job_id = store.jobs.enqueue(JobKind.TRAIN, KEY).id
    for attempt in (1, 2, 3):
        job = claim(store, f"process {attempt}")
        assert job is not None and (job.id, job.attempts) == (job_id, attempt)
        clock.move(59)
        assert claim(store, "too early") is None
        clock.move(2)
        if attempt == 1:
            store.jobs.enqueue(JobKind.TRAIN, "8.1", not_before=clock.now + timedelta(days=1))
    assert claim(store, "process 4") is None
    failed = store.jobs.get(job_id)
    assert failed is not None and failed.state is JobState.FAILED and "stopped answering" in failed.error
    assert failed.finished_at == clock.now


def test_the_silent_process_cannot_touch_the_job_any_more(store: SqlStore, clock: FakeClock) -> None:
    job_id = store.jobs.enqueue(JobKind.TRAIN, KEY).id
    claim(store, "old")
    clock.move(61)
    assert claim(store, "new") is not None
    assert not store.jobs.heartbeat(job_id, "old", progress=0.9, note="", lease_s=60)
    store.jobs.finish(job_id, "old", figures={"lie": 1})
    store.jobs.fail(job_id, "old", error="lie", retry_at=None)
    job = store.jobs.get(job_id)
    assert job is not None and (job.state, job.lease_owner, job.figures) == (JobState.RUNNING, "new", {})


def test_a_late_heartbeat_keeps_a_job_that_nobody_took(store: SqlStore, clock: FakeClock) -> None:
    job_id = store.jobs.enqueue(JobKind.TRAIN, KEY).id
    claim(store)
    clock.move(61)
    assert store.jobs.heartbeat(job_id, "me", progress=0.1, note="", lease_s=60)
    assert claim(store, "other") is None


def test_an_expired_job_beside_a_waiting_one(store: SqlStore, clock: FakeClock) -> None:
    first = store.jobs.enqueue(JobKind.TRAIN, KEY).id
    claim(store)
    clock.move(1)
    second = store.jobs.enqueue(JobKind.TRAIN, KEY).id
    clock.move(60)
    job = claim(store, "new")
    assert job is not None and job.id == first
    assert claim(store, "newer") is None
    store.jobs.finish(first, "new", figures={})
    job = claim(store, "new")
    assert job is not None and job.id == second


def test_failing_with_and_without_another_try(store: SqlStore, clock: FakeClock) -> None:
    job_id = store.jobs.enqueue(JobKind.SYNC, KEY).id
    claim(store)
    store.jobs.fail(job_id, "me", error="Label Studio is down.", retry_at=clock.now + timedelta(seconds=10))
    job = store.jobs.get(job_id)
    assert job is not None and (job.state, job.error) == (JobState.QUEUED, "Label Studio is down.")
    assert claim(store) is None
    assert store.jobs.enqueue(JobKind.SYNC, KEY, not_before=clock.now + timedelta(seconds=20)).id == job_id
    clock.move(10)
    job = claim(store)
    assert job is not None and job.attempts == 2
    store.jobs.fail(job_id, "me", error="for good", retry_at=None)
    job = store.jobs.get(job_id)
    assert job is not None and (job.state, job.error) == (JobState.FAILED, "for good")


def test_another_try_gives_way_to_a_job_that_waits_already(store: SqlStore, clock: FakeClock) -> None:
    first = store.jobs.enqueue(JobKind.SYNC, KEY).id
    claim(store)
    second = store.jobs.enqueue(JobKind.SYNC, KEY).id
    store.jobs.fail(first, "me", error="down", retry_at=clock.now)
    assert [(job.id, job.state) for job in store.jobs.recent(KEY) if job.id == first] == [(first, JobState.FAILED)]
    job = claim(store)
    assert job is not None and job.id == second


def test_a_claim_that_was_given_back_does_not_count(store: SqlStore, clock: FakeClock) -> None:
    job_id = store.jobs.enqueue(JobKind.TRAIN, KEY, payload={"full": True}).id
    for _ in range(9):
        job = claim(store)
        assert job is not None and (job.id, job.attempts) == (job_id, 1)
        store.jobs.give_back(job_id, "somebody else", error="lie")
        store.jobs.give_back(job_id, "me", error="Stopped.")
    job = store.jobs.get(job_id)
    assert job is not None and (job.state, job.attempts, job.error) == (JobState.QUEUED, 0, "Stopped.")
    assert store.jobs.enqueue(JobKind.TRAIN, KEY).id == job_id  # it is the one that waits
    clock.move(61)
    assert claim(store) is not None


def test_a_job_that_is_given_back_beside_a_waiting_one_waits_too(store: SqlStore, clock: FakeClock) -> None:
    first = store.jobs.enqueue(JobKind.TRAIN, KEY, payload={"full": True}).id
    claim(store)
    clock.move(1)
    second = store.jobs.enqueue(JobKind.TRAIN, KEY).id
    store.jobs.give_back(first, "me", error="Stopped.")
    assert {job.id: job.state for job in store.jobs.recent(KEY)} == {first: JobState.QUEUED, second: JobState.QUEUED}
    job = claim(store)
    assert job is not None and job.id == first


def test_old_jobs_go_but_the_last_of_each_kind_stays(store: SqlStore, clock: FakeClock) -> None:
    def ended(kind: JobKind, *, well: bool, project: str = KEY) -> str:
        clock.move(1)
        job_id = store.jobs.enqueue(kind, project).id
        assert claim(store, job_id=job_id)
        clock.move(1)
        if well:
            store.jobs.finish(job_id, "me", figures={})
        else:
            store.jobs.fail(job_id, "me", error="No.", retry_at=None)
        return job_id

    old = {ended(JobKind.SYNC, well=True) for _ in range(5)} | {ended(JobKind.TRAIN, well=False)}
    kept = {ended(JobKind.TRAIN, well=False), ended(JobKind.TRAIN, well=True)}
    kept |= {ended(JobKind.SYNC, well=True, project="8.1")}
    waits = store.jobs.enqueue(JobKind.DELIVER, KEY).id
    cut = clock.now + timedelta(seconds=1)
    clock.move(2)
    kept |= {waits, ended(JobKind.SYNC, well=True)}
    assert store.jobs.prune(cut, limit=2) == 2
    assert store.jobs.prune(cut) == len(old) - 2
    assert store.jobs.prune(cut) == 0
    assert {job.id for job in store.jobs.recent(limit=99)} == kept


def test_recent_is_newest_first(store: SqlStore, clock: FakeClock) -> None:
    for kind in (JobKind.SYNC, JobKind.TRAIN, JobKind.DELIVER):
        store.jobs.enqueue(kind, KEY)
        clock.move(1)
    store.jobs.enqueue(JobKind.SYNC, "8.1")
    assert [job.kind for job in store.jobs.recent(KEY, limit=2)] == [JobKind.DELIVER, JobKind.TRAIN]
    assert len(store.jobs.recent()) == 4
    assert [job.project for job in store.jobs.recent(kind=JobKind.SYNC)] == ["8.1", KEY]
    assert [job.kind for job in store.jobs.recent(KEY, kind=JobKind.TRAIN, limit=1)] == [JobKind.TRAIN]
    assert store.jobs.recent(KEY, kind=JobKind.ENCODE) == []


def test_of_each_kind_the_newest_that_ended(store: SqlStore, clock: FakeClock) -> None:
    assert store.jobs.last_ended(KEY) == []
    wanted = {}
    for kind in (JobKind.SYNC, JobKind.TRAIN, JobKind.SYNC, JobKind.DELIVER):
        job_id = store.jobs.enqueue(kind, KEY).id
        assert claim(store, job_id=job_id)
        if kind is JobKind.TRAIN:
            store.jobs.fail(job_id, "me", error="No.", retry_at=None)
        else:
            store.jobs.finish(job_id, "me", figures={})
        wanted[kind] = job_id
        clock.move(1)
    other = store.jobs.enqueue(JobKind.SYNC, "8.1").id
    assert claim(store, job_id=other)
    store.jobs.finish(other, "me", figures={})
    store.jobs.enqueue(JobKind.SYNC, KEY)
    assert {job.kind: job.id for job in store.jobs.last_ended(KEY)} == wanted


def test_jobs_that_were_cut_off(store: SqlStore, clock: FakeClock) -> None:
    def begun(kind: JobKind, project: str = KEY) -> str:
        clock.move(1)
        job_id = store.jobs.enqueue(kind, project).id
        assert claim(store, "host:heavy", job_id=job_id)
        return job_id

    def found(age_s: float = 0.0) -> list[str]:
        return [job.id for job in store.jobs.interrupted(KEY, since=clock.now - timedelta(seconds=age_s))]

    died, stopped, silent, failed = (
        begun(kind) for kind in (JobKind.DELIVER, JobKind.TRAIN, JobKind.SYNC, JobKind.ENCODE))
    begun(JobKind.SYNC, "8.1")
    store.jobs.fail(failed, "host:heavy", error="No.", retry_at=None)
    store.jobs.give_back(stopped, "host:heavy", error="Stopped.")
    assert found() == [stopped]
    clock.move(1)
    assert store.jobs.release("host", error="Gone.") == 3 and found() == [*sorted([died, silent]), stopped]
    for job_id in (died, stopped):
        assert claim(store, "host:heavy", job_id=job_id)
        store.jobs.finish(job_id, "host:heavy", figures={})
    ended = clock.now
    clock.move(5)
    assert found() == [silent] and set(found(age_s=5)) == {died, stopped, silent}
    done = store.jobs.get(stopped)
    assert done is not None and done.interrupted_at == ended - timedelta(seconds=1) and done.attempts == 1
    assert claim(store, "host:heavy", job_id=silent)
    clock.move(61)
    store.jobs.enqueue(JobKind.GAPS, KEY)
    assert claim(store, "other:heavy") is not None  # takes back what went silent
    again = store.jobs.get(silent)
    assert again is not None and again.interrupted_at == clock.now - timedelta(seconds=1)  # when its lease ran out


def test_the_status_walks_along_indexes(store: SqlStore, clock: FakeClock) -> None:
    if store.database.engine.dialect.name != "sqlite":
        return  # PostgreSQL's choice depends on the sizes of tables
    plans = watched_plans(store, "jobs")
    store.jobs.interrupted(KEY, since=clock.now)
    assert any("USING INDEX ix_jobs_interrupted" in plan for plan in plans), plans
    plans.clear()
    store.jobs.last_ended(KEY)
    assert sum("USING INDEX ix_jobs_kind (project=? AND kind=?)" in plan for plan in plans) == len(JobKind), plans


def test_threads_never_get_the_same_job(store: SqlStore) -> None:
    ids = {store.jobs.enqueue(JobKind.ENCODE, f"{number}.1").id for number in range(20)}
    taken: list[str] = []
    barrier = Barrier(4)

    def work(owner: str) -> None:
        barrier.wait()
        while (job := store.jobs.claim(owner, lease_s=60)) is not None:
            taken.append(job.id)

    threads = [Thread(target=work, args=(f"thread {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(taken) == sorted(ids)


def test_threads_run_one_job_of_a_kind_at_a_time(store: SqlStore) -> None:
    for _ in range(8):
        store.jobs.enqueue(JobKind.TRAIN, KEY, replace=False)
    claimed: list[Job | None] = []
    barrier = Barrier(4)

    def work(owner: str) -> None:
        barrier.wait()
        claimed.append(store.jobs.claim(owner, lease_s=60))

    threads = [Thread(target=work, args=(f"thread {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sum(job is not None for job in claimed) == 1


CLAIMER = """
import sys
from backend.store import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
while (job := store.jobs.claim(sys.argv[2], lease_s=60)) is not None:
    print(job.id, flush=True)
"""


@pytest.mark.timeout(120)
def test_processes_never_get_the_same_job(url: str) -> None:
    store = open_store(url)
    ids = {store.jobs.enqueue(JobKind.ENCODE, f"{number}.1").id for number in range(30)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, url, f"process {number}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    outputs = [process.communicate("go\n", timeout=60)[0].split() for process in processes]
    assert sorted(job_id for output in outputs for job_id in output) == sorted(ids)
    store.close()


def test_counts_by_kind_and_state(store: SqlStore) -> None:
    for project in (KEY, "8.1", "9.1"):
        store.jobs.enqueue(JobKind.TRAIN, project)
    store.jobs.enqueue(JobKind.SYNC, KEY)
    assert claim(store) is not None
    failing = claim(store)
    assert failing is not None
    store.jobs.fail(failing.id, "me", error="No.", retry_at=None)
    every = store.jobs.counts(list(JobState))
    assert sum(every.values()) == 4
    assert {state for _, state in every} == {JobState.RUNNING, JobState.FAILED, JobState.QUEUED}
    assert store.jobs.counts([JobState.FAILED]) == {(failing.kind, JobState.FAILED): 1}
    assert store.jobs.counts([JobState.DONE]) == {}
