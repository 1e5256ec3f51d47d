"""What `identify` finds, as two tables: a row for each annotator and a row for each task.

Columns that a data set has nothing for (speed without times, accuracy without gold) are not there.

Shape legend: U units, A annotators, C classes, E epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import ClientError
from backend.formats import Dataset

if TYPE_CHECKING:
    from model.crowd import Aggregator, AnswerMatrix
    from model.quality.annotators import Against
    from model.quality.judged import Judged

GROUPS_OF = 400  # annotators; pairwise tables grow with the square
Floats = NDArray[np.float64]
Columns = dict[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Everything that the tables are made of."""

    dataset: Dataset
    control: str
    judged: Judged
    logits: Floats | None  # (E, U, C)

    @property
    def answers(self) -> AnswerMatrix:
        """The votes."""
        return self.judged.answers

    @property
    def against(self) -> Against:
        """The votes, judged by everybody else."""
        return self.judged.against


def find(
    dataset: Dataset, control: str, answers: AnswerMatrix, method: Aggregator, *, logits: Floats | None, glad: bool
) -> Found:
    """Run the aggregator and the detectors. Raises ModelError when the method has no likelihood."""
    from model.quality.judged import judge

    return Found(dataset=dataset, control=control, judged=judge(answers, method, glad=glad), logits=logits)


def annotator_columns(found: Found) -> Columns:
    """(A,) columns; `kappa` is the accuracy beyond chance by which the worst come first."""
    from model.quality.annotators import against_labels, spammer_score, trace
    from model.quality.clusters import group_annotators
    from model.quality.margins import annotator_area_under_margin

    answers, against, faults = found.answers, found.against, found.judged.faults
    fitted, ground = faults.fitted, faults.grounds
    met = ground.common > 0  # of somebody without common tasks the votes of the others say nothing
    columns: dict[str, Any] = {
        "annotator": list(answers.annotators), "votes": ground.votes, "common_tasks": ground.common,
        "common_people": ground.others, "accuracy": against.accuracy, "low": against.low, "high": against.high,
        "kappa": against.kappa,
    }
    gold = answers.gold_codes(found.dataset.gold.get(found.control))
    if (gold >= 0).any():
        columns["gold_accuracy"] = against_labels(answers, gold).accuracy
    if fitted.confusion is not None:
        columns["trace"] = _where(met, trace(fitted.confusion))
        columns["spammer_score"] = _where(met, spammer_score(fitted.confusion))
    if found.judged.glad is not None and found.judged.glad.skill is not None:
        columns["glad_ability"] = _where(met, found.judged.glad.skill)
    if found.logits is not None and fitted.confusion is not None:
        columns["waum"] = annotator_area_under_margin(answers, found.logits, fitted.confusion)
    top = [answers.classes[code] if there else None for code, there in zip(faults.top_class, met, strict=True)]
    columns["top_class"], columns["top_share"], columns["expected_share"] = top, faults.top_share, faults.expected_share
    columns |= _history(found)
    if faults.drift is not None:
        columns["drift_p"] = _where(ground.enough, faults.drift.p_value)
    if 2 < len(answers.annotators) <= GROUPS_OF:
        columns["group"] = group_annotators(answers).member
    columns["fault"] = [None if fault == "none" else fault.value for fault in faults.fault]
    columns["false_alarm"] = faults.p_value
    columns["says"] = [" ".join(said) for said in sayings(found)]
    return {name: _plain(column) for name, column in columns.items()}


def sayings(found: Found) -> list[list[str]]:
    """(A,) what there is to say of each annotator in sentences: what is missing, habits, a finding."""
    from backend.report.people_sentences import judged
    from backend.services.statistics.judgement import judgement

    return [judged(judgement(found.judged.faults, at)) for at in range(len(found.answers.annotators))]


def task_columns(found: Found) -> Columns:
    """(U,) columns; `surprise` is the disagreement that the annotators' habits do not explain, `cause` why the votes
    differ and `whose` whose habits and slips that are."""
    from model.quality.margins import area_under_margin, weighted_area_under_margin
    from model.quality.tasks import entropy, posterior_entropy

    answers, fitted = found.answers, found.judged.faults.fitted
    names = [*answers.classes, None]  # code -1 is the last
    columns: dict[str, Any] = {
        "task": list(answers.units), "votes": np.diff(answers.indptr),
        "label": [names[code] for code in fitted.label.tolist()], "confidence": fitted.confidence,
        "entropy": entropy(answers), "smoothed_entropy": entropy(answers, smoothing=1.0),
        "posterior_entropy": posterior_entropy(fitted),
        "surprise": found.judged.surprise if found.judged.surprise is not None else posterior_entropy(fitted),
    }
    columns |= _causes(found)
    if found.judged.glad is not None and found.judged.glad.difficulty is not None:
        columns["glad_difficulty"] = np.where(answers.voted, found.judged.glad.difficulty, np.nan)
    if found.logits is not None:
        columns["aum"] = area_under_margin(found.logits, fitted.label)
        if fitted.confusion is not None:
            columns["waum"] = weighted_area_under_margin(answers, found.logits, fitted.confusion)
    gold = found.dataset.gold.get(found.control, {})
    if gold:
        columns["gold"] = [gold.get(unit) for unit in answers.units]
    return {name: _plain(column) for name, column in columns.items()}


def _causes(found: Found) -> dict[str, Any]:
    """Why the votes on each task differ, and the annotators whose habits or slips explain it."""
    from model.quality.causes import CAUSES, Cause, causes

    answers = found.answers
    why = causes(answers, found.judged.faults.belief)
    named = np.isin(why.vote, [CAUSES.index(Cause.HABIT), CAUSES.index(Cause.SLIP)])
    whose: dict[int, list[str]] = {}
    for row in np.flatnonzero(named).tolist():
        name = answers.annotators[answers.annotator[row]]
        whose.setdefault(int(answers.unit[row]), []).append(f"{CAUSES[why.vote[row]].value} of {name}")
    return {
        "cause": [CAUSES[code].value for code in why.unit.tolist()],
        "whose": ["; ".join(whose[unit]) if unit in whose else None for unit in range(len(answers.units))],
    }


def read_logits(path: Path, answers: AnswerMatrix) -> Floats:
    """(E, U, C) logits in the order of the answers' tasks and classes, from an .npz file. Raises ClientError."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            missing = [name for name in ("logits", "tasks", "classes") if name not in stored]
            if missing:
                raise ClientError(f"{path.name} lacks {', '.join(missing)}; it has {', '.join(stored)}.")
            logits = np.asarray(stored["logits"], dtype=np.float64)
            tasks, classes = [str(each) for each in stored["tasks"]], [str(each) for each in stored["classes"]]
    except (ValueError, EOFError, TypeError, AttributeError) as error:
        raise ClientError(f"{path.name} is not an .npz file with logits, tasks and classes.") from error
    if logits.ndim != 3 or logits.shape[1:] != (len(tasks), len(classes)):
        raise ClientError(f"{path.name}: logits have shape {logits.shape}, needed is (epochs, tasks, classes).")
    for what, there, needed in (("task", tasks, answers.units), ("class", classes, answers.classes)):
        lacking = set(needed) - set(there)
        if lacking:
            raise ClientError(f"{path.name} has no logits for the {what} {min(lacking)}.")
    task_at, class_at = ({name: i for i, name in enumerate(table)} for table in (tasks, classes))
    return logits[:, [task_at[unit] for unit in answers.units]][:, :, [class_at[name] for name in answers.classes]]


def _history(found: Found) -> dict[str, Any]:
    """What repeats and lead times tell, from all votes of the control, the replaced ones too."""
    from model.quality.annotators import self_consistency, speed

    votes = found.dataset.votes
    rows = np.flatnonzero(votes.control == votes.controls.index(found.control)) if found.control in votes.controls \
        else np.empty(0, np.int64)
    unit, annotator, n = votes.unit[rows], votes.annotator[rows], len(votes.annotators)
    columns: dict[str, Any] = {}
    repeats = self_consistency(unit, annotator, votes.value[rows], n)
    if repeats.pairs.any():
        columns["self_consistency"] = repeats.share
    if found.dataset.lead_time_s is not None:
        pace = speed(unit, annotator, found.dataset.lead_time_s[rows], n)
        columns["median_s"], columns["relative_speed"] = pace.median_s, pace.relative
    return columns


def _where(known: NDArray[np.bool_], column: Floats) -> Floats:
    return np.where(known, column, np.nan)


def _plain(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)
