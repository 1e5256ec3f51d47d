"""Habits: whose name for a class is regularly another one than the others'. Described with counts, never a fault.

    of    = tasks that the others call k (belief of at least a half), on which the annotator voted
    count = those that the annotator calls l instead;  usual = how often the other annotators do so

A habit is said if count / of >= `OFTEN` and a binomial test rejects "at most `usual`, or at most `ORDINARY`" at a level
shared by all people and pairs of classes, so that ordinary noise is no habit: in 95 % of crowds whose errors are below
`ORDINARY` nobody has one.

Shape legend: A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from model.crowd.answers import AnswerMatrix
from model.quality.grounds import Grounds, levels

Floats = NDArray[np.float64]
OFTEN, ORDINARY = 1.0 / 3.0, 0.2
ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """What others call `believed`, this annotator calls `given`: `count` times of `of`."""

    believed: int  # code of a class
    given: int
    count: int
    of: int
    usual: float  # share of the other annotators' votes on such tasks


def hard_table(answers: AnswerMatrix, belief: Floats, shared: NDArray[np.bool_]) -> Floats:
    """(A, C, C) [annotator, believed, given] votes on shared tasks of which the others say one thing."""
    _, people, n_classes = answers.shape
    believed = belief.argmax(axis=1) if len(belief) else np.empty(0, np.int64)
    rows = np.flatnonzero(shared & (belief.max(axis=1, initial=0.0) >= 0.5))
    key = (answers.annotator[rows].astype(np.int64) * n_classes + believed[rows]) * n_classes + answers.label[rows]
    return np.bincount(key, minlength=people * n_classes**2).reshape(people, n_classes, n_classes).astype(np.float64)


def habits(table: Floats, ground: Grounds, *, watched: bool) -> tuple[tuple[Habit, ...], ...]:
    """(A,) the habits of each annotator with enough grounds, most regular first; `table` from `hard_table`."""
    people, n_classes = table.shape[:2]
    found: list[list[Habit]] = [[] for _ in range(people)]
    level = levels(ground, ALPHA, max(n_classes * (n_classes - 1), 1), watched=watched)
    of = table.sum(axis=2)  # (A, C)
    often = (table >= OFTEN * of[:, :, None]) & (table >= 5) & ground.enough[:, None, None]
    often &= ~np.eye(n_classes, dtype=np.bool_)
    pooled, whole = table.sum(axis=0), of.sum(axis=0)
    for a, k, given in np.argwhere(often).tolist():
        count, mine = table[a, k, given], of[a, k]
        others = whole[k] - mine
        usual = float((pooled[k, given] - count) / others) if others > 0 else 0.0
        if usual < 1.0 and betainc(count, mine - count + 1.0, max(usual, ORDINARY)) <= level[a]:
            found[a].append(Habit(believed=k, given=given, count=int(count), of=int(mine), usual=usual))
    return tuple(tuple(sorted(each, key=lambda one: -one.count / one.of)) for each in found)
