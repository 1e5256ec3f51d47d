"""From the ladder's probabilities to Label Studio predictions: values, confidences, results.

A prediction's score is the calibrated confidence of its value: of one class its probability, of a set of classes the
product over classes of max(p, 1 - p), of several controls the least of theirs (the task is as sure as its least sure
answer, which is what uncertainty sampling should see).

Invariants: only values that the label config of the moment and the task offer are predicted; other classes are taken
out and the rest is scaled up (unless there are new classes, of which nothing is known yet); a task of which nothing is
left gets no prediction.
Shape legend: B tasks, A annotators, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.labeling.task_data import resolve
from backend.prediction_names import consensus_version, own_version
from backend.records import StoredVote, Version
from model.data.numbers import INTERVAL, NumberBins
from model.data.spaces import Space, Value
from model.data.votes import Vote, Votes

if TYPE_CHECKING:
    from backend.labeling import Control, LabelConfig
    from model.coldstart.adapting import Adapted
    from model.ensemble.ladder import Ladder

Floats = NDArray[np.float64]
MOST_TOGETHER = 32  # tasks of different requests in one forward
DIGITS = 4  # of a confidence, wherever it is shown
Tokens = NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyTask:
    """A task that can be predicted on, and the annotators who want a prediction of their own."""

    id: int
    data: Mapping[str, Any]
    tokens: Tokens  # (T, D)
    annotators: Sequence[str]
    text: str = ""  # that it shows


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPredictions:
    """Label Studio predictions of one task; None or missing where no value is left to offer."""

    task_id: int
    own: Mapping[str, dict[str, Any]]  # annotator -> prediction
    consensus: dict[str, Any] | None


def is_account(annotator: str) -> bool:
    """Whether somebody can log in under this id; "deleted:<annotation>" cannot."""
    return not annotator.startswith("deleted:")


def learned_of(version: Version | None) -> Mapping[str, Mapping[str, Any]]:
    """What a version says of each of its controls, for `LabelConfig.spaces`."""
    found = {} if version is None else version.figures.get("controls", {})
    return {name: about for name, about in found.items() if isinstance(about, Mapping)}


def predict(
    ladder: Ladder, config: LabelConfig, tasks: Sequence[ReadyTask], given: Sequence[StoredVote], *, name: str,
    newcomers: Mapping[str, Adapted] = MappingProxyType({}),
) -> list[TaskPredictions]:
    """Own and consensus predictions of each task under version `name`, from one forward over all of them; `newcomers`
    are answered for as their own votes taught.

    Raises ModelError when the ladder was trained on features of another dimension.
    """
    work = Work(tasks=tasks, votes=given, newcomers=newcomers)
    return predict_together(ladder, config, [work], name=name)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one request asks of a version."""

    tasks: Sequence[ReadyTask]
    votes: Sequence[StoredVote]  # on these tasks
    newcomers: Mapping[str, Adapted]

    def learned(self) -> dict[str, Adapted | None]:
        """Annotator -> what their votes taught, None for those who are answered for as the version does."""
        return {who: self.newcomers.get(who) for task in self.tasks for who in task.annotators}


def fits(others: Sequence[Work], work: Work) -> bool:
    """Whether work can share a forward with others: no task twice, since its votes may be others by now; the same of
    each annotator; and not too much in all."""
    tasks = {task.id for other in others for task in other.tasks}
    known = {who: learned for other in others for who, learned in other.learned().items()}
    return (
        sum(len(each.tasks) for each in (*others, work)) <= MOST_TOGETHER
        and all(task.id not in tasks for task in work.tasks)
        and all(known.get(who, learned) is learned for who, learned in work.learned().items())
    )


def predict_together(
    ladder: Ladder, config: LabelConfig, works: Sequence[Work], *, name: str
) -> list[list[TaskPredictions]]:
    """What `predict` answers to each of several requests that `fits`, from one forward over all of them."""
    tasks = [task for work in works for task in work.tasks]
    if not tasks:
        return [[] for _ in works]
    given = [vote for work in works for vote in work.votes]
    newcomers = {who: one for work in works for who, one in work.learned().items() if one is not None}
    annotators = sorted({annotator for task in tasks for annotator in task.annotators})
    predictions = ladder.predict(
        [task.tokens for task in tasks], annotators, units=[str(task.id) for task in tasks], given=as_votes(given),
        texts=[task.text for task in tasks],
        newcomers=newcomers,
    )
    column = {annotator: index for index, annotator in enumerate(annotators)}
    pairs = [(row, annotator) for row, task in enumerate(tasks) for annotator in task.annotators]
    at = [row for row, _ in pairs], [column[annotator] for _, annotator in pairs]
    made = Offers(ladder.spaces, config).predictions(
        # the own rows (pairs, C) of all tasks, then the consensus of each (B, C)
        {control: np.concatenate([found.served[at], found.consensus]) for control, found in predictions.items()},
        [task.data for task in tasks], [*at[0], *range(len(tasks))],
        [*(own_version(annotator, name) for _, annotator in pairs), *[consensus_version(name)] * len(tasks)],
    )
    own: list[dict[str, dict[str, Any]]] = [{} for _ in tasks]
    for (row, annotator), prediction in zip(pairs, made, strict=False):
        if prediction is not None:
            own[row][annotator] = prediction
    found = iter([
        TaskPredictions(task_id=task.id, own=own[row], consensus=made[len(pairs) + row])
        for row, task in enumerate(tasks)
    ])
    return [list(islice(found, len(work.tasks))) for work in works]


def whole_task(trained: Mapping[str, Space], config: LabelConfig) -> dict[str, Space]:
    """The trained controls that are answered for whole tasks, as far as the config still has them."""
    return {name: space for name, space in trained.items() if config.control(name) and name not in config.regional}


def withheld(prediction: dict[str, Any]) -> dict[str, Any]:
    """The prediction with nothing to see: its score alone, so that ordering by score still works."""
    return {**prediction, "result": []}


def as_votes(votes: Sequence[StoredVote]) -> Votes:
    """Stored votes as the learners' columns."""
    return Votes.from_votes(
        Vote(unit=vote.unit, annotator=vote.annotator, control=vote.control, value=vote.value,
             time=vote.updated_at.timestamp(), provenance=vote.provenance, scored=vote.control_arm or not vote.shown)
        for vote in votes
    )


class Offers:
    """What may be predicted now: the trained controls that this config still has, and the classes each task offers."""

    def __init__(self, trained: Mapping[str, Space], config: LabelConfig, *, regional: bool = False) -> None:
        """`regional`: of the controls that are answered for each region, instead of those of whole tasks."""
        self._config = config
        judged = {name: control.inner for name, control in config.regional.items()}
        whole = whole_task(trained, config)
        found = ((name, space, judged.get(name) if regional else config.control(name) if name in whole else None)
                 for name, space in trained.items())
        self._controls = {name: (space, control) for name, space, control in found if control is not None}
        self._masks: dict[tuple[str, str], NDArray[np.bool_]] = {}
        self._same_for_all = not any(getattr(control, "source", "") for control in config.controls)
        self._results: dict[tuple[Value | None, ...], list[dict[str, Any]] | None] = {}

    def predictions(
        self, rows: Mapping[str, Floats], data: Sequence[Mapping[str, Any]], task: Sequence[int],
        versions: Sequence[str],
    ) -> list[dict[str, Any] | None]:
        """Label Studio predictions from probabilities (R, C) per control; None where no value is left.

        `data` (B,) is that of the tasks, `task` (R,) whose data each row belongs to, `versions` (R,). Results share
        what is the same in them, so they are to be sent and not to be changed.
        """
        values, confidence = self._decided(rows, data, task)
        notes = {name: _intervals(space, rows[name]) for name, (space, _) in self._controls.items()
                 if isinstance(space, NumberBins)}
        return [
            self._prediction(tuple(column[row] for column in values), [column[row] for column in confidence],
                             data[task[row]], version, {name: column[row] for name, column in notes.items()})
            for row, version in enumerate(versions)
        ]

    def answers(
        self, rows: Mapping[str, Floats], data: Sequence[Mapping[str, Any]], task: Sequence[int],
    ) -> list[dict[str, tuple[Value, float]]]:
        """Of each row, control -> (value, how sure), without those of which nothing is offered; see `predictions`."""
        values, confidence = self._decided(rows, data, task)
        return [
            {name: (said, sure[row]) for name, value, sure in zip(self._controls, values, confidence, strict=True)
             if (said := value[row]) is not None}
            for row in range(len(task))
        ]

    def _decided(
        self, rows: Mapping[str, Floats], data: Sequence[Mapping[str, Any]], task: Sequence[int],
    ) -> tuple[list[list[Value | None]], list[list[float]]]:
        """Of each control the value of each row, and how sure it is."""
        values: list[list[Value | None]] = []
        confidence: list[list[float]] = []
        for name, (space, control) in self._controls.items():
            masks = np.array([self._mask(name, space, control, each) for each in data])  # (B, C)
            offered = masks.reshape(len(data), len(space.classes))[list(task)]
            said, sure = space.decide(rows[name], offered, complete=not self._news(space, control))
            values.append(said)
            confidence.append(np.round(np.clip(sure, 0.0, 1.0), DIGITS).tolist())
        return values, confidence

    def _prediction(
        self, values: tuple[Value | None, ...], confidence: Sequence[float], data: Mapping[str, Any], version: str,
        notes: Mapping[str, Mapping[str, Any]],
    ) -> dict[str, Any] | None:
        """One prediction from the value and confidence of each control; no value where the task offers none. `notes`
        are added to the regions of a control."""
        sure = {name: at for name, value, at in zip(self._controls, values, confidence, strict=True)
                if value is not None}
        if not sure:
            return None
        if not self._same_for_all or values not in self._results:
            chosen = {name: (value, 0.0) for name, value in zip(self._controls, values, strict=True)
                      if value is not None}
            made = self._config.prediction(chosen, data=data, model_version=version, score=0.0)
            self._results[values] = None if made is None else made["result"]
        result = self._results[values]
        if result is None:
            return None
        return {
            "result": [{**region, "score": sure[region["from_name"]], **notes.get(region["from_name"], {})}
                       for region in result],
            "score": min(sure.values()), "model_version": version,
        }

    def _mask(self, name: str, space: Space, control: Control, data: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Which trained classes this task offers, (C,). Worked out once where all tasks offer the same."""
        source = getattr(control, "source", "")
        key = (name, repr(resolve(data, source)) if source else "")
        if key not in self._masks:
            each = np.eye(len(space.classes))
            offered = [control.offered(space.decode(row), data) is not None for row in each]
            self._masks[key] = np.array(offered, dtype=np.bool_)
        return self._masks[key]

    def _news(self, space: Space, control: Control) -> bool:
        """Whether the config has classes that were not there when this space was trained."""
        now = control.space()
        return now is not None and not set(now.classes) <= set(space.classes)


def _intervals(space: NumberBins, p: Floats) -> list[dict[str, Any]]:
    """What people read beside a predicted number, for each row (R, C): the central interval."""
    low, high = space.interval(p)
    return [{"meta": {"text": [f"{INTERVAL:.0%} interval: {a:g} to {b:g}"]}}
            for a, b in zip(low.tolist(), high.tolist(), strict=True)]
