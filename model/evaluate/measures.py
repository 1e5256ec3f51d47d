"""Every figure of a model in a setting, in all bootstrap draws at once.

Over votes: accuracy, log-loss (nats), Brier score, calibration error (ECE, ten bins), mean absolute error in steps of
ordered classes, macro-F1. Averaged over annotators (`..._annotators`): accuracy, log-loss, macro-F1, weighted F1. The
F1 of a class that is neither given nor predicted is not counted.

Consensus against the majority of all votes of the task (a tie counts for each of its classes) and against gold:
    copr       the majority of the predictions for the task's own annotators (Post-mv), visible votes counting as given
    consensus  the consensus that the model itself states, where it has one
DIC is the Frobenius norm, ADD the mean absolute size of the difference between true and predicted pairwise Cohen kappa
of annotators with at least ten scored votes in common.

Shape legend: M votes (of all seeds), R draws, G tasks, A annotators, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.data.metrics import Interval, brier_scores, correct, log_losses
from model.data.spaces import ValueKind
from model.evaluate.bootstrap import Resampler, interval, jackknife
from model.evaluate.problem import Problem
from model.quality.agreement import pairwise_agreement

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_BINS = 10
_MIN_COMMON = 10
LOWER_IS_BETTER = frozenset({"log_loss", "log_loss_annotators", "brier", "ece", "mae", "dic", "add"})


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """One model's predictions of votes, seeds one after the other."""

    row: Rows  # (M,) of the problem's votes
    seed: Rows  # (M,)
    p: Floats  # (M, C)


def vote_figures(problem: Problem, found: Predicted, draws: Floats) -> dict[str, Floats]:
    """name -> (R + 1,) figures of scored votes; row 0 is the data."""
    space, y, p = problem.space, problem.y[found.row], found.p
    sample = Resampler(draws=draws, task=problem.task[found.row])
    losses, hits = log_losses(space, p, y), correct(space, p, y).astype(np.float64)
    columns = [np.ones(len(p)), hits, losses, brier_scores(p, y)]
    names = ["accuracy", "log_loss", "brier"]
    if problem.ordinal:
        columns.append(np.abs(p.argmax(1) - y.argmax(1)).astype(np.float64))
        names.append("mae")
    sums = sample.sums(np.stack(columns, 1))
    out = {name: sums[:, at] / sums[:, 0] for at, name in enumerate(names, start=1)}
    out["ece"] = _calibration(problem, p, y, sample)
    out["macro_f1"] = _f1(problem, p, y, sample, np.zeros(len(p), np.int64), 1)[0][:, 0]
    annotator, people = problem.votes.annotator[found.row], len(problem.votes.annotators)
    own = annotator_figures(problem, found, draws)
    macro, weighted = _f1(problem, p, y, sample, annotator, people)
    for name, table in {**own, "macro_f1": macro, "weighted_f1": weighted}.items():
        out[f"{name}_annotators"] = np.nanmean(table, 1)
    return out


def annotator_figures(problem: Problem, found: Predicted, draws: Floats) -> dict[str, Floats]:
    """accuracy and log_loss -> (R + 1, A) by annotator; NaN where a draw holds no vote of theirs."""
    space, y = problem.space, problem.y[found.row]
    sample = Resampler(draws=draws, task=problem.task[found.row])
    annotator, people = problem.votes.annotator[found.row], len(problem.votes.annotators)
    count = sample.grouped(np.ones(len(y)), annotator, people)
    columns = {"accuracy": correct(space, found.p, y).astype(np.float64), "log_loss": log_losses(space, found.p, y)}
    with np.errstate(invalid="ignore"):
        return {
            name: np.where(count > 0, sample.grouped(column, annotator, people) / count, np.nan)
            for name, column in columns.items()
        }


def _calibration(problem: Problem, p: Floats, y: NDArray[np.float32], sample: Resampler) -> Floats:
    """(R + 1,) expected calibration error; with several choices over all decisions."""
    if problem.space.kind is ValueKind.CLASS:
        confidence, hit = p.max(1)[:, None], correct(problem.space, p, y).astype(np.float64)[:, None]
    else:
        confidence, hit = np.maximum(p, 1.0 - p), ((p >= 0.5) == (y >= 0.5)).astype(np.float64)
    which = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
    gap = np.zeros((len(p), _BINS))
    for column in range(confidence.shape[1]):
        gap[np.arange(len(p)), which[:, column]] += hit[:, column] - confidence[:, column]
    total = sample.sums(np.ones((len(p), 1)))[:, 0] * confidence.shape[1]
    return np.asarray(np.abs(sample.sums(gap)).sum(1) / total)


def _f1(
    problem: Problem, p: Floats, y: NDArray[np.float32], sample: Resampler, group: NDArray[np.integer], groups: int
) -> tuple[Floats, Floats]:
    """Macro and weighted F1 of each group, (R + 1, groups) each; NaN for a group without votes."""
    if problem.space.kind is ValueKind.CLASS:
        said = np.zeros(p.shape)
        said[np.arange(len(p)), p.argmax(1)] = 1.0
    else:
        said = (p >= 0.5).astype(np.float64)
    given = (y > 0.5).astype(np.float64)
    total = np.zeros((3, len(sample.draws), groups))  # F1 summed, classes that count, F1 weighted by the true class
    support = np.zeros(total.shape[1:])
    for c in range(p.shape[1]):
        true = sample.grouped(given[:, c], group, groups)
        size = true + sample.grouped(said[:, c], group, groups)
        both = sample.grouped(given[:, c] * said[:, c], group, groups)
        f1 = np.where(size > 0, 2.0 * both / np.maximum(size, 1e-12), 0.0)
        total += np.stack([f1, (size > 0).astype(np.float64), f1 * true])
        support += true
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total[1] > 0, total[0] / total[1], np.nan), np.where(support > 0, total[2] / support, np.nan)


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """One model's consensus of units, seeds one after the other."""

    unit: Rows  # (m,) codes
    p: Floats  # (m, C)


def consensus_figures(
    problem: Problem, copr: Agreed, stated: Agreed | None, draws: Floats
) -> dict[str, Floats]:
    """copr, consensus, and both against gold where there is any -> (R + 1,). Only for single choices."""
    majority = full_majority(problem)
    task_of_unit = np.zeros(len(problem.votes.units), np.int64)
    task_of_unit[problem.votes.unit] = problem.task
    classes = {name: index for index, name in enumerate(problem.space.classes)}
    gold = np.array([classes.get(problem.gold.get(unit, ""), -1) for unit in problem.votes.units])
    out = {}
    for name, agreed in (("copr", copr), ("consensus", stated)):
        if agreed is None or not len(agreed.unit):
            continue
        said = agreed.p.argmax(1)
        hit = majority[agreed.unit, said].astype(np.float64)
        out[name] = _mean(hit, task_of_unit[agreed.unit], draws)
        known = gold[agreed.unit] >= 0
        if known.any():
            right = (said == gold[agreed.unit])[known].astype(np.float64)
            out[f"{name}_gold"] = _mean(right, task_of_unit[agreed.unit[known]], draws)
    return out


def full_majority(problem: Problem) -> NDArray[np.bool_]:
    """(U, C) whether a class has the most votes of a unit, of all its votes; in a tie each has."""
    count = np.zeros((len(problem.votes.units), len(problem.space.classes)))
    np.add.at(count, problem.votes.unit, problem.y)
    return np.asarray((count == count.max(1, keepdims=True)) & (count > 0))


def voted_consensus(problem: Problem, found: Predicted, shown: NDArray[np.bool_]) -> Agreed:
    """Post-mv: each of the unit's annotators counts for their predicted class, or for their vote where it was shown;
    ties go to the class with the larger sum of probabilities."""
    y, classes = problem.y[found.row], len(problem.space.classes)
    p = np.where(shown[:, None], y, found.p)
    said = np.zeros(p.shape)
    said[np.arange(len(p)), p.argmax(1)] = 1.0
    key = found.seed * len(problem.votes.units) + problem.votes.unit[found.row]
    used, place = np.unique(key, return_inverse=True)
    table = np.zeros((len(used), classes))
    np.add.at(table, place, said + p / (1.0 + len(problem.votes.annotators)))
    return Agreed(unit=used % len(problem.votes.units), p=table)


def _mean(values: Floats, task: Rows, draws: Floats) -> Floats:
    sums = Resampler(draws=draws, task=task).sums(np.stack([values, np.ones(len(values))], 1))
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[:, 0] / sums[:, 1])


def kappa_distances(problem: Problem, found: Predicted) -> Mapping[str, Interval]:
    """dic and add of the first seed's votes; none where no two annotators have enough in common."""
    first = found.seed == found.seed.min(initial=0)
    row, said = found.row[first], found.p[first].argmax(1)
    task = problem.task[row]
    true = _kappa(problem, row, problem.y[row].argmax(1), np.ones(len(row), np.bool_))
    if not np.isfinite(true).any():
        return {}

    def distances(kept: NDArray[np.bool_]) -> Floats:
        given = true if kept.all() else _kappa(problem, row, problem.y[row].argmax(1), kept)
        gap = _kappa(problem, row, said, kept) - given
        gap = gap[np.isfinite(gap)]
        return np.array([np.linalg.norm(gap), np.abs(gap).mean()]) if len(gap) else np.full(2, np.nan)

    return dict(zip(("dic", "add"), jackknife(distances, task), strict=True))


def _kappa(problem: Problem, row: Rows, label: Rows, kept: NDArray[np.bool_]) -> Floats:
    """(A, A) Cohen's kappa; NaN on the diagonal and where two have too few votes in common."""
    votes = problem.votes
    found = pairwise_agreement(AnswerMatrix.from_codes(
        units=votes.units, annotators=votes.annotators, classes=problem.space.classes, unit=votes.unit[row[kept]],
        annotator=votes.annotator[row[kept]], label=label[kept].astype(np.int32),
    ))
    few = found.common < _MIN_COMMON
    np.fill_diagonal(few, True)
    return np.where(few, np.nan, found.kappa)


def intervals(figures: Mapping[str, Floats]) -> dict[str, Interval]:
    """name -> interval of (R + 1,) figures."""
    return {name: interval(values) for name, values in figures.items()}
