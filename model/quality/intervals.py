"""Bootstrap intervals for agreement figures: units are drawn again, since votes on one unit are not independent.

A draw is a vector of how often each unit was taken; alpha, percent agreement and the rest only need the weighted
coincidences, so a draw costs one product with the units' small tables.

Shape legend: U units, C classes, B draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.quality.agreement import Level, alpha_of, unit_counts

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its percentile interval; NaN where it cannot be computed."""

    value: float
    low: float
    high: float


def alpha_interval(
    answers: AnswerMatrix, level: Level = "nominal", *, draws: int = 500, coverage: float = 0.95, seed: int = 0
) -> Interval:
    """Krippendorff's alpha with a bootstrap interval over units."""
    counts = unit_counts(answers)
    votes = counts.sum(axis=1)
    counts, votes = counts[votes > 1], votes[votes > 1]
    if not len(counts):
        return Interval(value=float("nan"), low=float("nan"), high=float("nan"))
    scaled = counts / (votes - 1.0)[:, None]

    def alpha(times: Floats) -> float:
        taken = scaled * times[:, None]
        table = taken.T @ counts
        table[np.diag_indices_from(table)] -= taken.sum(axis=0)
        return alpha_of(table, level)

    rng = np.random.default_rng(seed)
    drawn = [alpha(_draw(rng, len(counts))) for _ in range(draws)]
    return _interval(alpha(np.ones(len(counts))), np.array(drawn), coverage)


def percent_interval(answers: AnswerMatrix, *, draws: int = 500, coverage: float = 0.95, seed: int = 0) -> Interval:
    """Percent agreement with a bootstrap interval over units."""
    counts = unit_counts(answers)
    votes = counts.sum(axis=1)
    return ratio_interval(
        (counts * (counts - 1.0)).sum(axis=1), votes * (votes - 1.0), draws=draws, coverage=coverage, seed=seed
    )


def ratio_interval(
    part: Floats, whole: Floats, *, draws: int = 500, coverage: float = 0.95, seed: int = 0
) -> Interval:
    """sum(part) / sum(whole) over units (U,), with an interval; accuracies and agreements are such ratios."""
    keep = whole > 0
    part, whole = part[keep], whole[keep]
    if not len(part):
        return Interval(value=float("nan"), low=float("nan"), high=float("nan"))
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        times = _draw(rng, len(part))
        drawn.append(float(times @ part) / max(float(times @ whole), 1e-300))
    return _interval(float(part.sum() / whole.sum()), np.array(drawn), coverage)


def _draw(rng: np.random.Generator, n: int) -> Floats:
    return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)


def _interval(value: float, drawn: Floats, coverage: float) -> Interval:
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return Interval(value=value, low=float("nan"), high=float("nan"))
    low, high = np.quantile(drawn, [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
    return Interval(value=value, low=float(low), high=float(high))


def wilson_interval(right: float, votes: float) -> Interval:
    """A share with its 95 % Wilson interval; NaN without votes."""
    if votes <= 0:
        return Interval(value=float("nan"), low=float("nan"), high=float("nan"))
    z, share = 1.959964, right / votes
    centre = (share + z**2 / (2 * votes)) / (1 + z**2 / votes)
    half = z * np.sqrt(share * (1 - share) / votes + z**2 / (4 * votes**2)) / (1 + z**2 / votes)
    return Interval(value=share, low=float(max(centre - half, 0.0)), high=float(min(centre + half, 1.0)))
