"""The bootstrap over tasks: votes on one task share their luck, so whole tasks are drawn again.

Every metric here is a function of sums over votes. With W[r, g] = how often draw r takes task g, the sums of all draws
are one product W S, where S holds each task's sums; so a thousand draws cost a few matrix products. Draws depend on the
number of tasks and the seed alone: models that are scored on the same tasks meet the same draws, and differences of
their figures are paired.

Shape legend: M scored votes, G tasks, R draws, K sums, A annotators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from model.data.metrics import Interval

Floats = NDArray[np.float64]
DRAWS = 1000
_SEED = 20251128


def task_draws(tasks: int, draws: int = DRAWS) -> Floats:
    """(R + 1, G) how often each draw takes each task; row 0 takes every task once and stands for the data."""
    rng = np.random.default_rng(_SEED)
    drawn = rng.multinomial(tasks, np.full(tasks, 1.0 / tasks), size=draws) if tasks else np.zeros((draws, 0))
    return np.vstack([np.ones((1, tasks)), drawn])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampler:
    """Sums over votes in every draw."""

    draws: Floats  # (R + 1, G)
    task: NDArray[np.int64]  # (M,)

    def sums(self, columns: Floats) -> Floats:
        """(R + 1, K) of columns (M, K)."""
        table = np.stack([np.bincount(self.task, weights=c, minlength=self.draws.shape[1]) for c in columns.T], 1)
        return np.asarray(self.draws @ table)

    def grouped(self, column: Floats, group: NDArray[np.integer], groups: int) -> Floats:
        """(R + 1, groups) sums of a column (M,) by group (M,), an annotator for example."""
        table = sparse.csr_array((column, (self.task, group)), shape=(self.draws.shape[1], groups))
        return np.asarray((table.T @ self.draws.T).T)


def interval(values: Floats, *, level: float = 0.95) -> Interval:
    """Of (R + 1,) figures: row 0 is the figure, the others its percentile interval. NaN draws (an annotator without a
    vote) are left out."""
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn):
        return Interval(float(values[0]), float("nan"), float("nan"))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values[0]), float(low), float(high))


def jackknife(
    figures: Callable[[NDArray[np.bool_]], Floats], task: NDArray[np.int64], *, groups: int = 20, level_t: float = 2.093
) -> list[Interval]:
    """Intervals of figures (K,) that are no functions of sums: `groups` times a twentieth of the tasks is left out.

    `figures` takes a mask (M,) of the votes that are kept. `level_t` is Student's quantile for groups - 1. A figure
    that is not there in every group has no interval.
    """
    whole = figures(np.ones(len(task), np.bool_))
    group = np.random.default_rng(_SEED).permutation(int(task.max(initial=-1)) + 1) % groups
    left = np.stack([figures(group[task] != g) for g in range(groups)])  # (groups, K)
    reach = level_t * np.sqrt((groups - 1) / groups * np.square(left - left.mean(0)).sum(0))
    return [Interval(float(w), float(w - r), float(w + r)) for w, r in zip(whole, reach, strict=True)]
