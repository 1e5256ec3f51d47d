"""Bulk delivery to Label Studio, in steps that a crash between any two of them can resume.

    import     the consensus of every open task under one new static version, and own predictions that changed; after an
               import that was resumed, versions that lie doubled in Label Studio are deleted and sent again
    select     the new consensus version becomes the project's (score column, ordering, uncertainty sampling read it)
    delete     older versions, one at a time, while nobody submits: deletes lock Label Studio's database
    verify     the selection survived the deletes (Label Studio may reset it)

Invariants: what Label Studio has already is asked of it before anything is sent under a version of which it has some
(an import was interrupted, or it asked /predict), so nothing is sent twice; that predictions can be seen is remembered
before they are sent; a delivery whose version is not the published one any more is given up for a new one. The
consensus goes at most every `consensus_every_s` unless forced, own predictions always.
Where annotators gave their tokens, own predictions become drafts at the end (`drafts`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from backend.errors import JobFailed, LabelStudioError
from backend.instants import Instants
from backend.labeling import LabelConfig
from backend.ports import Clock, LabelStudio, Progress, Store
from backend.prediction_names import consensus_version, own_version
from backend.records import Delivery as DeliveryRecord
from backend.records import DeliveryStep, OwnPrediction, Project
from backend.registry import Loaded, Registry
from backend.services import delivery_plan as plan
from backend.services.drafts import Drafts
from backend.services.features import Features
from backend.services.identity import held
from backend.services.one_ahead import OneAhead
from backend.services.overrides import settings_of
from backend.services.prediction import Prediction, trained_on
from backend.services.ready_tasks import ready_tasks
from backend.settings import Settings

log = logging.getLogger(__name__)

CALL_SIZE = 12_000  # predictions in one import, at most
SMALL_CALL = 1500  # at least, but for the last: Label Studio takes about a second for each call, however small
CHUNK = 256  # tasks in one forward
RETRY_S = 15.0
IDLE_S = 5.0  # without a new vote for this long Label Studio counts as idle
WAIT_FOR_IDLE_S = 10.0  # a training may wait behind a delivery; what is left goes with the next one
DELETE_BUDGET_S = 300.0  # no further delete begins after this long
LEFT_AT_MOST = 30  # stale versions that may wait for the next delivery; more are deleted even while people submit


@dataclass(kw_only=True)
class Round:
    """One run: what is wanted, and what became of it."""

    project: Project
    loaded: Loaded
    config: LabelConfig
    delivery: DeliveryRecord | None  # None: the consensus is not due
    existing: dict[str, int]  # version -> predictions in Label Studio when the run began
    newest: int  # highest task id
    consensus: set[int]  # tasks that lack the consensus of this version
    wanted: dict[int, list[str]]  # task -> annotators whose gap it is
    arm: list[tuple[int, str]]  # pairs that the control arm withholds
    own: dict[tuple[int, str], OwnPrediction]  # what was delivered, kept up to date
    kept: dict[str, frozenset[str]]  # annotator -> versions that may stay
    doubtful: set[str] = field(default_factory=set)  # versions of which an import was interrupted
    digests: plan.Digests = field(default_factory=plan.Digests)
    found: list[OwnPrediction] = field(default_factory=list)  # in Label Studio, to be noted
    present: dict[str, set[int]] = field(default_factory=dict)  # own version -> tasks that have it, where asked
    figures: dict[str, Any] = field(default_factory=lambda: {"consensus": 0, "own": 0, "own_unchanged": 0,
                                                            "without_text": 0})

    @property
    def name(self) -> str:
        """The published version ("r12")."""
        return self.loaded.version.name

    @property
    def target(self) -> str:
        """The consensus version that it stands for in Label Studio."""
        return consensus_version(self.name)


@dataclass(frozen=True, slots=True)
class Item:
    """One prediction to send; `own` is set for an annotator's own."""

    task_id: int
    prediction: Mapping[str, Any]
    own: OwnPrediction | None = None


class Delivery:
    """Delivers one project at a time; the job queue sees to it that nobody else delivers the same."""

    def __init__(
        self, *, store: Store, label_studio: LabelStudio, features: Features, registry: Registry,
        prediction: Prediction, settings: Settings, clock: Clock, wait: Callable[[float], None] = time.sleep,
        drafts: Drafts | None = None,
    ) -> None:
        self._store = store
        self._label_studio = label_studio
        self._features = features
        self._registry = registry
        self._prediction = prediction
        self._settings = settings
        self._clock = clock
        self._instants = Instants(clock)
        self._wait = wait
        self._drafts = drafts

    def run(self, project: str, progress: Progress, *, force: bool = False) -> dict[str, Any]:
        """Deliver what is due; returns counts. Raises JobFailed where Label Studio fails, to be resumed by a retry."""
        record = self._store.projects.get(project)
        if record is None:
            raise JobFailed("The project is unknown.")
        settings = settings_of(self._settings, record)
        if settings.shadow_mode or not settings.deliver:
            return {"reason": "Shadow mode shows nothing." if settings.shadow_mode else "Delivery is switched off."}
        if reason := held(self._store.instance):
            return {"reason": reason}
        loaded = self._registry.published(project)
        if loaded is None or not record.label_config:
            return {"reason": "There is no published version yet."}
        if loaded.ladder.reads and trained_on(loaded) != self._features.encoder_id:
            return {"reason": "The encoder was changed; the next training makes a version for it."}
        try:
            return self._deliver(record, loaded, progress, force=force)
        except LabelStudioError as error:
            raise JobFailed(str(error), retry_in_s=RETRY_S if error.retry else None) from error

    def _deliver(self, project: Project, loaded: Loaded, progress: Progress, *, force: bool) -> dict[str, Any]:
        started = time.monotonic()
        progress(0.0, "comparing with Label Studio")
        this = self._plan(project, loaded, force=force)
        self._import(this, progress)
        superseded = self._superseded(this)
        if not superseded and (doubled := self._doubled(this)):
            progress(0.8, "deleting doubles of an interrupted import")
            self._drop(this, doubled)
            this = self._plan(project, loaded, force=force)
            self._import(this, progress)
            this.figures["doubled"] = len(doubled)
            superseded = self._superseded(this)
        if superseded:
            return {"reason": "Another version was published meanwhile; that one is delivered.", **this.figures}
        if this.delivery is not None:
            if this.delivery.step is DeliveryStep.IMPORT:
                self._store_step(this, DeliveryStep.SELECT)
            if self._select(this):
                self._store_step(this, DeliveryStep.DELETE)
                self._delete(this, progress)
                self._select(this)  # a delete may have reset it
            this.figures["seconds"] = round(time.monotonic() - started, 2)
            self._store_step(this, DeliveryStep.DONE)
        if self._drafts is not None:
            this.figures |= self._drafts.run(project, loaded, this.config, progress)
        progress(1.0, "delivered")
        return {"version": this.target, "consensus_due": this.delivery is not None, **this.figures}

    def _plan(self, project: Project, loaded: Loaded, *, force: bool) -> Round:
        store, settings = self._store, settings_of(self._settings, project)
        ids, voted = store.tasks.ids(project.key), plan.Voted.of(store.votes.current(project.key))
        about = self._label_studio.project(project.label_studio_id)
        active = plan.active_annotators(
            store.votes.activity(project.key), now=self._clock(), days=settings.own_active_days
        )
        gaps = plan.next_gaps(
            ids, voted, active[: settings.own_max_annotators], limit=settings.own_next_tasks,
            wanted_votes=int(about.get("maximum_annotations") or 1),
        )
        this = Round(
            project=project, loaded=loaded, config=self._prediction.config(project.label_config), delivery=None,
            existing=self._label_studio.prediction_versions(project.label_studio_id),
            newest=int(ids[-1]) if len(ids) else 0, consensus=set(), wanted={}, arm=[],
            own=store.deliveries.own(project.key), kept={},
        )
        self._plan_own(this, gaps)
        latest = store.deliveries.latest(project.key)
        this.delivery = self._due(this, latest, force=force)
        if this.delivery is not None:
            this.consensus = set(plan.open_tasks(ids, voted, active)) - self._has(this, this.target)
            if this.delivery.step is DeliveryStep.IMPORT:
                if this.delivery is latest:
                    this.doubtful.add(this.target)
                self._store_step(this, DeliveryStep.IMPORT)
        return this

    def _plan_own(self, this: Round, gaps: Mapping[str, Sequence[int]]) -> None:
        annotators_of: dict[int, list[str]] = {}
        for annotator, tasks in gaps.items():
            entries = [this.own[task, annotator] for task in tasks if (task, annotator) in this.own]
            this.kept[annotator] = plan.kept_versions(entries, this.name)
            if any(entry.version == this.name and plan.is_pending(entry) for entry in entries):
                this.doubtful.add(own_version(annotator, this.name))
            for task in tasks:
                annotators_of.setdefault(task, []).append(annotator)
        for task, annotators in annotators_of.items():
            allowed, withheld = self._prediction.split_arm(this.project, task, annotators)
            this.arm.extend(withheld)
            if allowed:
                this.wanted[task] = allowed

    def _due(self, this: Round, latest: DeliveryRecord | None, *, force: bool) -> DeliveryRecord | None:
        """The delivery of the consensus to begin or to go on with; None when there is none to make now."""
        now = self._clock()
        fresh = DeliveryRecord(
            project=this.project.key, version=this.target, step=DeliveryStep.IMPORT, started_at=now, finished_at=None,
        )
        if latest is None:
            return fresh
        if latest.step is not DeliveryStep.DONE:
            return latest if latest.version == this.target else fresh
        every = timedelta(seconds=settings_of(self._settings, this.project).consensus_every_s)
        missing = latest.version != this.target or not this.existing.get(this.target)
        wanted = missing or this.newest > latest.imported_through
        return fresh if force or (wanted and self._instants.past(latest.started_at, now) + every <= now) else None

    def _has(self, this: Round, version: str) -> set[int]:
        """Tasks that have a prediction of this version in Label Studio already."""
        if not this.existing.get(version):
            return set()
        return self._label_studio.predicted_tasks(this.project.label_studio_id, version)

    def _import(self, this: Round, progress: Progress) -> None:
        """Send what waits whenever Label Studio is done with what it was sent before; predict meanwhile."""
        ids = sorted(this.consensus | set(this.wanted))
        waiting: list[Item] = []
        with OneAhead() as sending:
            for begin in range(0, len(ids), CHUNK):
                progress(0.05 + 0.75 * begin / len(ids), f"delivered {begin} of {len(ids)} tasks")
                if self._superseded(this):
                    return
                waiting.extend(self._items(this, ids[begin : begin + CHUNK]))
                if this.found:
                    self._store.deliveries.set_own(this.project.key, this.found)
                    this.found.clear()
                while len(waiting) >= CALL_SIZE or (sending.free and len(waiting) >= SMALL_CALL):
                    self._send(this, waiting[:CALL_SIZE], sending)
                    del waiting[:CALL_SIZE]
            if waiting:
                progress(0.8, "sending the rest")
                self._send(this, waiting, sending)

    def _superseded(self, this: Round) -> bool:
        """Whether another version answers by now, so that nothing more is sent, selected or deleted."""
        current = self._registry.current(this.project.key)
        return current is None or current.name != this.name

    def _items(self, this: Round, ids: Sequence[int]) -> Iterator[Item]:
        """The predictions to send for a chunk of tasks, consensus before own, tasks ascending."""
        tasks = self._store.tasks.get(this.project.key, ids)
        ready = ready_tasks(self._features, this.loaded, this.config, tasks, this.wanted)
        this.figures["without_text"] += len(tasks) - len(ready)
        votes = self._store.votes.of_tasks(this.project.key, [task.id for task in ready])
        for made in self._prediction.compute(this.project, this.loaded, this.config, ready, votes):
            if made.task_id in this.consensus and made.consensus is not None:
                yield Item(made.task_id, made.consensus)
            for annotator, prediction in made.own.items():
                yield from self._own_item(this, made.task_id, annotator, prediction)

    def _own_item(self, this: Round, task_id: int, annotator: str, prediction: Mapping[str, Any]) -> Iterator[Item]:
        pair = (task_id, annotator)
        entry = OwnPrediction(
            task_id=task_id, annotator=annotator, version=this.name, digest=this.digests.of(prediction)
        )
        if plan.up_to_date(this.own.get(pair), entry, this.existing, this.kept[annotator]):
            this.figures["own_unchanged"] += 1
        elif task_id in self._present(this, own_version(annotator, this.name)):
            this.own[pair] = plan.found(this.own.get(pair), entry)
            this.found.append(this.own[pair])
            this.figures["own_unchanged"] += 1
        else:
            yield Item(task_id, prediction, entry)

    def _present(self, this: Round, version: str) -> set[int]:
        """`_has`, asked once a run."""
        if version not in this.present:
            this.present[version] = self._has(this, version)
        return this.present[version]

    def _send(self, this: Round, items: Sequence[Item], sending: OneAhead) -> None:
        """Begin one import, between two notes: what is under way, and what is done."""
        key, own = this.project.key, [item.own for item in items if item.own is not None]
        payload = [{"task": item.task_id, **item.prediction} for item in items]

        def done() -> None:
            if own:
                self._store.deliveries.set_own(key, own)
                this.own.update({(entry.task_id, entry.annotator): entry for entry in own})
            this.figures["own"] += len(own)
            this.figures["consensus"] += len(payload) - len(own)
            if this.delivery is not None:
                this.delivery = replace(this.delivery, imported_through=payload[-1]["task"])
                self._store.deliveries.save(this.delivery)

        sending.settle()
        self._prediction.remember(this.project, sorted({item.task_id for item in items}), this.arm, name=this.name)
        if own:
            self._store.deliveries.set_own(key, [plan.pending(entry) for entry in own])
        number = this.project.label_studio_id
        sending.start(lambda: self._label_studio.import_predictions(number, payload), done)

    def _doubled(self, this: Round) -> list[str]:
        """Versions that some task has twice: Label Studio went on with an import whose answer nobody waited for, and
        what it had not stored yet when it was asked was sent again."""
        if not this.doubtful:
            return []
        number = this.project.label_studio_id
        counts = self._label_studio.prediction_versions(number)
        return [version for version in sorted(this.doubtful)
                if counts.get(version, 0) > len(self._label_studio.predicted_tasks(number, version))]

    def _drop(self, this: Round, versions: Sequence[str]) -> None:
        """Delete versions that are to be sent again; noted first, so that a crash in between loses none."""
        gone = [plan.pending(entry) for entry in this.own.values()
                if own_version(entry.annotator, entry.version) in versions]
        if gone:
            self._store.deliveries.set_own(this.project.key, gone)
        for version in versions:
            log.warning("predictions of %s lie doubled in project %s; they are sent again", version, this.project.key)
            self._label_studio.delete_version(this.project.label_studio_id, version)

    def _select(self, this: Round) -> bool:
        """Select the consensus version; False when Label Studio has no prediction of it, so that it cannot be."""
        number = this.project.label_studio_id
        if not this.figures["consensus"] and not this.existing.get(this.target):
            return False
        if self._label_studio.selected_version(number) != this.target:
            self._label_studio.select_version(number, this.target)
        return True

    def _delete(self, this: Round, progress: Progress) -> None:
        live = [this.own[task, annotator] for task, annotators in this.wanted.items() for annotator in annotators
                if (task, annotator) in this.own]
        stale = plan.stale_versions(this.existing, target=this.name, live=live)
        until = time.monotonic() + DELETE_BUDGET_S
        deleted = 0
        while deleted < len(stale) and time.monotonic() < until:
            progress(0.85 + 0.1 * deleted / len(stale), f"deleted {deleted} of {len(stale)} old versions")
            if not self._idle(this.project.key, progress) and len(stale) - deleted <= LEFT_AT_MOST:
                break
            self._label_studio.delete_version(this.project.label_studio_id, stale[deleted])
            deleted += 1
        this.figures |= {"versions_deleted": deleted, "versions_left": len(stale) - deleted}

    def _idle(self, project: str, progress: Progress) -> bool:
        """Wait a while for nobody to have submitted lately; False when somebody always has."""
        for _ in range(int(WAIT_FOR_IDLE_S)):
            last = self._store.votes.counts(project).last_change
            if last is None or self._instants.since_s(last) >= IDLE_S:
                return True
            progress(0.85, "waiting until nobody submits, to delete old versions")
            self._wait(1.0)
        return False

    def _store_step(self, this: Round, step: DeliveryStep) -> None:
        if this.delivery is None:
            return
        done = step is DeliveryStep.DONE
        this.delivery = replace(
            this.delivery, step=step, finished_at=self._clock() if done else None, figures=dict(this.figures),
            imported_through=this.newest if done else this.delivery.imported_through,
        )
        self._store.deliveries.save(this.delivery)
