"""Votes given far quicker than their annotator usually is on such units.

    r = log t - median_a,   minus the unit's mean of r shrunk to 0,   z = residual / spread_a

The spread is the annotator's median absolute deviation, pulled to everybody's where votes are few.

Shape legend: A annotators, U units, N votes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.quality.annotators import grouped_median

Floats = NDArray[np.float64]
_UNIT_STRENGTH = 2.0  # votes
_SPREAD_STRENGTH = 10.0  # votes
_FEWEST = 8  # timed votes of an annotator, below which nothing is usual for them


def pace(unit: NDArray[np.integer], annotator: NDArray[np.integer], seconds: Floats, shape: tuple[int, int]) -> Floats:
    """(N,) z of each vote's time, negative when quick; NaN without a positive time or with too few votes.

    `shape` is (U, A).
    """
    n_units, n_annotators = shape
    out = np.full(len(seconds), np.nan)
    timed = np.flatnonzero(np.isfinite(seconds) & (seconds > 0))
    if not len(timed):
        return out
    who, where, log_t = annotator[timed], unit[timed], np.log(seconds[timed])
    residual = log_t - grouped_median(who, log_t, n_annotators)[who]
    n = np.bincount(where, minlength=n_units)
    residual = residual - (np.bincount(where, residual, minlength=n_units) / (n + _UNIT_STRENGTH))[where]
    size = np.abs(residual)
    common = max(1.4826 * float(np.median(size)), 0.05)
    votes = np.bincount(who, minlength=n_annotators)
    own = 1.4826 * np.nan_to_num(grouped_median(who, size, n_annotators))
    spread = (votes * own + _SPREAD_STRENGTH * common) / (votes + _SPREAD_STRENGTH)
    out[timed] = np.where(votes[who] >= _FEWEST, residual / np.maximum(spread, 0.05)[who], np.nan)
    return out
