"""Gathers the situation of each project and queues what the rules want (`trigger_rules`).

Only counts are read, no votes and no task data; calling it twice does no harm, since a wish for a job that is queued or
running is dropped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from backend.instants import Instants
from backend.ports import Clock, Store
from backend.records import Job, JobKind, JobState, Project, Version
from backend.services.clock_watch import ClockWatch
from backend.services.overrides import settings_of
from backend.services.trigger_rules import Situation, Wish, decide, lately
from backend.settings import Settings

logger = logging.getLogger(__name__)

KEEP_JOBS = timedelta(days=7)  # rows of jobs that ended
PRUNE_EVERY_S = 3600.0
PRUNE_AT_ONCE = 1000  # so that the write is short; what is left goes with the next tick
WISHED = (JobKind.SYNC, JobKind.RECONCILE, JobKind.TRAIN, JobKind.DELIVER)  # kinds that the rules ask for
STICKY = ("force", "full", "then_train")  # flags of a payload that outlive a merge
JOBS_LOOKED_AT = 12  # of each kind: the longest wait is reached before so many failures
VERSIONS_LOOKED_AT = 10
LOST_EVERY_S = 5.0  # how often the files of a published version are looked for


class Triggers:
    """Queues jobs by the rules above. One per process; only job processes call `tick`.

    What it decides on are stored instants; those that lie ahead of the clock are read by the rule of `Instants`.
    """

    def __init__(
        self, *, store: Store, settings: Settings, clock: Clock, seconds: Callable[[], float] = time.monotonic,
        take_in: Callable[[], None] = lambda: None, usable: Callable[[Version], bool] = lambda version: True,
    ) -> None:
        """`take_in` brings what web requests could not write into the database; called at each tick. `usable` says
        whether the files of a published version are there and whole."""
        self._store = store
        self._settings = settings
        self._clock = clock
        self._seconds = seconds
        self._take_in = take_in
        self._usable = usable
        self._looked: dict[str, tuple[str, float, bool]] = {}  # project -> published path, when, whether it was lost
        self._instants = Instants(clock, seconds=seconds)
        self._watch = ClockWatch(store=store, clock=clock, seconds=seconds)
        self._started = seconds()
        self._pruned: float | None = None
        self._newest: dict[str, tuple[int, int]] = {}  # project -> number of tasks, highest id then
        self.connected = bool(settings.label_studio_url and settings.label_studio_api_key)

    def tick(self) -> list[Job]:
        """Queue what is due in every project; returns the jobs queued. Rows of old jobs go now and then."""
        self._take_in()
        self._watch.look()
        self._prune()
        return [job for project in self._store.projects.all() for job in self.tick_project(project)]

    def _prune(self) -> None:
        now = self._seconds()
        if self._pruned is None or now - self._pruned >= PRUNE_EVERY_S:
            gone = self._store.jobs.prune(self._clock() - KEEP_JOBS, limit=PRUNE_AT_ONCE)
            self._pruned = now if gone < PRUNE_AT_ONCE else None

    def tick_project(self, project: Project) -> list[Job]:
        """Queue what is due in one project; returns the jobs queued."""
        wishes = decide(self.situation(project))
        return [self._enqueue(project.key, wish) for wish in wishes if self._fits(project.key, wish)]

    def _fits(self, project: str, wish: Wish) -> bool:
        """Whether no such job is pending, or one that starts later than wished for.

        Of the jobs only the latest were looked at so far; one that waits or runs may have been queued before them.
        """
        pending = self._store.jobs.pending(project, wish.kind)
        if pending is None:
            return True
        return (
            wish.not_before is not None and pending.state is JobState.QUEUED and pending.not_before > wish.not_before
        )

    def situation(self, project: Project) -> Situation:
        """Read the counts of one project."""
        store, key = self._store, project.key
        dirty, published = store.tasks.dirty_count(key), store.versions.published(key)
        now = self._clock()
        return self._in_the_past(Situation(
            now=now,
            started_at=now - timedelta(seconds=self._seconds() - self._started),
            settings=self.settings_of(project),
            connected=self.connected,
            votes=store.votes.counts(key),
            dirty=dirty,
            newest_mark=store.tasks.newest_mark(key) if dirty else 0,
            newest_task=self._newest_task(key),
            sync=store.projects.sync_state(key),
            tried=store.versions.recent(key, limit=VERSIONS_LOOKED_AT),
            published=published,
            lost=published is not None and self._lost(published),
            delivery=store.deliveries.latest(key),
            lately={kind: lately(store.jobs.recent(key, kind=kind, limit=JOBS_LOOKED_AT), kind) for kind in WISHED},
        ))

    def _in_the_past(self, situation: Situation) -> Situation:
        """The situation with no instant after its `now`, whoever's clock it was stamped by."""
        now = situation.now

        def past(moment: datetime | None) -> datetime | None:
            return None if moment is None else self._instants.past(moment, now)

        def stamped(version: Version) -> Version:
            return replace(version, created_at=self._instants.past(version.created_at, now))

        published, delivery = situation.published, situation.delivery
        return replace(
            situation,
            votes=replace(situation.votes, last_change=past(situation.votes.last_change)),
            sync=replace(situation.sync, last_success=past(situation.sync.last_success)),
            tried=[stamped(version) for version in situation.tried],
            published=published and stamped(published),
            delivery=delivery and replace(delivery, started_at=self._instants.past(delivery.started_at, now)),
            lately={kind: replace(each, ended_at=past(each.ended_at), began_at=past(each.began_at))
                    for kind, each in situation.lately.items()},
        )

    def _newest_task(self, project: str) -> int:
        """Ids are read again only when the number of tasks has changed."""
        count = self._store.tasks.count(project)
        if self._newest.get(project, (0, 0))[0] != count:
            ids = self._store.tasks.ids(project)
            self._newest[project] = (count, int(ids[-1]) if len(ids) else 0)
        return self._newest.get(project, (0, 0))[1]

    def _lost(self, published: Version) -> bool:
        """Whether its files are gone or damaged; looked at every few seconds, and at once when it is another one."""
        path, looked, lost = self._looked.get(published.project, ("", 0.0, False))
        if path != published.path or self._seconds() - looked >= LOST_EVERY_S:
            lost = not self._usable(published)
            self._looked[published.project] = (published.path, self._seconds(), lost)
        return lost

    def start_training(self, project: str) -> Job:
        """Somebody asked for a training: read Label Studio first where that is possible, then train whatever is new.

        Returns the job that was queued first. The wish survives a failing reconcile (see `backend.jobs`).
        """
        if self.connected:
            return self._enqueue(project, Wish(kind=JobKind.RECONCILE, payload={"then_train": True}))
        return self.train_now(project)

    def train_now(self, project: str, *, full: bool = False) -> Job:
        """Queue a training at once, whatever the back-off; with too few votes it fails with a sentence.

        With `full` it starts from scratch; otherwise from the published version.
        """
        changes = self._store.votes.counts(project).changes
        return self._enqueue(project, Wish(kind=JobKind.TRAIN, payload={"changes": changes, "full": full}))

    def deliver_now(self, project: str, *, force: bool = False) -> Job:
        """Queue a delivery at once; with `force` the consensus goes along whatever the rate limit."""
        published = self._store.versions.published(project)
        payload = {"changes": self._store.votes.counts(project).changes, "force": force,
                   "version": published.name if published else ""}
        return self._enqueue(project, Wish(kind=JobKind.DELIVER, payload=payload))

    def settings_of(self, project: Project) -> Settings:
        """The settings that hold for a project."""
        return settings_of(self._settings, project)

    def delivers(self, project: Project) -> bool:
        """Whether predictions of this project may be written into Label Studio."""
        settings = self.settings_of(project)
        return self.connected and settings.deliver and not settings.shadow_mode

    def _enqueue(self, project: str, wish: Wish) -> Job:
        logger.info("queue %s for project %s", wish.kind, project)
        waiting = self._store.jobs.pending(project, wish.kind)
        payload = dict(wish.payload)
        if waiting is not None and waiting.state is JobState.QUEUED:
            # Both become one job, so what somebody asked for explicitly must not get lost.
            payload |= {flag: True for flag in STICKY if waiting.payload.get(flag)}
        return self._store.jobs.enqueue(wish.kind, project, payload=payload, not_before=wish.not_before)
