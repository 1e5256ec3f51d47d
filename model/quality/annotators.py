"""What is known of each annotator from votes: how right, how consistent, how far from a spammer.

Accuracy is measured against what the *others* say of each unit (leave-one-out posteriors), never against a consensus
that contains the vote itself.

Shape legend: U units, A annotators, C classes, N votes. Confusions are [annotator, true, given].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate
from model.crowd.room import require_confusions
from model.crowd.sums import annotator_totals

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Against:
    """Votes measured against a belief about each unit."""

    table: Floats  # (A, C, C) [annotator, believed, given] summed weights
    accuracy: Floats  # (A,) NaN without votes
    low: Floats  # (A,) 95 % Wilson bounds of accuracy
    high: Floats
    kappa: Floats  # (A,) accuracy beyond what the annotator's own habits would reach by chance; NaN if undefined
    kappa_se: Floats  # (A,) standard error of kappa if there were no association
    informative: Floats  # (A,) G statistic of "answers depend on the truth", chi-square with (C - 1)^2 degrees if not


def against_belief(answers: AnswerMatrix, belief: Floats) -> Against:
    """Measure every annotator against `belief` (N, C): for each vote, what is thought of its unit without it."""
    _, n_annotators, n_classes = answers.shape
    require_confusions("judging annotators", n_annotators, n_classes)
    table = np.empty((n_annotators, n_classes, n_classes))
    weights = answers.weights
    for k in range(n_classes):
        sums = np.bincount(answers.key, belief[:, k] * weights, minlength=n_annotators * n_classes)
        table[:, k] = sums.reshape(n_annotators, n_classes)
    return _measure(table)


def against_labels(answers: AnswerMatrix, label: NDArray[np.integer]) -> Against:
    """Measure every annotator against known labels (U,), gold for instance; units with -1 are left out."""
    known = label[answers.unit] >= 0
    part = answers if known.all() else answers.select(known)
    return against_belief(part, np.eye(len(answers.classes))[label[part.unit]])


def trace(confusion: Floats) -> Floats:
    """(A,) trace of (A, C, C) confusion matrices: C for the perfect annotator, 1 for a random one."""
    return np.asarray(np.trace(confusion, axis1=1, axis2=2))


def spammer_score(confusion: Floats) -> Floats:
    """(A,) Frobenius distance of (A, C, C) confusions to the nearest matrix of rank one: 0 is a spammer.

    A matrix with equal rows (answers that do not depend on the truth) has rank one (Raykar & Yu 2011).
    """
    if confusion.shape[1] < 2:
        return np.zeros(len(confusion))
    singular = np.linalg.svd(confusion, compute_uv=False)
    return np.asarray(np.sqrt((singular[:, 1:] ** 2).sum(axis=1)))


def consensus_accuracy(answers: AnswerMatrix, fitted: Aggregate) -> Floats:
    """(A,) share of votes equal to a consensus that contains them; prefer `against_belief`. NaN without votes."""
    right = annotator_totals(answers, answers.weights * (answers.label == fitted.label[answers.unit]))
    total = annotator_totals(answers)
    return np.where(total > 0, right / np.where(total > 0, total, 1.0), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consistency:
    """How often annotators repeat themselves when they see a unit again."""

    share: Floats  # (A,) equal pairs over all pairs of votes on one unit; NaN without repeats
    pairs: NDArray[np.int64]  # (A,)


def self_consistency(
    unit: NDArray[np.integer], annotator: NDArray[np.integer], label: NDArray[np.integer], n_annotators: int
) -> Consistency:
    """From the history of votes (all revisions, equally long columns of codes), pairs of repeats of one annotator."""
    label = np.asarray(label, dtype=np.int64)
    n_classes = int(label.max(initial=0)) + 1
    pair, pair_of = np.unique(np.asarray(unit, np.int64) * max(n_annotators, 1) + annotator, return_inverse=True)
    times = np.bincount(pair_of, minlength=len(pair)).astype(np.float64)
    cells, n = np.unique(pair_of * n_classes + label, return_counts=True)
    same = np.bincount(cells // n_classes, n * (n - 1) / 2.0, minlength=len(pair))
    who = pair % max(n_annotators, 1)
    every = np.bincount(who, times * (times - 1) / 2.0, minlength=n_annotators)
    equal = np.bincount(who, same, minlength=n_annotators)
    share = np.where(every > 0, equal / np.where(every > 0, every, 1.0), np.nan)
    return Consistency(share=share, pairs=every.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Speed:
    """How fast annotators work, from the seconds that each vote took."""

    median_s: Floats  # (A,) NaN without votes
    relative: Floats  # (A,) median of the log ratio to the unit's median, as a factor: 0.5 is twice as fast as others
    hurried: Floats  # (A,) share of votes given in less than a fifth of the unit's median time


def speed(unit: NDArray[np.integer], annotator: NDArray[np.integer], seconds: Floats, n_annotators: int) -> Speed:
    """Compare each vote with the median time on the same unit; votes without a positive time are left out."""
    keep = np.isfinite(seconds) & (seconds > 0)
    unit, annotator, seconds = np.asarray(unit)[keep], np.asarray(annotator)[keep], seconds[keep]
    usual = grouped_median(unit, seconds, int(unit.max(initial=-1)) + 1)[unit] if len(unit) else seconds
    relative = np.log(seconds / usual) if len(unit) else seconds
    n = np.bincount(annotator, minlength=n_annotators)
    hurried = np.bincount(annotator, relative < np.log(0.2), minlength=n_annotators)
    return Speed(
        median_s=grouped_median(annotator, seconds, n_annotators),
        relative=np.exp(grouped_median(annotator, relative, n_annotators)),
        hurried=np.where(n > 0, hurried / np.maximum(n, 1), np.nan),
    )


def grouped_median(group: NDArray[np.integer], value: Floats, n_groups: int) -> Floats:
    """(n_groups,) median of `value` in each group; NaN for empty ones."""
    order = np.argsort(value)
    narrow = group.astype(np.uint16) if n_groups <= 1 << 16 else group  # these are sorted digit by digit
    order = order[np.argsort(narrow[order], kind="stable")]
    n = np.bincount(group, minlength=n_groups)
    first = np.cumsum(n) - n
    ordered = np.append(value[order], np.nan)
    low = np.where(n > 0, first + np.maximum(n - 1, 0) // 2, len(value))
    high = np.where(n > 0, first + n // 2, len(value))
    return np.asarray(0.5 * (ordered[low] + ordered[high]))


def _measure(table: Floats) -> Against:
    n = table.sum(axis=(1, 2))
    some = np.maximum(n, 1e-12)
    right = np.trace(table, axis1=1, axis2=2)
    row, column = table.sum(axis=2) / some[:, None], table.sum(axis=1) / some[:, None]  # (A, C)
    accuracy = np.where(n > 0, right / some, np.nan)
    chance = (row * column).sum(axis=1)
    room = 1.0 - chance
    kappa = np.where((n > 0) & (room > 1e-9), (accuracy - chance) / np.where(room > 1e-9, room, 1.0), np.nan)
    # Fleiss, Cohen & Everitt (1969): variance of kappa under independence.
    skew = chance + chance**2 - (row * column * (row + column)).sum(axis=1)
    se = np.sqrt(np.maximum(skew, 0.0) / some) / np.where(room > 1e-9, room, np.inf)
    share = table / some[:, None, None]
    independent = row[:, :, None] * column[:, None, :]
    ratio = np.where(share > 0, share / np.where(independent > 0, independent, 1.0), 1.0)
    informative = 2.0 * n * (share * np.log(ratio)).sum(axis=(1, 2))
    z = 1.96
    center = (np.nan_to_num(accuracy) + z**2 / (2 * some)) / (1 + z**2 / some)
    half = z * np.sqrt(np.nan_to_num(accuracy * (1 - accuracy)) / some + z**2 / (4 * some**2)) / (1 + z**2 / some)
    return Against(
        table=table, accuracy=accuracy, low=np.where(n > 0, center - half, np.nan),
        high=np.where(n > 0, center + half, np.nan), kappa=kappa, kappa_se=se, informative=informative,
    )
