"""Majority vote and soft vote: count, and nothing else.

Ties of the count go to the class with the larger summed weight, then to the class that is more frequent over all
units, then to the first; with a `seed`, to a class drawn among the tied ones instead.

Shape legend: U units, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.sums import Floats, class_totals, normalise_rows, row_max


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityVote(Aggregator):
    """The class with the most votes; with `weighted` the class with the largest sum of weights."""

    name: ClassVar[str] = "majority"
    weighted: bool = True  # False: votes count one each and weights only settle ties
    seed: int | None = None

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        totals = class_totals(answers)
        if answers.weight is None:
            return vote_estimate(totals, seed=self.seed)
        counts = class_totals(answers, np.ones(len(answers)))
        if self.weighted:
            return vote_estimate(totals, counts, seed=self.seed)
        return vote_estimate(counts, totals, seed=self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftVote(Aggregator):
    """The distribution of the (weighted) votes; `smoothing` adds pseudo-votes in proportion to the overall shares."""

    name: ClassVar[str] = "soft"
    smoothing: float = 0.0

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        totals = class_totals(answers)
        share = totals.sum(axis=0) / totals.sum()
        posterior = normalise_rows(totals + self.smoothing * share, share)
        return Estimate(posterior=posterior, label=settle_ties(totals, prior=share))


def vote_estimate(totals: Floats, second: Floats | None = None, *, seed: int | None = None) -> Estimate:
    """Estimate of a (weighted) vote: shares as posterior, winners by `settle_ties`. Totals have shape (U, C)."""
    share = totals.sum(axis=0) / max(totals.sum(), 1e-300)
    posterior = normalise_rows(totals, normalise_rows(share, 1.0 / len(share)))
    return Estimate(posterior=posterior, label=settle_ties(totals, second, prior=share, seed=seed))


def settle_ties(
    totals: Floats, second: Floats | None = None, *, prior: Floats | None = None, seed: int | None = None
) -> Codes:
    """(U,) winners of (U, C) totals; ties go to `second` (U, C), then `prior` (C,), then the first; or are drawn."""
    label: Codes = totals.argmax(axis=1).astype(np.int32)
    top = row_max(totals)
    tied = totals >= (top - 1e-12 * np.abs(top))[:, None]  # (U, C); sums in another order differ in the last bit
    rows = np.flatnonzero(tied @ np.ones(tied.shape[1]) > 1.5)
    if not len(rows):
        return label
    among = tied[rows]
    if seed is not None:
        label[rows] = np.where(among, np.random.default_rng(seed).random(among.shape), -1.0).argmax(axis=1)
        return label
    for criterion in (second[rows] if second is not None else None, prior):
        if criterion is not None:
            value = np.where(among, criterion, -np.inf)
            among &= value >= value.max(axis=1, keepdims=True) - 1e-12
    label[rows] = among.argmax(axis=1)
    return label
