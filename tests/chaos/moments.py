"""The moments at which something is killed, seen by polling what Polyvox itself records.

A moment inside a job is made certain: as soon as it is seen, the process that is in it is stopped (SIGSTOP), and only
when the state still is what it was is the victim killed; otherwise the process goes on and the next such moment is
awaited. So a kill "between import and select" happened between import and select. A checkpoint is written in a few
milliseconds, so which process to stop is looked up before.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

from backend.prediction_names import consensus_version
from backend.records import DeliveryStep, JobKind, JobState
from backend.services.delivery_plan import is_pending
from tests.chaos.world import World

LOOK_S = 0.0005
LOOK_UP_S = 1.0  # the process of a lane is another one after a kill
NUDGE_S = 45.0  # a version that the gate rejects is delivered by nobody; then a job is asked for, as a person would


class When(StrEnum):
    SUBMIT = "after a number of submits"
    SYNC = "while votes are read"
    TRAIN = "while a training runs"
    CHECKPOINT = "while a checkpoint is written"
    IMPORT = "while predictions are imported"
    SELECT = "between import and select"
    DELETE = "before old versions are deleted"


LANE = {When.SYNC: "sync", When.TRAIN: "heavy", When.CHECKPOINT: "heavy", When.IMPORT: "heavy",
        When.SELECT: "heavy", When.DELETE: "heavy"}

KIND = {When.SYNC: JobKind.SYNC, When.TRAIN: JobKind.TRAIN, When.CHECKPOINT: JobKind.TRAIN,
        When.IMPORT: JobKind.DELIVER, When.SELECT: JobKind.DELIVER, When.DELETE: JobKind.DELIVER}


class NotReached(Exception):
    """The moment did not come in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Looks for one moment in one project."""

    world: World
    project: str
    when: When
    progress: float  # of a training, 0..1
    leftovers: frozenset[str] = frozenset()  # unfinished checkpoints of earlier kills

    def now(self) -> bool:
        """Whether it is the moment."""
        looks: dict[When, Callable[[], bool]] = {
            When.SYNC: lambda: self._runs(JobKind.SYNC), When.TRAIN: self._trains, When.CHECKPOINT: self._writes,
            When.IMPORT: self._imports, When.SELECT: lambda: self._delivers(DeliveryStep.SELECT),
            When.DELETE: lambda: self._delivers(DeliveryStep.DELETE),
        }
        return looks[self.when]()

    def nudge(self) -> None:
        """Ask for the job that has the moment, where it is one that has to be asked for."""
        jobs, changes = self.world.store.jobs, self.world.store.votes.counts(self.project).changes
        if self.when in (When.TRAIN, When.CHECKPOINT):
            jobs.enqueue(JobKind.TRAIN, self.project, payload={"changes": changes, "full": True})
        elif self.when is not When.SYNC:
            jobs.enqueue(JobKind.DELIVER, self.project, payload={"changes": changes, "force": True})

    def _runs(self, kind: JobKind) -> bool:
        job = self.world.store.jobs.pending(self.project, kind)
        return job is not None and job.state is JobState.RUNNING

    def _trains(self) -> bool:
        job = self.world.store.jobs.pending(self.project, JobKind.TRAIN)
        return job is not None and job.state is JobState.RUNNING and self.progress <= job.progress < 0.9

    def _writes(self) -> bool:
        return bool(unfinished(self.world, self.project) - self.leftovers)

    def _delivers(self, step: DeliveryStep) -> bool:
        delivery = self.world.store.deliveries.latest(self.project)
        return delivery is not None and delivery.step is step and self._runs(JobKind.DELIVER)

    def _imports(self) -> bool:
        """The note that own predictions are under way is written before the call and taken away after it."""
        if not self._delivers(DeliveryStep.IMPORT):
            return False
        version = self.world.store.versions.published(self.project)
        delivery = self.world.store.deliveries.latest(self.project)
        if version is None or delivery is None or delivery.version != consensus_version(version.name):
            return False
        entries = self.world.store.deliveries.own(self.project).values()
        return any(is_pending(each) and each.version == version.name for each in entries)


@contextmanager
def at(watch: Watch, *, timeout_s: float) -> Iterator[None]:
    """Wait for the moment; inside the block its process stands still. Raises NotReached."""
    began = nudged = time.monotonic()
    looked_up, pid = -LOOK_UP_S, None
    while (now := time.monotonic()) < began + timeout_s:
        if now - nudged > NUDGE_S:
            watch.nudge()
            nudged = now
        if now - looked_up > LOOK_UP_S:
            looked_up, pid = now, watch.world.actor(LANE[watch.when])
        if pid is not None and watch.now():
            with _stopped(pid):
                if watch.now():
                    yield
                    return
        time.sleep(LOOK_S)
    raise NotReached(f"not reached within {timeout_s:.0f} s: {watch.when}")


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def unfinished(world: World, project: str) -> frozenset[str]:
    """Checkpoints that are being written, or whose writing was cut off: their folders begin with a dot."""
    with suppress(FileNotFoundError):
        return frozenset(entry.name for entry in os.scandir(world.data / "models" / project)
                         if entry.name.startswith("."))
    return frozenset()
