"""When to do what: a project's situation -> the jobs that should be queued now.

`decide` is a pure function of a `Situation`, so that every rule can be tested as a row of a table.

Rules, each per project:
- sync: tasks are dirty; it starts `sync_delay_s` later, to gather several webhooks. A new mark means that Label Studio
  is up, so it ends the wait after a failure;
- reconcile: once after each start of the job process, then every `reconcile_every_s`;
- train: `train_after_votes` changed votes since the last version tried, or at least one and `train_after_quiet_s` of
  quiet; never below `min_votes` or two classes, never while the very first reading still runs; after each rejected
  version in a row the wait doubles, and the first of them is followed by one full retrain even without new votes; where
  the files of the published version are gone or damaged, from scratch and without new votes, with the same waits;
- deliver: the published version is not the delivered one, or tasks are new (both at most every `consensus_every_s`; a
  publishing job asks for its own delivery at once), a delivery was interrupted, or votes changed and went quiet (own
  predictions move on); a delivery that found a reason to send nothing is asked for again `consensus_every_s` later;
- a kind whose last jobs failed waits, twice as long after each failure, and is then tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from backend.prediction_names import consensus_version
from backend.records import (
    Delivery,
    DeliveryStep,
    Job,
    JobKind,
    JobState,
    SyncState,
    Verdict,
    Version,
    VoteCounts,
)
from backend.settings import Settings

# Wait after the first failure of a kind and the longest wait, in seconds. Reading is cheap and people wait for it.
COOL_DOWN_S: Mapping[JobKind, tuple[float, float]] = {
    JobKind.SYNC: (5.0, 60.0),
    JobKind.RECONCILE: (15.0, 300.0),
    JobKind.ENCODE: (60.0, 3600.0),
    JobKind.TRAIN: (60.0, 3600.0),
    JobKind.DELIVER: (30.0, 600.0),
}
REJECTED_LONGEST_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class Lately:
    """What became of the recent jobs of one kind."""

    pending: bool = False  # one is queued or running
    failures: int = 0  # in a row, up to now
    ended_at: datetime | None = None  # of the newest that ended
    changes: int = 0  # VoteCounts.changes when the newest that ended was queued
    version: str = ""  # name of the published version when the newest that ended was queued
    began_at: datetime | None = None  # of the newest that ended
    starts_at: datetime | None = None  # of the one that waits; None when it runs or there is none
    mark: int = 0  # newest dirty mark that the pending one, else the newest that ended, knew of


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that a decision about one project depends on."""

    now: datetime
    started_at: datetime  # of this job process
    settings: Settings  # the project's
    connected: bool  # Label Studio's address and key are set
    votes: VoteCounts
    dirty: int = 0
    newest_mark: int = 0  # sequence number of the newest dirty mark
    newest_task: int = 0  # highest task id
    sync: SyncState = field(default_factory=SyncState)
    tried: Sequence[Version] = ()  # newest first
    published: Version | None = None
    lost: bool = False  # the files of the published version are gone or damaged
    delivery: Delivery | None = None
    lately: Mapping[JobKind, Lately] = field(default_factory=dict)

    def of(self, kind: JobKind) -> Lately:
        """What became of the latest jobs of a kind."""
        return self.lately.get(kind, Lately())


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A job that should be queued."""

    kind: JobKind
    payload: Mapping[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None  # None: at once


def decide(situation: Situation) -> list[Wish]:
    """The jobs to queue now, in the order in which they should run."""
    rules = (_sync, _reconcile, _train, _deliver)
    wishes = (rule(situation) for rule in rules)
    return [wish for wish in wishes if wish is not None and not _held_back(situation, wish.kind)]


def _held_back(situation: Situation, kind: JobKind) -> bool:
    lately = situation.of(kind)
    news = kind is JobKind.SYNC and situation.newest_mark > lately.mark
    if lately.pending:
        return not (news and _waits_too_long(situation, lately))
    if news:
        return False
    if not lately.failures or lately.ended_at is None:
        return False
    first_s, longest_s = COOL_DOWN_S[kind]
    if kind is JobKind.TRAIN and situation.votes.changes > lately.changes:
        longest_s = 5 * first_s  # what failed for want of votes may not fail with those that came since
    return _since_s(situation, lately.ended_at) < growing(first_s, lately.failures, longest_s)


def _waits_too_long(situation: Situation, lately: Lately) -> bool:
    """The waiting job starts later than one queued now would."""
    return lately.starts_at is not None and lately.starts_at > _sync_start(situation)


def _sync_start(situation: Situation) -> datetime:
    return situation.now + timedelta(seconds=situation.settings.sync_delay_s)


def _sync(situation: Situation) -> Wish | None:
    if not situation.connected or situation.dirty == 0:
        return None
    return Wish(kind=JobKind.SYNC, payload={"mark": situation.newest_mark}, not_before=_sync_start(situation))


def _reconcile(situation: Situation) -> Wish | None:
    if not situation.connected:
        return None
    last = situation.sync.last_success
    fresh = last is not None and last >= situation.started_at
    if fresh and last is not None and _since_s(situation, last) < situation.settings.reconcile_every_s:
        return None
    return Wish(kind=JobKind.RECONCILE)


def _train(situation: Situation) -> Wish | None:
    votes, settings = situation.votes, situation.settings
    if votes.total < settings.min_votes or votes.classes < 2:
        return None
    first_reading = situation.connected and situation.sync.last_success is None
    if first_reading and situation.of(JobKind.RECONCILE).pending:
        return None
    rejected = rejected_in_a_row(situation.tried)
    wish = Wish(kind=JobKind.TRAIN, payload={"changes": votes.changes, "full": rejected > 0})
    if rejected:
        wait_s = growing(2 * max(settings.train_after_quiet_s, 1.0), rejected, REJECTED_LONGEST_S)
        if _since_s(situation, situation.tried[0].created_at) < wait_s:
            return None
        if rejected == 1 and situation.published is not None and not _from_scratch(situation.tried[0]):
            return wish  # the increment was not good enough; a version from scratch may be
    if situation.lost:
        return replace(wish, payload={**wish.payload, "full": True})
    # A training that failed has tried nothing: it comes again when its cool-down is over, without newer votes.
    tried_changes = max((version.changes for version in situation.tried), default=0)
    return wish if _enough_new(situation, tried_changes) else None


def _from_scratch(version: Version) -> bool:
    return version.figures.get("started_from") == "scratch"


def _deliver(situation: Situation) -> Wish | None:
    published, delivery, settings = situation.published, situation.delivery, situation.settings
    if published is None or not situation.connected or not settings.deliver or settings.shadow_mode:
        return None
    wish = Wish(kind=JobKind.DELIVER, payload={"changes": situation.votes.changes, "version": published.name})
    if delivery is None:
        return None if _declined(situation, published, published.created_at) else wish
    if delivery.step is not DeliveryStep.DONE:
        return None if _declined(situation, published, delivery.started_at) else wish
    if delivery.version != consensus_version(published.name) or situation.newest_task > delivery.imported_through:
        due = delivery.started_at + timedelta(seconds=settings.consensus_every_s)
        return wish if situation.now >= due and not _declined(situation, published, due) else None
    return wish if _enough_new(situation, situation.of(JobKind.DELIVER).changes) else None


def _declined(situation: Situation, published: Version, due: datetime) -> bool:
    """A delivery of this version that began when it was due ended well, a short while ago, and yet it is due still:
    it found a reason not to deliver (no checkpoint, another encoder), which will not be gone at once."""
    lately = situation.of(JobKind.DELIVER)
    if lately.failures or lately.ended_at is None or lately.began_at is None or lately.version != published.name:
        return False
    recent = _since_s(situation, lately.ended_at) < situation.settings.consensus_every_s
    return lately.began_at >= due and recent


def _enough_new(situation: Situation, changes: int) -> bool:
    """Votes changed since `changes` was counted: many, or some and then it went quiet."""
    new, settings = situation.votes.changes - changes, situation.settings
    if new >= settings.train_after_votes:
        return True
    last = situation.votes.last_change
    return new >= 1 and (last is None or _since_s(situation, last) >= settings.train_after_quiet_s)


def _since_s(situation: Situation, moment: datetime) -> float:
    return (situation.now - moment).total_seconds()


def growing(first_s: float, times: int, longest_s: float) -> float:
    """Back-off in seconds: `first_s` after the first time, twice as long after each further one, up to `longest_s`."""
    return float(min(first_s * 2.0 ** min(times - 1, 30), longest_s))


def rejected_in_a_row(tried: Sequence[Version]) -> int:
    """How many of the newest versions were rejected since the last that was published."""
    return sum(1 for _ in takewhile(lambda version: version.verdict is Verdict.REJECTED, tried))


def lately(jobs: Sequence[Job], kind: JobKind) -> Lately:
    """Sum up the recent jobs (newest first) of one kind."""
    mine = [job for job in jobs if job.kind is kind]
    pending = [job for job in mine if job.state in (JobState.QUEUED, JobState.RUNNING)]
    ended = [job for job in mine if job.state in (JobState.DONE, JobState.FAILED)]
    failed = list(takewhile(lambda job: job.state is JobState.FAILED, ended))
    return Lately(
        pending=bool(pending),
        failures=len(failed),
        ended_at=ended[0].finished_at if ended else None,
        changes=int(ended[0].payload.get("changes", 0)) if ended else 0,
        version=str(ended[0].payload.get("version", "")) if ended else "",
        began_at=ended[0].started_at if ended else None,
        starts_at=None if any(job.state is JobState.RUNNING for job in pending)
        else min((job.not_before for job in pending), default=None),
        mark=max((int(job.payload.get("mark", 0)) for job in pending or ended[:1]), default=0),
    )
