"""The design of an evaluation: which tasks are tested in which fold, which training votes are removed, what is shown.

    unseen          nothing of a test task is seen
    half-visible    a random half of each test task's votes is seen, the other half is predicted
    drop-40         unseen, with 40 % of the training votes removed

Everything is a pure function of (seed, fold, share) and of the problem's canonical order of votes, so that every model
in every process meets the same split. Folds are balanced and split by task: all units of a task fall on one side.

Shape legend: N votes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.errors import ModelError
from model.evaluate.problem import Problem

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a model gets to see."""

    visible: float = 0.0  # share of each test task's votes that is shown
    drop: float = 0.0  # share of the training votes that is removed

    def __post_init__(self) -> None:
        if not 0.0 <= self.visible < 1.0 or not 0.0 <= self.drop < 1.0:
            raise ModelError("the shares of visible and of removed votes lie in [0, 1)")

    @property
    def name(self) -> str:
        parts = []
        if self.visible:
            parts.append("half-visible" if self.visible == 0.5 else f"visible-{self.visible * 100:g}")
        if self.drop:
            parts.append(f"drop-{self.drop * 100:g}")
        return "+".join(parts) or "unseen"


def fold_of_votes(problem: Problem, folds: int, seed: int) -> NDArray[np.int64]:
    """(N,) the fold that tests each vote. Raises ModelError when there are fewer tasks than folds."""
    tasks = problem.task_names
    if folds < 2 or folds > len(tasks):
        raise ModelError(f"{len(tasks)} tasks cannot be split into {folds} folds; use 2 to {len(tasks)}")
    keys = [hashlib.sha256(f"{seed}:{task}".encode()).digest() for task in tasks]
    fold = np.empty(len(tasks), np.int64)
    fold[sorted(range(len(tasks)), key=keys.__getitem__)] = np.arange(len(tasks)) % folds
    return fold[problem.task]


def kept(problem: Problem, training: Mask, drop: float, *, seed: int, fold: int) -> Mask:
    """(N,) the training votes that remain when a share is removed; more removal never brings a vote back."""
    if not drop:
        return training
    rows = np.flatnonzero(training)
    draw = np.random.default_rng([seed, fold, 1]).random(len(rows))
    left = np.zeros_like(training)
    left[rows[np.argsort(draw, kind="stable")[round(len(rows) * drop) :]]] = True
    return left


def shown(problem: Problem, test: Mask, visible: float, *, seed: int, fold: int) -> Mask:
    """(N,) the test votes that are shown: about this share of each unit's, never all of them."""
    rows = np.flatnonzero(test)
    out = np.zeros_like(test)
    if not visible or not len(rows):
        return out
    rng = np.random.default_rng([seed, fold, 2])
    order = rows[np.lexsort((rng.random(len(rows)), problem.votes.unit[rows]))]
    _, start, count = np.unique(problem.votes.unit[order], return_index=True, return_counts=True)
    wanted = np.floor(count * visible + rng.random(len(count))).astype(np.int64)
    place = np.arange(len(order)) - np.repeat(start, count)
    out[order[place < np.repeat(np.minimum(wanted, count - 1), count)]] = True
    return out
