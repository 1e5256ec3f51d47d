"""Drift: does an annotator become worse, or different, over time? A CUSUM over each annotator's votes in order.

    S_t = sum_{i <= t} (r_i - mean r) / (sd r * sqrt(n)),  statistic max_t |S_t|

Without a change S is a Brownian bridge, so the statistic has Kolmogorov's distribution. r is what the vote is right by,
minus what this annotator would be expected to be right by on that unit, so harder units later on are no drift.

Shape legend: A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogorov

from model.crowd.answers import AnswerMatrix
from model.errors import ModelError

Floats = NDArray[np.float64]
_FEWEST = 20  # votes; the limit distribution is meaningless below


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drift:
    """One change point for each annotator, whether or not it means anything: read `p_value` first."""

    p_value: Floats  # (A,) of "no change"; 1 with too few votes
    change: NDArray[np.int64]  # (A,) number of votes before the change
    before: Floats  # (A,) mean rightness up to the change
    after: Floats  # (A,) and after it


def rightness(answers: AnswerMatrix, belief: Floats, confusion: Floats) -> tuple[Floats, Floats]:
    """(N,) belief in the vote's class, and (N,) what was expected of this annotator there.

    `belief` (N, C) is the posterior without the vote, `confusion` (A, C, C) [annotator, true, given].
    """
    right = belief[np.arange(len(answers)), answers.label]
    # Expected: sum_l p(l) belief[l], with p(l) = sum_k belief[k] pi_a[k, l]
    expected = np.einsum("nk,nkl,nl->n", belief, confusion[answers.annotator], belief)
    return right, expected


def drift(answers: AnswerMatrix, right: Floats, expected: Floats, order: Floats | None = None) -> Drift:
    """CUSUM for every annotator; `order` (N,) is the time of each vote (default: that of the answers)."""
    when = answers.time if order is None else order
    if when is None:
        raise ModelError("drift needs the time of each vote")
    n_annotators = len(answers.annotators)
    rows = np.lexsort((answers.unit, when, answers.annotator))
    who = answers.annotator[rows]
    n = np.bincount(who, minlength=n_annotators)
    first = np.cumsum(n) - n
    some = np.maximum(n, 1)
    residual = (right - expected)[rows]
    mean = np.bincount(who, residual, minlength=n_annotators) / some
    centred = residual - mean[who]
    sd = np.sqrt(np.bincount(who, centred**2, minlength=n_annotators) / some)
    bridge = np.abs(np.cumsum(centred))  # each annotator's part ends at zero again, so one sum serves all
    peak = np.zeros(n_annotators)
    has = n > 0
    if has.any():
        peak[has] = np.maximum.reduceat(bridge, first[has])
    scale = sd * np.sqrt(some)
    statistic = np.where(scale > 1e-9, peak / np.where(scale > 1e-9, scale, 1.0), 0.0)
    p_value = np.where(n >= _FEWEST, kolmogorov(statistic), 1.0)
    at_peak = np.flatnonzero(bridge >= peak[who] - 1e-12)  # positions in rows; the first one of each annotator counts
    peaked, place = np.unique(who[at_peak], return_index=True)
    change = np.zeros(n_annotators, dtype=np.int64)
    change[peaked] = at_peak[place] - first[peaked] + 1
    early = np.arange(len(rows)) - first[who] < change[who]
    value = right[rows]
    before = _mean(who, value * early, change)
    after = _mean(who, value * ~early, n - change)
    return Drift(p_value=p_value, change=change, before=before, after=after)


def _mean(who: NDArray[np.int32], value: Floats, n: NDArray[np.int64]) -> Floats:
    total = np.bincount(who, value, minlength=len(n))
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
