"""One claimed job: what it runs, how its end is recorded, what follows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backend.bootstrap import Services
from backend.errors import JobFailed, LabelStudioError
from backend.jobs import RUNNERS, WORKED_S, run_job
from backend.ports import Progress
from backend.records import Annotation, Job, JobKind, JobState, Task, TaskSnapshot
from tests.backend.small_services import nothing, small_services

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABEL_STUDIO = {"label_studio_url": "http://ls", "label_studio_api_key": "key"}


def raising(error: Exception) -> Any:
    def work(project: str, progress: Progress) -> Mapping[str, Any]:
        raise error

    return work


def queue_and_run(
    services: Services, kind: JobKind, payload: dict[str, Any] | None = None, *, stop: threading.Event | None = None
) -> Job:
    services.store.jobs.enqueue(kind, "1.1", payload=payload)
    job = services.store.jobs.claim("me", lease_s=60, kinds=(kind,))
    assert job is not None
    run_job(services, job, owner="me", stop=stop)
    ended = services.store.jobs.get(job.id)
    assert ended is not None
    return ended


def waiting(services: Services) -> dict[JobKind, Mapping[str, Any]]:
    return {job.kind: job.payload for job in services.store.jobs.recent() if job.state is JobState.QUEUED}


@pytest.mark.parametrize(("kind", "payload", "options"), [
    (JobKind.SYNC, {}, {}),
    (JobKind.RECONCILE, {}, {}),
    (JobKind.TRAIN, {"full": True}, {"full": True}),
    (JobKind.TRAIN, {}, {"full": False}),
    (JobKind.DELIVER, {"force": True}, {"force": True}),
    (JobKind.DELIVER, {"changes": 3}, {"force": False}),
])
def test_each_kind_goes_to_its_service(tmp_path: Path, kind: JobKind, payload: dict[str, Any], options: Any) -> None:
    def work(project: str, progress: Progress) -> Mapping[str, Any]:
        progress(0.5, "half")
        return {"count": 3}

    asked: list[dict[str, Any]] = []
    services = small_services(tmp_path, asked=asked, **{f"on_{kind}": work})
    job = queue_and_run(services, kind, payload)
    assert (job.state, job.progress, job.figures) == (JobState.DONE, 1.0, {"count": 3})
    assert asked == [{"project": "1.1", **options}]


def test_expected_failures_are_recorded_as_their_sentence(tmp_path: Path) -> None:
    services = small_services(tmp_path, on_train=raising(JobFailed("There are too few votes.")))
    job = queue_and_run(services, JobKind.TRAIN)
    assert (job.state, job.error) == (JobState.FAILED, "There are too few votes.")


@pytest.mark.parametrize(("error", "after_s"), [
    (JobFailed("Later.", retry_in_s=42.0), 42.0),
    (LabelStudioError("Label Studio does not answer.", retry=True), 5.0),
    (LabelStudioError("The key is refused.", retry=False), None),
    (RuntimeError("boom"), 5.0),
])
def test_what_may_work_later_is_tried_again(tmp_path: Path, error: Exception, after_s: float | None) -> None:
    services = small_services(tmp_path, on_sync=raising(error), clock=lambda: NOW)
    job = queue_and_run(services, JobKind.SYNC)
    assert job.state is (JobState.FAILED if after_s is None else JobState.QUEUED)
    if after_s is not None:
        assert job.not_before == NOW + timedelta(seconds=after_s)


def test_after_the_last_attempt_it_fails(tmp_path: Path) -> None:
    times = [NOW]
    failing = raising(LabelStudioError("Down.", retry=True))
    services = small_services(tmp_path, on_sync=failing, clock=lambda: times[0], job_attempts=2)
    assert queue_and_run(services, JobKind.SYNC).state is JobState.QUEUED
    times[0] += timedelta(seconds=10)
    assert queue_and_run(services, JobKind.SYNC).state is JobState.FAILED


def test_unexpected_errors_show_a_reference_and_no_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    services = small_services(tmp_path, on_train=raising(KeyError("my secret label")), job_attempts=1)
    with caplog.at_level(logging.INFO, logger="backend"):
        job = queue_and_run(services, JobKind.TRAIN)
    reference = job.error.split("reference ")[1].split(";")[0]
    assert "secret" not in job.error and len(reference) == 8
    record = next(record for record in caplog.records if reference in record.getMessage())
    assert record.exc_info is not None and "secret" not in record.getMessage()


def test_progress_reaches_the_row_and_the_lease_is_held(tmp_path: Path) -> None:
    seen: list[Job] = []

    def work(project: str, progress: Progress) -> Mapping[str, Any]:
        progress(0.25, "reading")
        time.sleep(0.5)
        seen.extend(services.store.jobs.recent())
        time.sleep(0.5)
        seen.extend(services.store.jobs.recent())
        progress(7.0, "more than all")
        return {}

    services = small_services(tmp_path, on_train=work, job_lease_s=0.6)
    services.store.jobs.enqueue(JobKind.TRAIN, "1.1")
    job = services.store.jobs.claim("me", lease_s=0.6)
    assert job is not None
    run_job(services, job, owner="me")
    assert [(each.progress, each.note) for each in seen] == [(0.25, "reading")] * 2
    assert job.lease_until is not None and seen[1].lease_until is not None
    assert seen[0].lease_until != job.lease_until  # though the job said nothing meanwhile
    assert seen[1].lease_until > seen[0].lease_until  # type: ignore[operator]
    ended = services.store.jobs.get(job.id)
    assert ended is not None and ended.state is JobState.DONE


def test_a_lost_lease_stops_the_job_and_records_nothing(tmp_path: Path) -> None:
    reached = []

    def work(project: str, progress: Progress) -> Mapping[str, Any]:
        (mine,) = services.store.jobs.recent()
        services.store.jobs.fail(mine.id, "me", error="taken", retry_at=datetime.now(UTC))
        services.store.jobs.claim("other", lease_s=60)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            progress(0.1, "goes on")
            time.sleep(0.05)
        reached.append("the end")
        return {}

    services = small_services(tmp_path, on_train=work, job_lease_s=0.4)
    job = queue_and_run(services, JobKind.TRAIN)
    assert not reached
    assert (job.state, job.lease_owner) == (JobState.RUNNING, "other")


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_stop_puts_the_job_back(tmp_path: Path, when: str) -> None:
    stop = threading.Event()

    def work(project: str, progress: Progress) -> Mapping[str, Any]:
        stop.set()
        progress(0.5, "half")
        raise AssertionError("the progress call must not return")

    services = small_services(tmp_path, on_train=work)
    if when == "before":
        stop.set()
    job = queue_and_run(services, JobKind.TRAIN, stop=stop)
    assert (job.state, job.attempts) == (JobState.QUEUED, 0)
    again = services.store.jobs.claim("next", lease_s=60)
    assert again is not None and again.id == job.id


def test_however_often_a_job_is_stopped_it_keeps_its_attempts(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    services = small_services(tmp_path, on_train=raising(JobFailed("Later.", retry_in_s=0.0)), job_attempts=2)
    for _ in range(5):
        assert queue_and_run(services, JobKind.TRAIN, stop=stop).state is JobState.QUEUED
    assert queue_and_run(services, JobKind.TRAIN).state is JobState.QUEUED  # the first failure
    assert queue_and_run(services, JobKind.TRAIN).state is JobState.FAILED


@pytest.mark.parametrize(("verdict", "settings", "follows"), [
    ("published", LABEL_STUDIO, True),
    ("rejected", LABEL_STUDIO, False),
    ("published", {}, False),
    ("published", LABEL_STUDIO | {"shadow_mode": True}, False),
    ("published", LABEL_STUDIO | {"deliver": False}, False),
])
def test_a_published_version_is_delivered(tmp_path: Path, verdict: str, settings: Any, follows: bool) -> None:
    services = small_services(tmp_path, on_train=lambda *_: {"verdict": verdict}, **settings)
    queue_and_run(services, JobKind.TRAIN)
    assert (JobKind.DELIVER in waiting(services)) is follows


@pytest.mark.parametrize("works", [True, False])
def test_start_training_trains_whether_or_not_reading_worked(tmp_path: Path, works: bool) -> None:
    reading = nothing if works else raising(LabelStudioError("The key is refused.", retry=False))
    services = small_services(tmp_path, on_reconcile=reading)
    queue_and_run(services, JobKind.RECONCILE, {"then_train": True})
    assert set(waiting(services)) == {JobKind.TRAIN, *([JobKind.STATISTICS] if works else [])}


@pytest.mark.parametrize("kind", [JobKind.SYNC, JobKind.RECONCILE, JobKind.TRAIN])
def test_statistics_are_computed_after_what_may_change_them(tmp_path: Path, kind: JobKind) -> None:
    services = small_services(tmp_path)
    queue_and_run(services, kind)
    assert JobKind.STATISTICS in waiting(services)
    queue_and_run(services, JobKind.STATISTICS)
    assert services.statistics.overview("1.1") is not None


def test_start_training_waits_while_reading_is_tried_again(tmp_path: Path) -> None:
    services = small_services(tmp_path, on_reconcile=raising(LabelStudioError("Down.", retry=True)))
    queue_and_run(services, JobKind.RECONCILE, {"then_train": True})
    assert waiting(services) == {JobKind.RECONCILE: {"then_train": True}}


class Cache:
    """Features that remember what they were asked to encode."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def texts(self, texts: list[str]) -> list[Any]:
        self.seen += texts
        return []

    def failures(self, texts: list[str]) -> dict[str, str]:
        return {text: "The file is gone." for text in texts if text in ("text 5", "text 7")}


def with_tasks(tmp_path: Path, count: int) -> tuple[Services, Cache]:
    cache = Cache()
    services = small_services(tmp_path, features=cache)
    no_annotations: list[Annotation] = []
    services.store.tasks.take_over("1.1", [
        TaskSnapshot(task=Task(id=n, data={"text": f"text {n}" if n != 3 else ""}, updated_at=NOW),
                     annotations=no_annotations, votes=[])
        for n in range(1, count + 1)
    ])
    return services, cache


def test_encoding_fills_the_cache(tmp_path: Path) -> None:
    services, cache = with_tasks(tmp_path, 100)
    job = queue_and_run(services, JobKind.ENCODE)
    assert job.figures == {"texts": 99, "left_out": {"The file is gone.": [5, 7]}}
    assert len(cache.seen) == 99 and "" not in cache.seen


def test_encoding_holds_a_piece_at_a_time_and_says_so_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, cache = with_tasks(tmp_path, 64)
    monkeypatch.setattr("backend.jobs.ENCODED_AT_ONCE", 30)
    told: list[int] = []
    job = cast(Job, SimpleNamespace(project="1.1", payload={}))
    figures = RUNNERS[JobKind.ENCODE](services, job, lambda fraction, note: told.append(len(cache.seen)))
    assert figures["texts"] == 63 and told == [0, 30, 60, 63]


def test_long_encoding_goes_on_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services, cache = with_tasks(tmp_path, 200)
    monkeypatch.setattr("backend.jobs.ENCODE_BUDGET_S", -1.0)
    first = queue_and_run(services, JobKind.ENCODE, {"after_id": 64, "done": 64})
    assert first.figures["next_after_id"] == 128
    assert waiting(services) == {JobKind.ENCODE: {"after_id": 128, "done": 128}}
    assert cache.seen == [f"text {n}" for n in range(65, 129)]


def gaps_due(services: Services) -> datetime:
    (job,) = [job for job in services.store.jobs.recent(kind=JobKind.GAPS) if job.state is JobState.QUEUED]
    return job.not_before


@pytest.fixture
def paused(tmp_path: Path) -> tuple[Services, list[datetime]]:
    """A job on gaps that worked for 100 s has just ended."""
    times = [NOW]
    services = small_services(tmp_path, clock=lambda: times[0], gaps_every_s=60.0)
    services.store.jobs.enqueue(JobKind.GAPS, "1.1")
    job = services.store.jobs.claim("me", lease_s=600, kinds=(JobKind.GAPS,))
    assert job is not None
    times[0] += timedelta(seconds=100)
    services.store.jobs.finish(job.id, "me", figures={WORKED_S: 100.0})
    return services, times


def test_a_waiting_job_on_gaps_keeps_the_pause(paused: tuple[Services, list[datetime]]) -> None:
    services, times = paused
    due = times[0] + timedelta(seconds=400)
    for _ in range(4):
        times[0] += timedelta(seconds=10)
        queue_and_run(services, JobKind.STATISTICS)
        assert gaps_due(services) == due


def test_a_running_job_on_gaps_keeps_the_pause(paused: tuple[Services, list[datetime]]) -> None:
    services, times = paused
    times[0] += timedelta(seconds=500)
    services.store.jobs.enqueue(JobKind.GAPS, "1.1")
    assert services.store.jobs.claim("me", lease_s=600, kinds=(JobKind.GAPS,)) is not None
    times[0] += timedelta(seconds=5)
    queue_and_run(services, JobKind.STATISTICS)
    assert gaps_due(services) == times[0] + timedelta(seconds=400)


def test_gaps_are_looked_at_at_once_after_the_pause(paused: tuple[Services, list[datetime]]) -> None:
    services, times = paused
    times[0] += timedelta(seconds=401)
    queue_and_run(services, JobKind.STATISTICS)
    assert gaps_due(services) == times[0]


def test_tabs_that_failed_are_tried_again_and_nothing_is_forced(tmp_path: Path) -> None:
    services = small_services(tmp_path, clock=lambda: NOW, gaps_every_s=0.0)
    failed: Any = services.gaps
    failed.work = lambda *_: {"computed": True, "tabs_retry_in_s": 30.0}
    queue_and_run(services, JobKind.GAPS, {"force": True})
    assert waiting(services) == {JobKind.GAPS: {}}
    assert gaps_due(services) == NOW + timedelta(seconds=30)


def from_an_outage(retry: bool) -> JobFailed:
    failed = JobFailed("down", retry_in_s=5.0)
    failed.__cause__ = LabelStudioError("down", retry=retry)
    return failed


@pytest.mark.parametrize(("error", "outage"), [
    (LabelStudioError("down", retry=True), True),
    (LabelStudioError("no such project", retry=False), False),
    (from_an_outage(retry=True), True),
    (from_an_outage(retry=False), False),
    (JobFailed("nothing to train on"), False),
])
def test_after_an_outage_of_label_studio_every_task_is_to_be_read(
    tmp_path: Path, error: Exception, outage: bool
) -> None:
    services = small_services(tmp_path, on_deliver=raising(error), **LABEL_STUDIO)
    services.store.projects.ensure("2.2")  # nobody asks about this one while Label Studio is down
    queue_and_run(services, JobKind.DELIVER)
    for project in ("1.1", "2.2"):
        assert (services.store.projects.sync_state(project).reread_wanted is not None) == outage


@pytest.mark.parametrize("left", [0, 500])
def test_reading_every_task_again_goes_on_after_a_pause(tmp_path: Path, left: int) -> None:
    services = small_services(tmp_path, clock=lambda: NOW)
    reconciler: Any = services.reconciler
    reconciler.reread = lambda *_: {"read": 100, "changed_votes": 2 if left else 0, "left": left, "pause_s": 9.5}
    queue_and_run(services, JobKind.REREAD)
    found = {job.kind: job.not_before for job in services.store.jobs.recent() if job.state is JobState.QUEUED}
    assert found.get(JobKind.REREAD) == (NOW + timedelta(seconds=9.5) if left else None)
    assert (JobKind.STATISTICS in found) == bool(left)
