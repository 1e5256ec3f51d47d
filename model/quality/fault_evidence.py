"""The tests behind `faults`: for each fault the p-value of "labels sensibly, with a habit of their own".

Every function gives p-values (A,) of one test, to be held against `Case.level`, which is shared by people, kinds and
looks; 1 where the fault is out of the question anyway.

Shape legend: A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr

from model.crowd.answers import AnswerMatrix
from model.crowd.sums import class_totals
from model.quality.annotators import Against, Consistency
from model.quality.drift import Drift
from model.quality.grounds import FEWEST_TASKS, Grounds

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]

TIED, MOST_USUAL = 0.4, 0.5  # share of the usual strength of a tie; the usual one is taken for at most so strong
RELATED = 0.01  # p-value below which somebody is tied to the others
NEARLY = 0.01  # p-value of a tie at which the second witness decides, at the level of everybody
SEES = 0.4  # of the tasks with other classes that somebody sensible with a favourite sees, at least
FITS = 0.05  # p-value below which the votes beside a favourite fit the tasks
SWAPPED, EACH_WAY = 0.4, 5  # share, and votes, that are turned round in either direction
PLAIN = -2.0  # standard errors by which the others' plain votes say so, too
FALL, EACH_SIDE = 0.15, 10  # of the share that agrees with the rest; votes on either side of a change
TELLS, LEAST_GAIN = 0.5, 0.02  # of the usual gain, as a share of the labels' entropy; below it, content tells nothing
REPEATS = 10  # pairs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witness:
    """What is known of annotators beside the votes of others."""

    gain: Floats | None = None  # (N,) nats by which an out-of-sample prediction from the content tells the vote better
    #                             than the annotator's class rates do; NaN where there is none
    repeats: Consistency | None = None  # (A,) of the same annotators
    task: Codes | None = None  # (N,) the task of each vote, where units are questions on tasks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """What the tests are made on: shared votes only, but for the gain from content."""

    answers: AnswerMatrix
    belief: Floats
    against: Against
    ground: Grounds
    hard: Floats  # (A, C, C)
    witness: Witness
    who: NDArray[np.int32]  # annotators of all votes, shared or not
    entropy: Floats  # (A,) of the labels that each gives, nats
    top: Codes  # (A,) class given most often, its share, and its share to expect
    share: Floats
    expected: Floats
    drift: Drift | None
    level: Floats  # (A,)


def entropy(answers: AnswerMatrix) -> Floats:
    """(A,) nats of what each annotator answers, whatever the task is."""
    people, n_classes = answers.shape[1:]
    given = np.bincount(answers.key, minlength=people * n_classes).reshape(people, n_classes)
    share = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    return np.asarray(-np.sum(np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0), axis=1))


def per_task(case: Case) -> Floats:
    """(N,) what a row counts for at most, so that all questions on one task count for one vote together."""
    task = case.witness.task
    if task is None or not len(case.answers):
        return np.ones(len(case.answers))
    mine = np.asarray(task, np.int64)[case.ground.shared]
    pair = mine * len(case.level) + case.answers.annotator
    _, of, n = np.unique(pair, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / n[of])


def favourite(against: Against) -> tuple[Codes, Floats, Floats]:
    """Most frequent answer of each annotator, its share, and the share to expect on their units."""
    table = against.table  # (A, believed, given)
    n = table.sum(axis=(1, 2))
    if table.shape[1] < 2:
        nothing = np.full(len(table), np.nan)
        return np.zeros(len(table), np.int64), nothing, nothing
    given = table.sum(axis=1)  # (A, C)
    top, every = given.argmax(axis=1), np.arange(len(table))
    share = np.where(n > 0, given[every, top] / np.maximum(n, 1e-300), np.nan)
    pooled = table.sum(axis=0) + 1e-9
    pooled /= pooled.sum(axis=1, keepdims=True)
    units = table.sum(axis=2) / np.maximum(n, 1e-300)[:, None]  # (A, C) what their units are
    expected = np.where(n > 0, (units * pooled[:, top].T).sum(axis=1), np.nan)
    return top, share, expected


def constant(case: Case) -> Floats:
    """p-value of "sees the other classes at least in `SEES` of the tasks that have them"; 1 where the tasks explain the
    favourite, or where the few other votes fit the tasks."""
    table, top, every = case.against.table, case.top, np.arange(len(case.top))
    n = table.sum(axis=(1, 2))
    if table.shape[1] < 2:
        return np.ones(len(top))
    count = np.maximum(table.sum(axis=1)[every, top], 1.0)
    chance = np.clip(np.nan_to_num(case.expected), 1e-6, 1.0 - 1e-6)
    unexplained = betainc(count, np.maximum(n - count, 0.0) + 1.0, chance)  # binomial P(X >= count)
    there = n - table[every, top].sum(axis=1)  # tasks that are of other classes, in expectation
    rest = n - table.sum(axis=1)[every, top]  # votes for other classes, on whatever task
    # Hoeffding (1956): below its mean, a sum of trials of differing chances is rarer than the binomial of their mean.
    few, all_of = np.floor(rest + 1e-6), np.maximum(np.ceil(n), 1.0)
    seen = np.clip(SEES * there / all_of, 1e-9, 1.0 - 1e-9)
    blind = betainc(np.maximum(all_of - few, 1e-9), few + 1.0, 1.0 - seen)  # binomial P(X <= few)
    x, y = 1.0 - case.belief, case.answers.label != top[case.answers.annotator]
    rows = np.arange(len(y))
    z = permutation_z(case.answers.annotator, x[rows, top[case.answers.annotator]], y, len(top))
    return np.where((unexplained <= case.level) & (ndtr(-z) >= FITS), np.nan_to_num(blind, nan=1.0), 1.0)


def permutation_z(who: NDArray[np.integer], x: Floats, y: NDArray[np.bool_], people: int) -> Floats:
    """(A,) standard errors by which y goes along with x, if labels were dealt out at random; 0 where nothing varies."""
    n = np.bincount(who, minlength=people).astype(np.float64)
    some = np.maximum(n, 1.0)
    mean_x, mean_y = np.bincount(who, x, minlength=people) / some, np.bincount(who, y, minlength=people) / some
    both = np.bincount(who, x * y, minlength=people) - n * mean_x * mean_y
    var_x = np.bincount(who, x**2, minlength=people) / some - mean_x**2
    var_y = mean_y * (1.0 - mean_y)
    scale = np.sqrt(np.maximum(n**2 * var_x * var_y / np.maximum(n - 1.0, 1.0), 0.0))
    return np.where(scale > 1e-6, both / np.where(scale > 1e-6, scale, 1.0), 0.0)


def inverted(case: Case) -> Floats:
    """p-value of "does not turn any two classes round", Bonferroni over the pairs.

    The others' plain votes must say so as well: a few who label alike can lend classes of an aggregator wrong names.
    """
    hard = case.hard  # (A, believed, given)
    people, n_classes = hard.shape[:2]
    found = np.ones(people)
    of = hard.sum(axis=2)
    swapped = (hard >= SWAPPED * of[:, :, None]) & (hard >= EACH_WAY) & ~np.eye(n_classes, dtype=np.bool_)
    pairs = n_classes * (n_classes - 1) / 2
    both = np.argwhere(swapped & swapped.transpose(0, 2, 1))
    votes = class_totals(case.answers) if len(both) else np.empty((0, n_classes))
    for a, j, k in both.tolist():
        if j < k:
            rows = np.flatnonzero((case.answers.annotator == a) & np.isin(case.answers.label, (j, k)))
            one, said = np.zeros(len(rows), np.int64), case.answers.label[rows] == j
            own = np.where(said, 1.0, -1.0) * case.answers.weights[rows]
            plain = votes[case.answers.unit[rows], j] - votes[case.answers.unit[rows], k] - own
            z = permutation_z(one, case.belief[rows, j] - case.belief[rows, k], said, 1)[0]
            if permutation_z(one, plain, said, 1)[0] <= PLAIN:
                found[a] = min(found[a], float(ndtr(z)) * pairs)
    return found


def drifted(case: Case) -> Floats:
    """p-value of "no change"; 1 where nothing falls, too little stands on one side, or the content explains it."""
    moved, given = case.drift, case.witness.gain
    if moved is None:
        return np.ones(len(case.level))
    n = np.bincount(case.answers.annotator, minlength=len(case.level))
    falls = np.nan_to_num(moved.before - moved.after) >= FALL
    sides = (moved.change >= EACH_SIDE) & (n - moved.change >= EACH_SIDE)
    found = np.where(falls & sides, moved.p_value, 1.0)
    if given is not None and case.answers.time is not None:
        for a in np.flatnonzero(found <= case.level):  # a rule of one's own may meet the others' in some of the tasks
            rows = np.flatnonzero(case.answers.annotator == a)
            rows = rows[np.argsort(case.answers.time[rows], kind="stable")]
            gain = np.clip(given[case.ground.shared][rows], -3.0, 3.0)
            early, late = gain[: moved.change[a]], gain[moved.change[a] :]
            early, late = early[np.isfinite(early)], late[np.isfinite(late)]
            if len(early) >= EACH_SIDE and len(late) >= EACH_SIDE and late.mean() > max(0.5 * early.mean(), LEAST_GAIN):
                found[a] = 1.0
    return found


def content(case: Case, unrelated: Flags) -> tuple[Floats, Flags]:
    """(A,) p-value of "the content tells their labels `TELLS` times as well as usually", and whether it tells them."""
    people = len(case.level)
    nothing, nobody = np.ones(people), np.zeros(people, np.bool_)
    given = case.witness.gain
    if given is None:
        return nothing, nobody
    known = np.isfinite(given)
    who, gain = case.who[known], np.clip(given[known], -3.0, 3.0)
    n = np.bincount(who, minlength=people)
    some = np.maximum(n, 1)
    mean = np.bincount(who, gain, minlength=people) / some
    spread = np.sqrt(np.maximum(np.bincount(who, gain**2, minlength=people) / some - mean**2, 1e-6))
    error = spread / np.sqrt(some)
    judged = (n >= FEWEST_TASKS) & (case.entropy > 1e-6)
    reach = np.where(judged, mean / np.maximum(case.entropy, 1e-6), 0.0)  # somebody with a favourite has less to tell
    others = reach[judged & ~unrelated]
    usual = float(np.median(others)) if len(others) >= 2 else 0.0
    tells = judged & (mean > 2.33 * error) & (mean > 0)
    if usual < LEAST_GAIN:
        return nothing, tells
    return np.where(judged, ndtr((mean - TELLS * usual * case.entropy) / error), 1.0), tells


def consistent(case: Case) -> Flags:
    """(A,) whose own repeats are alike beyond chance. The opposite proves nothing: a changed vote is a correction."""
    found = case.witness.repeats
    if found is None:
        return np.zeros(len(case.level), np.bool_)
    given = case.against.table.sum(axis=1)
    rates = given / np.maximum(given.sum(axis=1, keepdims=True), 1e-300)
    chance = np.clip((rates**2).sum(axis=1), 1e-9, 1.0 - 1e-9)
    pairs = found.pairs.astype(np.float64)
    equal = np.round(np.nan_to_num(found.share) * pairs)
    some = (pairs >= REPEATS) & (equal > 0)
    tail = betainc(np.where(some, equal, 1.0), np.where(some, pairs - equal, 0.0) + 1.0, chance)  # P(X >= equal)
    return np.asarray(some & (tail < FITS))
