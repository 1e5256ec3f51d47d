"""Reliability: of labels that were stated to be right with some probability, how many were.

    gap = sum_b n_b |stated_b - right_b| / n,      over ten equal bins b of [0, 1]

A bin has a 95 % interval (Wilson) of the share that is right: what counts in a comparison is how far the stated
probability lies beyond it.

Shape legend: N labels, B bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.quality.intervals import Interval, wilson_interval

BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Labels that were about as sure as each other."""

    low: float
    high: float
    labels: int
    stated: float  # mean probability
    right: Interval  # share that is right

    @property
    def beyond(self) -> float:
        """How far the stated probability lies outside the interval."""
        return max(self.stated - self.right.high, self.right.low - self.stated, 0.0)


def reliability(stated: NDArray[np.floating], right: NDArray[np.floating]) -> list[Bin]:
    """The bins that hold a label, from stated probabilities (N,) and whether each was right (N,), 1, 0 or a part."""
    place = np.minimum((np.asarray(stated) * BINS + 1e-9).astype(np.int64), BINS - 1)
    found = []
    for at in np.unique(place).tolist():
        here = place == at
        labels = int(here.sum())
        found.append(Bin(
            low=at / BINS, high=(at + 1) / BINS, labels=labels, stated=float(stated[here].mean()),
            right=wilson_interval(float(right[here].sum()), float(labels)),
        ))
    return found


def weighted_gap(bins: Sequence[Bin]) -> float:
    """The mean distance between stated and true, each bin by its labels; NaN without any."""
    labels = sum(each.labels for each in bins)
    off = sum(each.labels * abs(each.stated - each.right.value) for each in bins)
    return off / labels if labels else float("nan")
