"""What a unit means, given everybody's habits: one class, or two that it can be read as.

    one : (1 - T) rho[k] prod_a M_a[k, l_a]
    two : tau[jk] mean_x prod_a (x M_a[j, l_a] + (1 - x) M_a[k, l_a]),   j, k the classes with most votes, T = sum tau

x, the share that reads the unit as j, lies on `SHARES`. tau is estimated for each pair of classes from all units, under
a prior of one unit in ten. A split among people who usually agree speaks for two readings; one that their habits
explain does not. A unit whose votes are all equal may have a second reading that nobody gave; it counts
for tau and is never said to have two.

Shape legend: P people, U units, C classes, N votes, S shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.sums import class_totals, safe_log, softmax_rows, unit_totals

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
SHARES = np.array([0.2, 0.35, 0.5, 0.65, 0.8])
MOST = 0.5  # units with two readings, at most
_PRIOR, _STRENGTH = 0.1, 20.0  # share of units with two readings, and how many units it counts for


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes:
    """The votes, as the rounds of the fit need them: made once."""

    answers: AnswerMatrix
    people: Codes  # (N,)
    weight: Floats  # (N,)
    pair: Codes  # (U, 2) the two classes with most votes
    divided: NDArray[np.bool_]  # (U,) whether both have one

    @classmethod
    def of(cls, answers: AnswerMatrix, people: Codes) -> Votes:
        """At least two classes."""
        totals = class_totals(answers)
        pair = np.argpartition(-totals, 1, axis=1)[:, :2].astype(np.int64)
        divided = np.take_along_axis(totals, pair, axis=1).min(axis=1) > 0
        return cls(answers=answers, people=people, weight=answers.weights, pair=pair, divided=divided)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """What is believed of every unit; of each vote's unit also without that vote."""

    probability: Floats  # (U,) of two readings; 0 where no two classes were given
    posterior: Floats  # (U, C) what a vote on the unit means
    one: Floats  # (N, C) one class, without the vote
    two: Floats  # (N, S) two readings, without the vote
    counted: Floats  # (N, C) as what each vote counts: the class without the vote, less what two readings explain
    classes: Floats  # (C,) rho
    pairs: Floats  # (C, C) tau, symmetric


def read(votes: Votes, confusion: Floats, before: Readings | None) -> Readings:
    """One E step with these confusions (P, C, C), and what it says of rho and tau."""
    answers, c = votes.answers, confusion.shape[1]
    pairs = _PRIOR / (c * (c - 1) / 2.0) * (1.0 - np.eye(c)) if before is None else before.pairs
    classes = np.full(c, 1.0 / c) if before is None else before.classes
    table = safe_log(confusion.transpose(0, 2, 1)).reshape(-1, c)
    rows = table[votes.people * c + answers.label] * votes.weight[:, None]  # (N, C)
    one = np.stack([unit_totals(answers, rows[:, k]) for k in range(c)], axis=1)
    one += safe_log(classes) + np.log(1.0 - pairs.sum() / 2.0)
    pair, unit = votes.pair, answers.unit
    p = np.exp(np.take_along_axis(rows, pair[unit], axis=1))  # (N, 2)
    mixed = np.log(SHARES * p[:, :1] + (1.0 - SHARES) * p[:, 1:])  # (N, S)
    two = np.stack([unit_totals(answers, mixed[:, s]) for s in range(len(SHARES))], axis=1)
    chance = np.where(votes.divided, pairs[pair[:, 0], pair[:, 1]], pairs.sum(axis=1)[pair[:, 0]])
    two += safe_log(chance)[:, None] - np.log(len(SHARES))
    without = np.empty((len(answers), c + len(SHARES)))
    without[:, :c] = one[answers.unit] - rows
    without[:, c:] = two[unit] - mixed
    softmax_rows(without)
    whole = np.concatenate([one, two], axis=1)
    softmax_rows(whole)
    several_votes = np.diff(answers.indptr) > 1
    probability = whole[:, c:].sum(axis=1)
    posterior = whole[:, :c].copy()
    at = np.arange(len(posterior))
    posterior[at, pair[:, 0]] += whole[:, c:] @ SHARES
    posterior[at, pair[:, 1]] += whole[:, c:] @ (1.0 - SHARES)
    single = without[:, :c] / np.maximum(without[:, :c].sum(axis=1, keepdims=True), 1e-300)
    split = np.where(votes.divided, pair[:, 0] * c + pair[:, 1], c * c + pair[:, 0])
    found = np.bincount(split, np.where(several_votes, probability, 0.0), minlength=c * c + c)
    share = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300)
    table = found[: c * c].reshape(c, c) + found[c * c :, None] * share
    even = _PRIOR / (c * (c - 1) / 2.0)
    rate = (table + table.T + _STRENGTH * even) / (several_votes.sum() + _STRENGTH)
    rate[np.arange(c), np.arange(c)] = 0.0
    rate *= min(1.0, MOST / (rate.sum() / 2.0))
    rho = posterior[answers.voted].sum(axis=0) + 1.0
    return Readings(
        probability=np.where(votes.divided, probability, 0.0), posterior=posterior,
        one=without[:, :c], two=without[:, c:], counted=single * (1.0 - probability[answers.unit])[:, None],
        classes=rho / rho.sum(), pairs=rate,
    )

