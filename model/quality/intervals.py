"""Bootstrap intervals for agreement figures: units are drawn again, since votes on one unit are not independent.

A figure only depends on how often each *pattern* of votes (so many for the first class, so many for the second ...) was
drawn, and units with one pattern are alike: drawing n units again is drawing the numbers of the patterns from a
multinomial. There are far fewer patterns than units, so a draw costs next to nothing.

Shape legend: U units, R patterns, C classes, B draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.quality.agreement import Level, unit_counts

Floats = NDArray[np.float64]
_BLOCK = 64  # draws that are in memory at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its percentile interval; NaN where it cannot be computed."""

    value: float
    low: float
    high: float


def alpha_interval(
    answers: AnswerMatrix, level: Level = "nominal", *, values: Floats | None = None, draws: int = 500,
    coverage: float = 0.95, seed: int = 0,
) -> Interval:
    """Krippendorff's alpha with a bootstrap interval over units; `values` as in `distances`."""
    counts = unit_counts(answers)
    votes = counts.sum(axis=1)
    counts, votes = counts[votes > 1], votes[votes > 1]
    if not len(counts):
        return Interval(value=float("nan"), low=float("nan"), high=float("nan"))
    patterns, times = _patterns(counts)
    drawn = _alphas(_draws(times, draws, seed), patterns, level, values)
    return _interval(float(_alphas(times[None], patterns, level, values)[0]), drawn, coverage)


def _alphas(taken: Floats, patterns: Floats, level: Level, values: Floats | None) -> Floats:
    """(B,) alpha of each draw (B, R) of the patterns (R, C), without a (C, C) table.

    With a squared distance of places x on a line, the disagreement of a unit with n votes c is
    2 (n sum c x^2 - (sum c x)^2) / (n - 1), and what is expected is the same of the sum of all units; the nominal one
    is n^2 - sum c^2 over n - 1. Ordinal places are the middle ranks, which are others in every draw.
    """
    n = patterns.sum(axis=1)  # (R,)
    totals = taken @ patterns  # (B, C)
    whole = totals.sum(axis=1)
    if level == "nominal":
        observed = taken @ ((n**2 - (patterns**2).sum(axis=1)) / (n - 1.0))
        expected = (whole**2 - (totals**2).sum(axis=1)) / (whole - 1.0)
    else:
        x = np.cumsum(totals, axis=1) - totals / 2.0 if level == "ordinal" else np.broadcast_to(
            np.arange(patterns.shape[1], dtype=np.float64) if values is None else values, totals.shape)
        x = x - ((totals * x).sum(axis=1) / np.maximum(whole, 1.0))[:, None]  # the squares stay small
        expected = 2.0 * (whole * (totals * x**2).sum(axis=1) - (totals * x).sum(axis=1) ** 2) / (whole - 1.0)
        observed = np.empty(len(taken))
        for first in range(0, len(taken), _BLOCK):
            part = slice(first, first + _BLOCK)
            mean, square = patterns @ x[part].T, patterns @ (x[part] ** 2).T  # (R, draws of the block)
            apart = 2.0 * np.maximum(n[:, None] * square - mean**2, 0.0) / (n - 1.0)[:, None]
            observed[part] = np.einsum("br,rb->b", taken[part], apart)
    alike = expected <= 1e-9 * np.maximum(whole, 1.0)
    return np.where(alike, 1.0, 1.0 - observed / np.where(alike, 1.0, expected))


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
    patterns, times = _patterns(np.stack([part, whole], axis=1))
    totals = _draws(times, draws, seed) @ patterns  # (B, 2)
    drawn = totals[:, 0] / np.maximum(totals[:, 1], 1e-300)
    return _interval(float(part.sum() / whole.sum()), drawn, coverage)


def _patterns(rows: Floats) -> tuple[Floats, Floats]:
    """Distinct rows (R, ...) of (U, ...), and how often each is there (R,)."""
    code = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:  # a few columns of few distinct numbers: quicker than to compare whole rows
        values, place = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + place, return_inverse=True)[1]
    _, first, times = np.unique(code, return_index=True, return_counts=True)
    return rows[first], times.astype(np.float64)


def _draws(times: Floats, draws: int, seed: int) -> Floats:
    """(B, R) how often each pattern is drawn when as many units as there are are drawn again."""
    n = int(times.sum())
    return np.random.default_rng(seed).multinomial(n, times / n, size=draws).astype(np.float64)


def _interval(value: float, drawn: Floats, coverage: float) -> Interval:
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return Interval(value=value, low=float("nan"), high=float("nan"))
    low, high = np.quantile(drawn, [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
    return Interval(value=value, low=float(low), high=float(high))


def wilson_interval(right: float, votes: float, z: float = 1.959964) -> Interval:
    """A share with its Wilson interval, `z` standard errors wide (by default 95 %); NaN without votes."""
    if votes <= 0:
        return Interval(value=float("nan"), low=float("nan"), high=float("nan"))
    share = right / votes
    centre = (share + z**2 / (2 * votes)) / (1 + z**2 / votes)
    half = z * np.sqrt(share * (1 - share) / votes + z**2 / (4 * votes**2)) / (1 + z**2 / votes)
    return Interval(value=share, low=float(max(centre - half, 0.0)), high=float(min(centre + half, 1.0)))
