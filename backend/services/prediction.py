"""Prediction: what /predict answers, and the computation that bulk delivery shares with it.

For each task: one prediction for each annotator who has not voted on it (`annotator:<id>@r12`, the most active first),
and the consensus last, under the version that /setup names. A task that is not ready gets [], never an empty
prediction, which would freeze it under this version in Label Studio.

Answers are kept until anything that they depend on is another (`kept_answers`); requests of a moment share a forward
(`together`).

Invariants: one batched forward and a fixed number of queries a request, however many tasks it has; that our predictions
can be seen is remembered before they are handed out; what the control arm withholds is logged; what is kept or computed
together is answered as it would be alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from backend.labeling import LabelConfig, in_control_arm, task_in_control_arm
from backend.labeling.content import text_of
from backend.labeling.kept import KeptConfigs
from backend.ports import Clock, Store
from backend.prediction_names import consensus_version
from backend.records import Project, StoredVote
from backend.registry import Loaded, Registry
from backend.services.explanation.regions import with_attention
from backend.services.features import Features
from backend.services.kept_answers import KeptAnswers, MadeFrom
from backend.services.late_writes import ARM, SHOWN, LateWrites
from backend.services.newcomers import Newcomers
from backend.services.overrides import settings_of
from backend.services.rankings import with_rankings
from backend.services.ready_tasks import nothing_read
from backend.services.region_answers import regions_for, with_regions
from backend.services.served import (
    MOST_TOGETHER,
    ReadyTask,
    TaskPredictions,
    Work,
    fits,
    is_account,
    predict_together,
    withheld,
)
from backend.services.together import Together, WaitedTooLong
from backend.settings import Settings
from backend.store.patience import AWAY
from model.errors import ModelError

if TYPE_CHECKING:
    from model.coldstart.adapting import Adapted

log = logging.getLogger(__name__)

READINGS_BYTES = 16 << 20  # of tasks that were read, for each version: 40 tasks of a project with 200 annotators
WHOLE_TASK = ""  # the annotator in the log of the arm where whole tasks are withheld
Predictions = list[dict[str, Any]]


class Prediction:
    """Answers for any project. Safe for threads."""

    def __init__(
        self, *, store: Store, features: Features, registry: Registry, settings: Settings, clock: Clock,
        seconds: Callable[[], float] = time.monotonic, late: LateWrites | None = None,
    ) -> None:
        """`late` keeps what the database does not take in time."""
        self._store = store
        self._late = late
        self._features = features
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._seconds = seconds
        self.newcomers = Newcomers(store=store, features=features, registry=registry, settings=settings)
        self.config = KeptConfigs()  # label configs come with each request
        self._kept = KeptAnswers()
        self._together: Together[_Asked, list[TaskPredictions]] = Together(_compute, fits=_fit)

    def version(self, project_key: str) -> str:
        """The model_version for /setup: one pointer read, nothing is loaded."""
        version = self._registry.current(project_key)
        return consensus_version(version.name if version else None)

    def answer(
        self, project_key: str, label_config: str | None, tasks: Sequence[Mapping[str, Any]], *, deadline_s: float,
        drawn: Sequence[Mapping[str, Any]] = (),
    ) -> list[Predictions]:
        """Predictions of each task, in order; [] for those that are not ready within `deadline_s`.

        `tasks` are Label Studio's task JSON (id, data, annotations, predictions); `drawn` are regions that whoever asks
        has just drawn on them, which are answered for. An empty `label_config` means the project's.
        Raises LabelConfigError when the config cannot be read.
        """
        until = self._seconds() + deadline_s
        nothing: list[Predictions] = [[] for _ in tasks]
        project = self._store.projects.get(project_key)
        if project is None or settings_of(self._settings, project).shadow_mode:
            return nothing
        loaded = self._registry.published(project_key)
        xml = label_config or project.label_config
        if loaded is None or not xml:
            return nothing
        votes = self._store.votes.of_tasks(project_key, sorted({int(task["id"]) for task in tasks}))
        wanted, arm = self._who_wants(project, tasks, votes)
        try:
            answers = self._answers(project, loaded, xml, tasks, wanted, votes, until=until, drawn=drawn)
        except ModelError as error:
            _unable(loaded, error)
            return nothing
        visible = [int(task["id"]) for task, answer in zip(tasks, answers, strict=True) if answer]
        self.remember(project, visible, arm, name=loaded.version.name)
        return answers

    def _answers(
        self, project: Project, loaded: Loaded, xml: str, tasks: Sequence[Mapping[str, Any]],
        wanted: Sequence[Sequence[str]], votes: Sequence[StoredVote], *, until: float,
        drawn: Sequence[Mapping[str, Any]],
    ) -> list[Predictions]:
        """The answers that are kept, and those of the other tasks, which are kept from now on."""
        config = self.config(xml)
        newcomers = self.newcomers.of(project.key, loaded, config, (who for people in wanted for who in people))
        made_from = MadeFrom.each(project, loaded, xml, tasks, votes, wanted, newcomers)
        lasting = not (drawn or config.regional or settings_of(self._settings, project).region_attention)
        answers = [self._kept.find(each) if lasting else [] for each in made_from]
        rows = [row for row, answer in enumerate(answers) if not answer]
        if not rows:
            return answers
        open_ = [tasks[row] for row in rows]
        ready = self._ready(loaded, config, open_, [wanted[row] for row in rows], until=until)
        made = self.compute(
            project, loaded, config, list(ready.values()), votes, until=until, newcomers=newcomers,
            offered={int(task["id"]): offered_by(task) for task in open_},
            asked={int(task["id"]): drawn for task in open_} if drawn else {},
        )
        for at, one in zip(ready, made, strict=True):
            answers[rows[at]] = _listed(one)
            if lasting and one.consensus is not None and self._whole(config, open_[at]):
                self._kept.keep(made_from[rows[at]], answers[rows[at]])
        return answers

    def _whole(self, config: LabelConfig, task: Mapping[str, Any]) -> bool:
        """Whether nothing of what a task shows failed to be read; what was answered without it must not stay."""
        return not self._features.failures([config.content(task["data"], task=int(task["id"]))])

    def compute(
        self, project: Project, loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask],
        votes: Sequence[StoredVote], *, until: float | None = None,
        offered: Mapping[int, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
        asked: Mapping[int, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
        newcomers: Mapping[str, Adapted] | None = None,
    ) -> list[TaskPredictions]:
        """Own and consensus predictions of each task, in order, from one forward; `votes` are those on these tasks and
        maybe others, `newcomers` what their votes taught (read here by default).

        `until` is when the answer must be there at last; without it the work shares no forward with that of others.
        `offered` are results of other predictions whose regions are answered for, `asked` is what whoever asks has
        drawn.

        Their tokens must come from the encoder that the version was trained on. Where Label Studio cannot tell
        annotators apart, tasks in the control arm keep but the score of their consensus.
        """
        try:
            if newcomers is None:
                newcomers = self.newcomers.of(
                    project.key, loaded, config, (annotator for task in tasks for annotator in task.annotators))
            shaped = self._forward(loaded, config, Work(tasks=tasks, votes=votes, newcomers=newcomers), until)
        except (ModelError, WaitedTooLong) as error:
            _unable(loaded, error)
            return [TaskPredictions(task_id=task.id, own={}, consensus=None) for task in tasks]
        settings = settings_of(self._settings, project)
        shaped = with_rankings(loaded.rankings, config, tasks, shaped, votes, name=loaded.version.name,
                               echo_weight=settings.echo_weight)
        if settings.region_attention and loaded.ladder.reads:
            shaped = with_attention(self._features, loaded, config, tasks, shaped)
        regions = regions_for(self._store, project.key, loaded, config, tasks, offered, asked)
        if regions:
            shaped = with_regions(
                self._features, loaded, config, tasks, shaped, votes, regions, shared=settings.shared_regions,
                newcomers=newcomers,
                seconds=None if until is None else partial(self._left, until))
        if settings.middleware:
            return shaped
        return [_withhold(one) if self.task_withheld(project, one.task_id) else one for one in shaped]

    def _forward(
        self, loaded: Loaded, config: LabelConfig, work: Work, until: float | None
    ) -> list[TaskPredictions]:
        """What the version says; small work that has until some moment shares a forward with other work."""
        asked = _Asked(loaded=loaded, config=config, work=work)
        if until is not None and loaded.ladder.reads:
            loaded.ladder.committee.keep_readings(READINGS_BYTES)
        if until is None or not 0 < len(work.tasks) <= MOST_TOGETHER:
            return _compute([asked])[0]
        return self._together.do((loaded.version.path, id(config)), asked, seconds=self._left(until))

    def _left(self, until: float) -> float:
        return until - self._seconds()

    def task_withheld(self, project: Project, task_id: int) -> bool:
        """Whether a whole task is in the control arm; only where the middleware is absent."""
        settings = settings_of(self._settings, project)
        percent = settings.control_arm_percent
        return not settings.middleware and task_in_control_arm(project.label_studio_id, task_id, percent)

    def split_arm(
        self, project: Project, task_id: int, annotators: Sequence[str],
    ) -> tuple[list[str], list[tuple[int, str]]]:
        """The annotators who may get a prediction of their own, and the pairs that the control arm withholds."""
        settings = settings_of(self._settings, project)
        if not settings.middleware:  # nobody could be shown their own, everybody would see everybody's
            return [], []
        percent = settings.control_arm_percent
        arm = {a for a in annotators if in_control_arm(project.label_studio_id, task_id, a, percent)}
        return [a for a in annotators if a not in arm], [(task_id, a) for a in annotators if a in arm]

    def remember(
        self, project: Project, task_ids: Sequence[int], arm: Sequence[tuple[int, str]], *, name: str,
    ) -> None:
        """Before predictions leave: they may be seen from now on, and the arm of these tasks is what it is."""
        if not task_ids:
            return
        whole = {task_id for task_id in task_ids if self.task_withheld(project, task_id)}
        visible = set(task_ids) - whole
        pairs = [pair for pair in arm if pair[0] in visible] + [(task_id, WHOLE_TASK) for task_id in sorted(whole)]
        at = self._clock()
        try:
            self._store.votes.log_arm(project.key, pairs, version=name)
            self._store.deliveries.remember_shown(project.key, sorted(visible), at=at)
        except AWAY:
            entries: list[list[Any]] = [
                [ARM, project.key, name, [list(pair) for pair in pairs]],
                [SHOWN, project.key, sorted(visible), at.isoformat()],
            ]
            if self._late is None or not self._late.keep(entries, in_memory=False):
                raise

    def _who_wants(
        self, project: Project, tasks: Sequence[Mapping[str, Any]], votes: Sequence[StoredVote],
    ) -> tuple[list[list[str]], list[tuple[int, str]]]:
        """For each task the annotators who get an own prediction; and the pairs that the arm withholds."""
        limit = settings_of(self._settings, project).annotators_per_task
        active = [who for who in self._store.votes.voters(project.key) if is_account(who)]
        voted: dict[int, set[str]] = {}
        for vote in votes:
            voted.setdefault(vote.task_id, set()).add(vote.annotator)
        wanted, arm = [], []
        for task in tasks:
            task_id = int(task["id"])
            done = voted.get(task_id, set()) | _annotators_of(task)
            mine, withheld_pairs = self.split_arm(project, task_id, [a for a in active if a not in done][:limit])
            wanted.append(mine)
            arm.extend(withheld_pairs)
        return wanted, arm

    def _ready(
        self, loaded: Loaded, config: LabelConfig, tasks: Sequence[Mapping[str, Any]],
        wanted: Sequence[Sequence[str]], *, until: float,
    ) -> dict[int, ReadyTask]:
        """row -> task, for the tasks that have text whose tokens are at hand in time, or need none."""
        if not loaded.ladder.reads:
            return {row: ReadyTask(id=int(task["id"]), data=task["data"], tokens=nothing_read(), annotators=wanted[row])
                    for row, task in enumerate(tasks)}
        contents = {row: config.content(task["data"], task=int(task["id"])) for row, task in enumerate(tasks)}
        rows = [row for row, content in contents.items() if content]
        tokens = self._features.texts_within(
            [contents[row] for row in rows], encoder_id=trained_on(loaded), seconds=until - self._seconds()
        )
        return {
            row: ReadyTask(id=int(tasks[row]["id"]), data=tasks[row]["data"], tokens=array, annotators=wanted[row],
                           text=text_of(contents[row]))
            for row, array in zip(rows, tokens, strict=True) if array is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Work for one version under one configuration."""

    loaded: Loaded
    config: LabelConfig
    work: Work


def _fit(others: Sequence[_Asked], asked: _Asked) -> bool:
    return fits([each.work for each in others], asked.work)


def _compute(asked: Sequence[_Asked]) -> list[list[TaskPredictions]]:
    first = asked[0]
    return predict_together(
        first.loaded.ladder, first.config, [each.work for each in asked], name=first.loaded.version.name)


def _unable(loaded: Loaded, error: Exception) -> None:
    log.warning("version %s of project %s cannot answer: %s", loaded.version.name, loaded.version.project, error)


def offered_by(task: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the predictions of a task JSON hold, ours and those it came with."""
    found = task.get("predictions")
    results = [each.get("result") for each in (found if isinstance(found, list) else []) if isinstance(each, Mapping)]
    return [entry for result in results if isinstance(result, list) for entry in result if isinstance(entry, Mapping)]


def trained_on(loaded: Loaded) -> str:
    """The id of the encoder whose features a version was trained on; nothing else may be fed to it."""
    return str(loaded.version.figures.get("encoder", ""))


def _listed(predictions: TaskPredictions) -> Predictions:
    """Own ones first, the consensus last: Label Studio preselects the last one. Without a consensus nothing at all,
    since Label Studio would ask again at each opening and store the own ones each time."""
    if predictions.consensus is None:
        return []
    return [*predictions.own.values(), predictions.consensus]


def _withhold(predictions: TaskPredictions) -> TaskPredictions:
    consensus = predictions.consensus
    return TaskPredictions(
        task_id=predictions.task_id, own={}, consensus=None if consensus is None else withheld(consensus)
    )


def _annotators_of(task: Mapping[str, Any]) -> set[str]:
    """Who annotated the task according to the request, which may be ahead of the store. Skips are no votes."""
    found, given = set(), task.get("annotations")
    for annotation in given if isinstance(given, list) else []:
        if not isinstance(annotation, Mapping) or annotation.get("was_cancelled"):
            continue
        by = annotation.get("completed_by")
        if isinstance(by, Mapping):
            by = by.get("id")
        if by is not None:
            found.add(str(by))
    return found
