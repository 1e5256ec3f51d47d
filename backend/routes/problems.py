"""What is wrong, and what to do about it: pure functions from state to sentences for people.

Each sentence names the cure where there is one. They are shown on the page, so they carry no label and no task text;
what a job or a check wrote down as its sentence is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backend.errors import LabelConfigError
from backend.labeling import parse_config
from backend.records import Job, JobKind, JobState, SyncState, Version, VoteCounts
from backend.services.reading import keeps_waiting
from backend.settings import Settings
from model.learners.registry import CLASSES, RANKINGS

JOB_SHOULD_START_S = 60.0  # a due job that waits longer has nobody to run it
START_WORKER = "start a job process with `python -m backend worker`."
READ_LOG = "its log says why; if it does not, start Polyvox again."
READING = (JobKind.SYNC, JobKind.RECONCILE)
NAMED = 3  # interrupted jobs of a kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What is known of who runs jobs."""

    stuck: bool = False  # the database takes no write, so nobody can begin a job
    embedded: bool = False  # the embedded job process of this data folder is there


def of_service(settings: Settings, jobs: Sequence[Job], now: datetime, workers: Workers) -> list[str]:
    """What is wrong with the set-up as a whole; `jobs` are the open ones of all projects."""
    found = []
    if not settings.label_studio_url:
        found.append("Polyvox does not know where Label Studio is: set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY.")
    elif not settings.label_studio_api_key:
        found.append("Polyvox cannot read annotations: set LABEL_STUDIO_API_KEY to an access token.")
    late = any(_late_s(job, now) > JOB_SHOULD_START_S for job in jobs) and not any(_runs(job, now) for job in jobs)
    if late and not workers.stuck:
        found.append(f"Jobs wait and the job process begins none: {READ_LOG}" if workers.embedded else
                     f"Jobs wait and nothing runs them: {START_WORKER}")
    found += _of_access(settings)
    if settings.control_arm_percent == 0:
        found.append("The control arm is switched off, so that held-out figures are biased by shown predictions.")
    return found


def _runs(job: Job, now: datetime) -> bool:
    return job.state is JobState.RUNNING and (job.lease_until is None or job.lease_until >= now)


def _late_s(job: Job, now: datetime) -> float:
    """Since when a job could have been begun, or taken over from a process that went silent."""
    due = job.not_before if job.state is JobState.QUEUED else job.lease_until
    return 0.0 if due is None else (now - max(due, job.created_at)).total_seconds()


def _of_access(settings: Settings) -> list[str]:
    """One of the two ways to prove oneself is missing: Label Studio uses both, for different requests. Or both are, on
    an address that others can reach."""
    if settings.without_login and not settings.basic_auth_user:
        return ["There is no login on a public address (POLYVOX_WITHOUT_LOGIN): whoever reaches it reads all votes and "
                "can start trainings. Set BASIC_AUTH_USER and BASIC_AUTH_PASS, or listen on 127.0.0.1."]
    if settings.basic_auth_user and not settings.webhook_secret:
        return ["Events of Label Studio are refused: webhooks carry no basic auth. Set POLYVOX_WEBHOOK_SECRET and "
                "POLYVOX_URL beside BASIC_AUTH_USER, so that they carry the secret instead."]
    if settings.webhook_secret and not settings.basic_auth_user:
        return ["The button Start Training in Label Studio is refused (401): Label Studio sends it to /webhook without "
                "the secret. Set BASIC_AUTH_USER and BASIC_AUTH_PASS, and enter the same in the project under "
                "Settings → Model; votes come in and train without the button all the same."]
    return []


def of_reading(
    sync: SyncState, jobs: Sequence[Job], settings: Settings, now: datetime, workers: Workers, *, connected: bool,
) -> list[str]:
    """Label Studio cannot be read, or nobody reads it; `jobs` are the project's open ones."""
    reads = [job for job in jobs if job.state is JobState.RUNNING and job.kind in READING]
    found = [f"{job.note}: it is overloaded, or what stands between drips its answers. Look at Label Studio and the "
             "proxy in front of it; an answer is given up when its time is over, and asked for again."
             for job in reads if keeps_waiting(job.note)][:1]
    if sync.last_error:
        often = f"{sync.failures} times in a row" if sync.failures > 1 else "once"
        found.append(f"Reading Label Studio failed {often}, it is tried again: {sync.last_error}")
    if found:
        return found
    if not connected or sync.last_success is None or workers.stuck or any(job.kind in READING for job in jobs):
        return []
    late_s = (now - sync.last_success).total_seconds()
    if late_s <= 3 * settings.reconcile_every_s + JOB_SHOULD_START_S:
        return []
    so = f"; the job process is there and does not read: {READ_LOG}" if workers.embedded else (
        f", so no job process seems to run: {START_WORKER}")
    return [f"Label Studio was last read {late_s / 60:.0f} minutes ago, although it should be every "
            f"{settings.reconcile_every_s:g} s{so}"]


def of_checkpoint(published: Version, votes: VoteCounts, jobs: Sequence[Job], settings: Settings) -> list[str]:
    """The published version cannot answer; `jobs` are the project's open ones."""
    states = {job.state for job in jobs if job.kind is JobKind.TRAIN}
    if JobState.RUNNING in states:
        then = "a training that replaces it runs"
    elif JobState.QUEUED in states:
        then = "a training that replaces it is queued"
    elif (missing := settings.min_votes - votes.total) > 0:
        then = f"the training that replaces it starts at {settings.min_votes} votes, {missing} to go"
    elif votes.classes < 2:
        then = "the training that replaces it starts when votes do not all say the same"
    else:
        then = "a training that replaces it follows by itself"
    return [f"The checkpoint of version {published.name} is missing or damaged: {then}. To have {published.name} "
            "itself back, restore a backup."]


def of_jobs(last: Sequence[Job], *, said: str = "") -> list[str]:
    """The kinds of job of which the newest one failed; `last` are the newest that have ended, one of each kind. A
    failure that was `said` already is left out."""
    return [f"The last {job.kind} job failed, at {at(job.finished_at or job.created_at)}: {job.error}" for job in last
            if job.state is JobState.FAILED and job.error != said]


def interruptions(cut_off: Sequence[Job], said: Sequence[Job] = ()) -> list[str]:
    """As notes: jobs that ended after a try of them was cut off, whatever followed them. `cut_off` are jobs to which
    that happened, the last first; those that are open are told of as waiting, and of those that failed not the `said`
    ones. Of each kind a few are named, the others counted."""
    told = {job.id for job in said if job.state is JobState.FAILED}
    kinds: dict[JobKind, list[Job]] = {}
    for job in cut_off:
        if job.state in (JobState.DONE, JobState.FAILED) and job.id not in told:
            kinds.setdefault(job.kind, []).append(job)
    found = []
    for kind, ended in kinds.items():
        found += [f"{interrupted(job)} and {_end(job)}" for job in ended[:NAMED]]
        if (more := len(ended) - NAMED) > 0:
            found.append(f"{more} more {kind} job{' was' if more == 1 else 's were'} interrupted lately.")
    return found


def _end(job: Job) -> str:
    return "went through." if job.state is JobState.DONE else f"failed in the end: {job.error}"


def interrupted(job: Job) -> str:
    """The beginning of a sentence on a job that was cut off."""
    assert job.interrupted_at is not None
    return f"{the(job)} was interrupted at {at(job.interrupted_at)}"


def the(job: Job) -> str:
    """A job by its kind and the time it was asked for."""
    return f"The {job.kind} job of {at(job.created_at)}"


def at(moment: datetime) -> str:
    """"2026-11-28 22:17:03 UTC"."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def of_redis(settings: Settings, answers: bool) -> list[str]:
    """REDIS_URL is set and nobody answers there."""
    if not settings.redis_url or answers:
        return []
    return ["Redis does not answer: job machines look into the database instead, so jobs begin a little later. Start "
            "Redis again, or check REDIS_URL."]


def of_config(xml: str) -> tuple[list[str], list[str]]:
    """A labeling configuration that Polyvox can do nothing with; and, as notes, what it leaves out of a usable one."""
    if not xml:
        return [], []
    try:
        config = parse_config(xml)
    except LabelConfigError as error:
        return [f"The labeling configuration cannot be read, so nothing is learned: {error}"], []
    left_out = [each.reason for each in config.unmodelled]
    left_out += [
        f"Ranker '{each.name}' is predicted from rankings alone, not from what its items show."
        if each.learner == RANKINGS else
        f"{each.tag} '{each.name}' is not predicted yet; its votes are kept and compared."
        for each in config.controls if each.learner != CLASSES
    ]
    learners = {each.learner for each in config.controls}
    if CLASSES not in learners:
        if RANKINGS in learners:
            return [], left_out
        return [" ".join(["Polyvox can learn none of this project's controls.", *left_out])], []
    if not config.objects and not config.media:
        return ["The controls of this project look at nothing that Polyvox reads: neither text nor images, sound or "
                "video."], left_out
    return [], left_out
