"""Who labels which task in a simulation: votes a task, a limit an annotator, uneven activity, missing votes.

Shape legend: U units, A annotators, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.errors import ModelError

Codes = NDArray[np.int32]
_CELLS = 1 << 22  # numbers that are drawn at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Bounds on votes and how they are spread."""

    feedback: int | None = None  # votes a task at most; None: everybody
    workload: int | None = None  # votes an annotator at most; None: no limit
    imbalance_votes: bool = False  # votes a task uniform between one and the bound, instead of the bound
    skew: float = 0.0  # annotators are taken in proportion to 1 / rank^skew; 0: all alike
    missing: float = 0.0  # share of the votes that get lost; a task may lose all of them

    def __post_init__(self) -> None:
        for name in ("feedback", "workload"):
            bound = getattr(self, name)
            if bound is not None and bound < 1:
                raise ModelError(f"the bound on votes ({name}) must be at least 1")
        if not 0.0 <= self.missing <= 1.0 or not 0.0 <= self.skew < np.inf:
            raise ModelError("the share of missing votes lies between 0 and 1, the skew is not negative")

    def draw(self, n_units: int, n_annotators: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Unit (N,) and annotator (N,) of every vote, in the order of units; an annotator has a task once.

        Raises ModelError when the limit of the annotators does not leave one vote for each task.
        """
        most = min(self.feedback or n_annotators, n_annotators)
        if self.workload is not None and self.workload * n_annotators < n_units:
            raise ModelError(
                f"{n_annotators} annotators with at most {self.workload} tasks each cannot label {n_units} tasks"
            )
        wanted = rng.integers(1, most + 1, size=n_units) if self.imbalance_votes else np.full(n_units, most)
        log_weight = -self.skew * np.log(np.arange(1, n_annotators + 1))
        if self.workload is None or self.workload >= n_units:
            unit, annotator = _free(wanted, log_weight, rng)
        else:
            unit, annotator = _limited(wanted, log_weight, self.workload, rng)
        if self.missing:
            kept = rng.random(len(unit)) >= self.missing
            unit, annotator = unit[kept], annotator[kept]
        return unit, annotator


def _free(
    wanted: NDArray[np.integer], log_weight: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """`wanted` (U,) different annotators for each unit, in a random order."""
    n, most = len(log_weight), int(wanted.max(initial=0))
    few = most * most <= n and not log_weight.any()
    chunk = max(_CELLS // (most if few else n), 1) if most else 1
    units, annotators = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for first in range(0, len(wanted), chunk):
        some = wanted[first:first + chunk]
        ranked = _few(len(some), n, most, rng) if few else _weighted(len(some), log_weight, most, rng)
        taken = np.arange(most) < some[:, None]
        units.append((np.nonzero(taken)[0] + first).astype(np.int32))
        annotators.append(ranked[taken].astype(np.int32))
    return np.concatenate(units), np.concatenate(annotators)


def _few(rows: int, n: int, most: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """(rows, most) drawn from all alike; a row with a repeat is drawn again."""
    drawn = rng.integers(n, size=(rows, most))
    while True:
        ordered = np.sort(drawn, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(again):
            return drawn
        drawn[again] = rng.integers(n, size=(len(again), most))


def _weighted(
    rows: int, log_weight: NDArray[np.float64], most: int, rng: np.random.Generator
) -> NDArray[np.integer]:
    """(rows, most) weighted draws without replacement: the largest of log weight + Gumbel noise."""
    n = len(log_weight)
    keys = -(log_weight + rng.gumbel(size=(rows, n)))
    best = np.argpartition(keys, most - 1, axis=1)[:, :most]
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def _limited(
    wanted: NDArray[np.integer], log_weight: NDArray[np.float64], workload: int, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """One unit after the other, from those who have time left; the last units always keep one vote each."""
    left = np.full(len(log_weight), workload)
    units, annotators = [], []
    for unit, votes in enumerate(wanted.tolist()):
        free = np.flatnonzero(left > 0)
        spare = int(left.sum()) - (len(wanted) - unit - 1)
        keys = log_weight[free] + rng.gumbel(size=len(free))
        chosen = free[np.argsort(-keys)[: max(min(votes, spare), 1)]]
        left[chosen] -= 1
        units.append(np.full(len(chosen), unit, dtype=np.int32))
        annotators.append(chosen.astype(np.int32))
    return np.concatenate(units), np.concatenate(annotators)
