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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.labeling.task_data import resolve
from backend.records import StoredVote
from model.spaces import SingleChoice, Space, Value
from model.votes import Vote, Votes

if TYPE_CHECKING:
    from backend.labeling import Control, LabelConfig
    from model.ensemble.ladder import Ladder

Floats = NDArray[np.float64]
Tokens = NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyTask:
    """A task that can be predicted on, and the annotators who want a prediction of their own."""

    id: int
    data: Mapping[str, Any]
    tokens: Tokens  # (T, D)
    annotators: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPredictions:
    """Label Studio predictions of one task; None or missing where no value is left to offer."""

    task_id: int
    own: Mapping[str, dict[str, Any]]  # annotator -> prediction
    consensus: dict[str, Any] | None


def consensus_version(name: str | None) -> str:
    """Label Studio's model_version of the consensus of a version ("r12"); "consensus@r0" before the first."""
    return f"consensus@{name or 'r0'}"


def own_version(annotator: str, name: str) -> str:
    """Label Studio's model_version of one annotator's own predictions."""
    return f"annotator:{annotator}@{name}"


def is_account(annotator: str) -> bool:
    """Whether somebody can log in under this id; "deleted:<annotation>" cannot."""
    return not annotator.startswith("deleted:")


def predict(
    ladder: Ladder, config: LabelConfig, tasks: Sequence[ReadyTask], given: Sequence[StoredVote], *, name: str,
) -> list[TaskPredictions]:
    """Own and consensus predictions of each task under version `name`, from one forward over all of them.

    Raises ModelError when the ladder was trained on features of another dimension.
    """
    if not tasks:
        return []
    annotators = sorted({annotator for task in tasks for annotator in task.annotators})
    predictions = ladder.predict(
        [task.tokens for task in tasks], annotators, units=[str(task.id) for task in tasks], given=as_votes(given),
    )
    column = {annotator: index for index, annotator in enumerate(annotators)}
    offers = Offers(ladder.spaces, config)
    shaped = []
    for row, task in enumerate(tasks):
        own = {}
        for annotator in task.annotators:
            rows = {control: made.served[row, column[annotator]] for control, made in predictions.items()}
            prediction = offers.prediction(rows, task.data, own_version(annotator, name))
            if prediction is not None:
                own[annotator] = prediction
        rows = {control: made.consensus[row] for control, made in predictions.items()}
        consensus = offers.prediction(rows, task.data, consensus_version(name))
        shaped.append(TaskPredictions(task_id=task.id, own=own, consensus=consensus))
    return shaped


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

    def __init__(self, trained: Mapping[str, Space], config: LabelConfig) -> None:
        self._config = config
        found = ((name, space, config.control(name)) for name, space in trained.items())
        self._controls = {name: (space, control) for name, space, control in found if control is not None}
        self._masks: dict[tuple[str, str], NDArray[np.bool_]] = {}

    def prediction(self, rows: Mapping[str, Floats], data: Mapping[str, Any], version: str) -> dict[str, Any] | None:
        """Label Studio prediction from a row of probabilities (C,) per control; None when no value is left."""
        values = {}
        for name, (space, control) in self._controls.items():
            mask = self._mask(name, space, control, data)
            if mask.any():
                values[name] = _choose(space, rows[name], mask, known=not self._news(space, control))
        if not values:
            return None
        score = min(confidence for _, confidence in values.values())
        return self._config.prediction(values, data=data, model_version=version, score=score)

    def _mask(self, name: str, space: Space, control: Control, data: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Which trained classes this task offers, (C,). Worked out once where all tasks offer the same."""
        source = getattr(control, "source", "")
        key = (name, repr(resolve(data, source)) if source else "")
        if key not in self._masks:
            of = Value.of_class if isinstance(space, SingleChoice) else lambda label: Value.of_classes([label])
            offered = [control.offered(of(label), data) is not None for label in space.classes]
            self._masks[key] = np.array(offered, dtype=np.bool_)
        return self._masks[key]

    def _news(self, space: Space, control: Control) -> bool:
        """Whether the config has classes that were not there when this space was trained."""
        now = control.space()
        return now is not None and not set(now.classes) <= set(space.classes)


def _choose(space: Space, p: Floats, offered: NDArray[np.bool_], *, known: bool) -> tuple[Value, float]:
    """The most probable value made of offered classes and its confidence; p and offered are (C,).

    `known`: the offered classes are all there are, so that the probability of the others is theirs.
    """
    kept = np.where(offered, p, 0.0)
    if isinstance(space, SingleChoice):
        share = float(kept.sum()) if known else 1.0
        return space.decode(np.where(offered, p, -1.0)), float(kept.max()) / max(share, 1e-12)
    return space.decode(kept), float(np.prod(np.maximum(p, 1.0 - p)[offered]))
