"""Votes that are hidden from what predicts the majority, so that what it says can be held against the votes.

The truth of a unit is the majority of all its votes, where it has `DENSE` or more; some of them are hidden at random,
and the consensus is asked for the majority of those who voted there, from the votes that are left. So a project with
some densely labelled units knows how far its confidence can be believed, without anybody outside who knows the truth.

Shape legend: N votes, D dense units, P annotators, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Targets
from model.data.spaces import Space, ValueKind
from model.data.votes import Votes
from model.ensemble.calibration import Prior, fit_calibration, undecided

Floats = NDArray[np.float64]
DENSE = 4  # votes from which on a majority counts as known
MOST_DENSE = 400  # units that are checked
_SEED = 20251129


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseUnits:
    """Units with many votes, and which of them are left."""

    unit: NDArray[np.int64]  # (D,) index of the unit in the targets
    y: NDArray[np.float32]  # (D, P, C)
    has: NDArray[np.bool_]  # (D, P) all votes
    left: NDArray[np.bool_]  # (D, P) those that are not hidden
    weight: NDArray[np.float32]  # (D, P)

    @property
    def votes(self) -> NDArray[np.int64]:
        """(D,) how many are left."""
        return np.asarray(self.left.sum(1), np.int64)

    def undecided(self, space: Space) -> NDArray[np.bool_]:
        """(D, C) whether the hidden votes could change the majority of those left."""
        return undecided(space, self.y, self.left, self.has)

    def truth(self, space: Space) -> Floats:
        """(D, C) the majority of all votes; level classes share it, half of the panel for a class counts half."""
        counts = (self.y * self.has[..., None]).sum(1, dtype=np.float64)
        if space.kind is ValueKind.CLASS:
            top = counts == counts.max(1, keepdims=True)
            return np.asarray(top / top.sum(1, keepdims=True))
        half = self.has.sum(1)[:, None] / 2.0
        return np.where(counts > half, 1.0, np.where(counts == half, 0.5, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenCheck:
    """What was said of dense units with votes hidden, and what they are."""

    space: Space
    p: Floats  # (D, C) as it is shown, by a map that was fitted on other units
    truth: Floats  # (D, C)
    votes: NDArray[np.int64]  # (D,) that were left

    @property
    def stated(self) -> Floats:
        """(D,) how sure the label was."""
        if self.space.kind is ValueKind.CLASS:
            return np.asarray(self.p.max(1, initial=0.0))
        return np.asarray(np.maximum(self.p, 1.0 - self.p).prod(1))

    @property
    def right(self) -> Floats:
        """(D,) whether it is the majority; a level one counts in part."""
        if self.space.kind is ValueKind.CLASS:
            return np.asarray(self.truth[np.arange(len(self.p)), self.p.argmax(1)])
        return np.asarray(np.where(self.p >= 0.5, self.truth, 1.0 - self.truth).prod(1))


def some_left(unit: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """(N,) of the votes on each unit with two or more, 1 to all but one at random; all elsewhere."""
    rng = np.random.default_rng([_SEED, seed])
    count = np.bincount(unit, minlength=int(unit.max(initial=-1)) + 1)
    keep = 1 + np.floor(rng.random(len(count)) * np.maximum(count - 1, 1)).astype(np.int64)
    order = np.lexsort((rng.random(len(unit)), unit))
    rank = np.empty(len(unit), np.int64)
    rank[order] = np.arange(len(unit)) - (np.cumsum(count) - count)[unit[order]]
    return np.asarray((rank < keep[unit]) | (count[unit] < 2))


def dense_units(targets: Targets, people: int, left: NDArray[np.bool_], *, most: int = MOST_DENSE) -> DenseUnits:
    """Units with `DENSE` votes of known annotators or more, `most` of them, with the votes of a mask (N,) left."""
    known = targets.annotator < people
    targets, left = targets.select(known), left[known]
    count = np.bincount(targets.unit, minlength=int(targets.unit.max(initial=-1)) + 1)
    units = np.flatnonzero(count >= DENSE)
    units = np.sort(np.random.default_rng(_SEED).permutation(units)[:most])
    place = np.full(len(count), -1)
    place[units] = np.arange(len(units))
    here = place[targets.unit] >= 0
    at = place[targets.unit[here]], targets.annotator[here]
    shape = len(units), people
    y, weight = np.zeros((*shape, targets.y.shape[1]), np.float32), np.ones(shape, np.float32)
    has, shown = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    y[at], has[at], weight[at], shown[at] = targets.y[here], True, targets.weight[here], left[here]
    some = shown.any(1)
    found = DenseUnits(unit=units, y=y, has=has, left=shown, weight=weight)
    return found if some.all() else replace(
        found, unit=units[some], y=y[some], has=has[some], left=shown[some], weight=weight[some])


def with_hidden(votes: Votes, control: str, seed: int = 0) -> tuple[Votes, Votes, list[str]]:
    """Of units with `DENSE` current votes with a control or more: all these votes, those that are left when some are
    hidden, and the units, `MOST_DENSE` of them."""
    mine = votes.of_control(control)
    units = np.flatnonzero(np.bincount(mine.unit, minlength=len(mine.units)) >= DENSE)
    units = np.sort(np.random.default_rng(_SEED).permutation(units)[:MOST_DENSE])
    mine = mine.select(np.isin(mine.unit, units))
    left = some_left(mine.unit.astype(np.int64), seed) if len(mine) else np.zeros(0, np.bool_)
    return mine, mine.select(left), [mine.units[unit] for unit in units.tolist()]


def cross_checked(
    space: Space, p: Floats, dense: DenseUnits, fold: NDArray[np.int64], prior: Prior
) -> HiddenCheck:
    """Probabilities (D, C) as they come, each calibrated by a map that was fitted without its fold (D,)."""
    shown, votes, truth, open_ = np.empty_like(p), dense.votes, dense.truth(space), dense.undecided(space)
    for each in np.unique(fold):
        here, other = fold == each, (fold != each) & open_.any(1)
        fitted = fit_calibration(space, p[other], votes[other], truth[other], np.ones(int(other.sum())), prior)
        shown[here] = fitted.apply(space, p[here], votes[here], open_[here])
    return HiddenCheck(space=space, p=shown, truth=truth, votes=votes)
