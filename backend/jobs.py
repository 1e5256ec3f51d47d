"""Running one claimed job: kind -> service, progress -> heartbeat, outcome -> job row, follow-ups.

Invariants: a job that lost its lease, or whose process is told to stop, ends at its next progress call and writes
nothing more; every other end is recorded on the row. Expected failures are recorded as their sentence, anything else as
a reference to the log: the message of a foreign exception may quote labels or tasks, so it is not shown to anybody.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from backend.bootstrap import Services
from backend.errors import JobFailed, LabelStudioError, PolyvoxError
from backend.labeling import parse_config
from backend.ports import Progress
from backend.records import Job, JobKind, JobState, Verdict
from backend.services.reading import waiting_note
from backend.services.regions import known_regions, region_contents
from backend.services.trigger_rules import growing
from model.data.splits import task_of

logger = logging.getLogger(__name__)

Figures = Mapping[str, Any]
RETRY_S = (5.0, 120.0)  # first and longest wait before the same job is tried again
BEFORE_STATISTICS = (JobKind.SYNC, JobKind.RECONCILE, JobKind.TRAIN)  # they may change what statistics say
STATISTICS_DELAY_S = 3.0  # so that a busy project computes its statistics now and then, not after every vote
GAPS_LONGEST_PAUSE_S = 3600.0  # unless the setting asks for a longer one
WORKED_S = "worked_s"  # in the figures: processor time of the job's thread; what it waited for is no work
GAPS_LOOKED_AT = 5  # newest jobs: one may wait and one may run, and the last that ended is behind them
ENCODE_BUDGET_S = 60.0  # an encoding job hands over after this long, so that trainings get their turn
ENCODED_AT_ONCE = 512  # contents whose tokens are in memory; those of pictures take some 130 kB each
LEFT_OUT_LOGGED = 20  # tasks of a line in the log


class JobStopped(Exception):
    """Raised out of a progress call: the job must end here. Not a `PolyvoxError`, so that no service handles it."""


class Heartbeat:
    """Holds the lease of one job from a thread of its own, so that long torch steps do not lose it.

    `progress` is handed to the services: it only notes what to write, the thread writes about once a second, and the
    next call after the lease was lost (or `stop` was set) raises `JobStopped`.
    """

    def __init__(self, services: Services, job: Job, owner: str, stop: threading.Event) -> None:
        self._services = services
        self._job = job
        self._owner = owner
        self._stop = stop
        self._told: tuple[float, str] = (0.0, "")
        self._ended = threading.Event()
        self._worker = threading.get_ident()  # who does the job
        self.lost = False
        self._thread = threading.Thread(target=self._beat, name=f"lease-{job.kind}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def progress(self, fraction: float, note: str) -> None:
        """Note how far the job is (0..1). Raises `JobStopped`."""
        if self.lost or self._stop.is_set():
            raise JobStopped
        self._told = (min(max(fraction, 0.0), 1.0), note)

    def _waiting(self) -> str:
        waits = self._services.label_studio.waits_for(self._worker)
        return waiting_note(*waits) if waits else ""

    def _beat(self) -> None:
        lease_s = self._services.settings.job_lease_s
        written: tuple[float, str] | None = None
        beaten_at = time.monotonic()
        while not self._ended.wait(min(1.0, lease_s / 4)):
            told = (self._told[0], self._waiting() or self._told[1])
            if told == written and time.monotonic() - beaten_at < lease_s / 4:
                continue
            try:
                self.lost = not self._services.store.jobs.heartbeat(
                    self._job.id, self._owner, progress=told[0], note=told[1], lease_s=lease_s
                )
                written, beaten_at = told, time.monotonic()
            except SQLAlchemyError as error:  # the database may come back before the lease is over
                logger.warning("no heartbeat of %s: the database failed (%s)", self._job.kind, type(error).__name__)
                self.lost = time.monotonic() - beaten_at > lease_s
            if self.lost:
                return


def run_job(services: Services, job: Job, *, owner: str, stop: threading.Event | None = None) -> None:
    """Do a job that `owner` has claimed, and record its end. Raises only what the database raises.

    When `stop` is set meanwhile, the job goes back to the queue and is started anew by whoever claims it next; however
    often that happens, it does not count as an attempt.
    """
    stop = stop or threading.Event()
    logger.info("%s of project %s begins (attempt %d)", job.kind, job.project, job.attempts)
    try:
        with Heartbeat(services, job, owner, stop) as heartbeat:
            heartbeat.progress(0.0, "")
            figures = RUNNERS[job.kind](services, job, heartbeat.progress)
    except JobStopped:
        if not stop.is_set():
            logger.warning("%s of project %s was taken over by another process", job.kind, job.project)
            return
        services.store.jobs.give_back(job.id, owner, error="The job process was stopped.")
    except JobFailed as error:
        _note_outage(services, error)
        _fail(services, job, owner, str(error), retry_in_s=error.retry_in_s)
    except LabelStudioError as error:
        _note_outage(services, error)
        retry_in_s = growing(RETRY_S[0], job.attempts, RETRY_S[1]) if error.retry else None
        _fail(services, job, owner, str(error), retry_in_s=retry_in_s)
    except PolyvoxError as error:
        _fail(services, job, owner, str(error), retry_in_s=None)
    except Exception:
        reference = uuid.uuid4().hex[:8]
        logger.exception("%s of project %s failed unexpectedly, reference %s", job.kind, job.project, reference)
        _fail(services, job, owner, f"Unexpected error, reference {reference}; the log has the details.",
              retry_in_s=growing(RETRY_S[0], job.attempts, RETRY_S[1]))
    else:
        if heartbeat.lost:
            logger.warning("%s of project %s was taken over by another process", job.kind, job.project)
            return
        services.store.jobs.finish(job.id, owner, figures=figures)
        logger.info("%s of project %s is done", job.kind, job.project)
        _follow_up(services, job, figures)


def _note_outage(services: Services, error: Exception) -> None:
    """Label Studio may have stored, when it failed, what it did not stamp, in any project (`services.rereading`)."""
    if any(isinstance(each, LabelStudioError) and each.retry for each in (error, error.__cause__)):
        services.store.projects.want_reread()


def _fail(services: Services, job: Job, owner: str, error: str, *, retry_in_s: float | None) -> None:
    again = retry_in_s is not None and job.attempts < services.settings.job_attempts
    retry_at = services.clock() + timedelta(seconds=retry_in_s or 0.0) if again else None
    then = ", to be tried again" if again else ""
    logger.warning("%s of project %s failed%s: %s", job.kind, job.project, then, error)
    services.store.jobs.fail(job.id, owner, error=error, retry_at=retry_at)
    if not again:
        _after_reading(services, job)


def _follow_up(services: Services, job: Job, figures: Figures) -> None:
    """Queue what a finished job calls for."""
    project = services.store.projects.get(job.project)
    if job.kind is JobKind.TRAIN and figures.get("verdict") == Verdict.PUBLISHED:
        if project is not None and services.triggers.delivers(project):
            services.triggers.deliver_now(job.project)
    elif job.kind is JobKind.DELIVER and figures.get("drafts_left", 0):
        services.triggers.deliver_now(job.project)  # the time for drafts was up
    elif job.kind is JobKind.RECONCILE and figures.get("tasks", 0):
        services.store.jobs.enqueue(JobKind.ENCODE, job.project)
    elif job.kind is JobKind.REREAD and figures["left"]:
        due = services.clock() + timedelta(seconds=figures["pause_s"])
        services.store.jobs.enqueue(JobKind.REREAD, job.project, not_before=due)
    elif job.kind is JobKind.STATISTICS:
        services.store.jobs.enqueue(JobKind.GAPS, job.project, not_before=_gaps_due(services, job.project))
    elif job.kind is JobKind.GAPS and "tabs_retry_in_s" in figures:
        again = services.clock() + timedelta(seconds=figures["tabs_retry_in_s"])  # not forced: nothing is computed anew
        services.store.jobs.enqueue(JobKind.GAPS, job.project, not_before=max(again, _gaps_due(services, job.project)))
    elif job.kind is JobKind.ENCODE and not figures.get("next_after_id"):
        due = _gaps_due(services, job.project)
        services.store.jobs.enqueue(JobKind.GAPS, job.project, payload={"force": True}, not_before=due)
    elif job.kind is JobKind.ENCODE:
        services.store.jobs.enqueue(JobKind.ENCODE, job.project, payload={
            "after_id": figures["next_after_id"], "done": figures["done"],
        })
    found = job.kind is JobKind.REREAD and figures["changed_votes"]
    if (found or job.kind in BEFORE_STATISTICS) and project is not None:
        services.store.jobs.enqueue(
            JobKind.STATISTICS, job.project, not_before=services.clock() + timedelta(seconds=STATISTICS_DELAY_S)
        )
    _after_reading(services, job)


def _gaps_due(services: Services, project: str) -> datetime:
    """When gaps may be looked at again: filling them takes a forward over all tasks, so at most a fifth of the time
    goes there, by the processor time that the last one took, and within limits."""
    recent = services.store.jobs.recent(project, kind=JobKind.GAPS, limit=GAPS_LOOKED_AT)
    ended = [job for job in recent if job.finished_at]
    now, every_s = services.clock(), services.settings.gaps_every_s
    worked_s = float(ended[0].figures.get(WORKED_S, 0.0)) if ended else 0.0
    pause = timedelta(seconds=max(every_s, min(4 * worked_s, GAPS_LONGEST_PAUSE_S)))
    due = now
    if ended and ended[0].finished_at:
        due = max(now, min(ended[0].finished_at, now) + pause)  # one ahead was stamped by a clock that was set back
    if any(job.state is JobState.RUNNING for job in recent):  # its pause has not begun yet
        due = now + pause
    return due


def _after_reading(services: Services, job: Job) -> None:
    """START_TRAINING reads Label Studio first; the training comes whether or not that worked."""
    if job.kind is JobKind.RECONCILE and job.payload.get("then_train"):
        services.triggers.train_now(job.project)


def _sync(services: Services, job: Job, progress: Progress) -> Figures:
    return services.ingest.sync(job.project, progress)


def _reconcile(services: Services, job: Job, progress: Progress) -> Figures:
    return services.reconciler.run(job.project, progress)


def _reread(services: Services, job: Job, progress: Progress) -> Figures:
    return services.reconciler.reread(job.project, progress)


def _train(services: Services, job: Job, progress: Progress) -> Figures:
    return services.training.run(job.project, progress, full=bool(job.payload.get("full")))


def _deliver(services: Services, job: Job, progress: Progress) -> Figures:
    return services.delivery.run(job.project, progress, force=bool(job.payload.get("force")))


def _encode(services: Services, job: Job, progress: Progress) -> Figures:
    """Fill the feature cache ahead of need, in slices of about a minute; figures say where the next slice begins, and
    which tasks have files that could not be read: `left_out` is sentence -> ids of tasks."""
    project = services.store.projects.get(job.project)
    if project is None or not project.label_config:
        return {"texts": 0}
    config = parse_config(project.label_config)
    total, texts, after_id = services.store.tasks.count(job.project), 0, int(job.payload.get("after_id", 0))
    done, until = int(job.payload.get("done", 0)), time.monotonic() + ENCODE_BUDGET_S
    left_out: dict[str, list[int]] = {}
    for batch in services.store.tasks.iterate(job.project, after_id=after_id, batch=64):
        shown = [(task.id, content) for task in batch if (content := config.content(task.data, task=task.id))]
        known = known_regions(services.store, job.project, config, [task.id for task in batch])
        regions, unread = region_contents(config, batch, known)
        for sentence, units in unread.items():
            left_out.setdefault(sentence, []).extend(sorted({int(task_of(unit)) for unit in units}))
        shown += [(int(task_of(unit)), content) for unit, content in regions.items()]
        contents = [content for _, content in shown]
        for begin in range(0, len(contents), ENCODED_AT_ONCE):  # of regions there may be any number a task
            progress(done / max(total, 1), f"encoded {done} of {total} tasks")
            services.features.texts(contents[begin : begin + ENCODED_AT_ONCE])
        failures = services.features.failures(contents)
        for task_id, content in shown:
            if content in failures and task_id not in left_out.setdefault(failures[content], []):
                left_out[failures[content]].append(task_id)
        texts, done, after_id = texts + len(contents), done + len(batch), batch[-1].id
        progress(done / max(total, 1), f"encoded {done} of {total} tasks")
        if time.monotonic() > until:
            return {**_encoded(job, texts, left_out), "next_after_id": after_id, "done": done}
    return _encoded(job, texts, left_out)


def _encoded(job: Job, texts: int, left_out: Mapping[str, list[int]]) -> dict[str, Any]:
    for sentence, tasks in left_out.items():  # the figures name all of them
        first = ", ".join(map(str, tasks[:LEFT_OUT_LOGGED])) + (", ..." if len(tasks) > LEFT_OUT_LOGGED else "")
        logger.warning(
            "parts of %d tasks of project %s are left out (%s): %s", len(tasks), job.project, first, sentence)
    return {"texts": texts, "left_out": left_out} if left_out else {"texts": texts}


def _statistics(services: Services, job: Job, progress: Progress) -> Figures:
    figures = services.statistics.run(job.project, progress)
    explained = services.explanations.refresh(job.project, progress)
    return figures if explained is None else {**figures, "explained": explained}


def _gaps(services: Services, job: Job, progress: Progress) -> Figures:
    begun = time.thread_time()
    figures = services.gaps.run(job.project, progress, force=bool(job.payload.get("force")))
    return {**figures, WORKED_S: round(time.thread_time() - begun, 3)}


RUNNERS: Mapping[JobKind, Callable[[Services, Job, Progress], Figures]] = {
    JobKind.SYNC: _sync,
    JobKind.RECONCILE: _reconcile,
    JobKind.REREAD: _reread,
    JobKind.ENCODE: _encode,
    JobKind.TRAIN: _train,
    JobKind.DELIVER: _deliver,
    JobKind.STATISTICS: _statistics,
    JobKind.GAPS: _gaps,
}
