"""Scores and probabilities of a space: the scale on which base models are stacked and calibrated.

A score is a log-probability (single choice; any constant may be added along the classes) or a log-odds (several
choices). Shape legend: the last axis is the C classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Space, ValueKind

Floats = NDArray[np.float64]
_FLOOR = 1e-4  # no base model may be surer than this


def to_scores(space: Space, p: NDArray[np.floating]) -> Floats:
    """Probabilities (..., C) to scores; probabilities are kept off 0 and 1."""
    p = np.clip(np.asarray(p, dtype=np.float64), _FLOOR, 1.0 - _FLOOR)
    if space.kind is ValueKind.CLASS:
        return np.asarray(np.log(p))
    return np.asarray(np.log(p) - np.log1p(-p))


def to_probabilities(space: Space, scores: NDArray[np.floating]) -> Floats:
    """Scores (..., C) to probabilities."""
    scores = np.asarray(scores, dtype=np.float64)
    if space.kind is ValueKind.CLASS:
        p = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return np.asarray(p / p.sum(-1, keepdims=True))
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -60.0, 60.0))))


def losses(space: Space, scores: Floats, y: NDArray[np.floating]) -> Floats:
    """Negative log-likelihood of each vote, (...), of scores and votes (..., C)."""
    if space.kind is ValueKind.CLASS:
        top = scores.max(-1, keepdims=True)
        return np.asarray(top[..., 0] + np.log(np.exp(scores - top).sum(-1)) - (scores * y).sum(-1))
    return np.asarray((np.logaddexp(0.0, scores) - scores * y).sum(-1))


def loss_and_slope(space: Space, scores: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Negative log-likelihood of each vote (N,) and its derivative by the scores (N, C)."""
    if space.kind is not ValueKind.CLASS:
        return losses(space, scores, y), to_probabilities(space, scores) - y
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)  # once for both: this is most of what fitting a base model costs
    total = e.sum(-1, keepdims=True)
    return (top + np.log(total))[..., 0] - (scores * y).sum(-1), e / total - y
