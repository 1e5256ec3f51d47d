"""Spending a budget on scored gaps, best gain for its cost first.

One more vote of a unit is worth `again` times the one before it. Gaps are walked in order of gain over cost; those of a
unit that was chosen already wait in a heap with their lowered gain, so that the walk goes no further than it must.

Shape legend: U units, A annotators.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Chosen = tuple[list[int], list[int], list[float]]  # units, annotators, gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be spent, checked."""

    budget: float
    per_unit: int
    per_annotator: float  # votes; inf for no limit
    costs: Floats  # (A,)


@dataclass(slots=True)
class Purse:
    """What has been spent."""

    limits: Limits
    left: float
    cheapest: float
    per_unit: dict[int, int] = field(default_factory=dict)
    per_annotator: dict[int, int] = field(default_factory=dict)
    chosen: Chosen = field(default_factory=lambda: ([], [], []))

    @classmethod
    def full(cls, limits: Limits) -> Purse:
        return cls(limits, limits.budget, float(limits.costs.min(initial=np.inf)))

    @property
    def empty(self) -> bool:
        return self.left < self.cheapest - 1e-9

    def allows(self, unit: int, annotator: int) -> bool:
        return (
            self.limits.costs[annotator] <= self.left + 1e-9
            and self.per_unit.get(unit, 0) < self.limits.per_unit
            and self.per_annotator.get(annotator, 0) < self.limits.per_annotator
        )

    def buy(self, unit: int, annotator: int, gain: float) -> None:
        self.left -= float(self.limits.costs[annotator])
        self.per_unit[unit] = self.per_unit.get(unit, 0) + 1
        self.per_annotator[annotator] = self.per_annotator.get(annotator, 0) + 1
        units, annotators, gains = self.chosen
        units.append(unit)
        annotators.append(annotator)
        gains.append(gain)


def best_pairs(scores: Floats, limits: Limits, again: float) -> Chosen:
    """The best gaps of (U, A) scores; -inf is never chosen."""
    purse, people = Purse.full(limits), scores.shape[1]
    rates = (scores / limits.costs).ravel()
    gaps = np.flatnonzero(np.isfinite(rates))
    order = gaps[np.argsort(-rates[gaps], kind="stable")]
    waiting: list[tuple[float, int, int]] = []  # (-rate, votes of the unit it was lowered for, gap)
    at = 0
    while not purse.empty and (at < len(order) or waiting):
        if waiting and (at == len(order) or -waiting[0][0] >= rates[order[at]]):
            low, seen, gap = heapq.heappop(waiting)
            rate = -low
        else:
            gap, seen = int(order[at]), 0
            rate, at = float(rates[gap]), at + 1
        unit, annotator = divmod(gap, people)
        if not purse.allows(unit, annotator):
            continue
        votes = purse.per_unit.get(unit, 0)
        if votes > seen:
            heapq.heappush(waiting, (-rate * again ** (votes - seen), votes, gap))
        else:
            purse.buy(unit, annotator, rate * float(limits.costs[annotator]))
    return purse.chosen


def best_units(scores: Floats, earned: Floats, reliability: Floats, limits: Limits, again: float) -> Chosen:
    """The best units of (U, A) scores; of its gaps that of the annotator who has `earned` (A,) least so far.

    Of several who have earned the same, the more reliable one (A,).
    """
    purse, earned = Purse.full(limits), earned.astype(np.float64)
    gains, open_gaps, asked = scores.max(axis=1, initial=-np.inf), np.isfinite(scores), np.zeros(scores.shape[1])
    free = limits.costs <= purse.left + 1e-9  # (A,) who may be asked
    queue = [(-gain, 0, unit) for unit, gain in enumerate(gains.tolist()) if gain > -np.inf]
    heapq.heapify(queue)
    while queue and not purse.empty:
        low, votes, unit = heapq.heappop(queue)
        able = np.flatnonzero(open_gaps[unit] & free)
        if not len(able):
            continue
        able = able[earned[able] == earned[able].min()]
        annotator = int(able[reliability[able].argmax()])
        purse.buy(unit, annotator, -low)
        open_gaps[unit, annotator] = False
        earned[annotator] += limits.costs[annotator]
        asked[annotator] += 1
        free = (limits.costs <= purse.left + 1e-9) & (asked < limits.per_annotator)
        if votes + 1 < limits.per_unit:
            heapq.heappush(queue, (low * again, votes + 1, unit))
    return purse.chosen
