"""Deletion curves: does the answer change faster when the tokens that are looked at go than when random ones go?

    curve(f) = probability of the class first answered, after the share f of a task's tokens was removed

once by falling weight, once in random order (the mean of several draws). The area between the two, averaged over f, is
the faithfulness: above 0 the weights point at what the answer rests on, at 0 they are no better than chance. What is
removed are token vectors of the encoder; these have read their neighbours, so some of a word's meaning stays behind.

Shape legend: N explained answers, T tokens, D token width, F shares, K variants of one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.errors import ModelError

Floats = NDArray[np.float64]
Score = Callable[[NDArray[np.bool_]], Floats]  # masks (K, T) of the tokens that stay -> probability (K,)

SHARES = (0.1, 0.2, 0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionCurve:
    """One explained answer."""

    start: float  # probability with all tokens
    by_weight: Floats  # (F,)
    by_chance: Floats  # (F,) mean over the draws

    @property
    def faithfulness(self) -> float:
        """Mean lead of the weights over chance; positive is better, at most 1."""
        return float((self.by_chance - self.by_weight).mean())


def deletion_curve(
    score: Score, weights: Floats, *, rng: np.random.Generator, shares: Sequence[float] = SHARES, draws: int = 8
) -> DeletionCurve:
    """The curve of one answer; `weights` (T,) of its tokens. All variants are scored in one call.

    Raises ModelError for a task of fewer than two tokens, of which none can be removed, or weights that are no numbers.
    """
    length = len(weights)
    if length < 2:
        raise ModelError("a deletion curve needs a task of at least two tokens")
    if not np.isfinite(weights).all():
        raise ModelError("a deletion curve needs finite weights")
    orders = np.stack([np.argsort(-weights, kind="stable"), *(rng.permutation(length) for _ in range(draws))])
    masks = deletions(orders, shares)
    found = score(np.concatenate([np.ones((1, length), dtype=bool), masks]))
    curves = found[1:].reshape(len(orders), len(shares))
    return DeletionCurve(start=float(found[0]), by_weight=curves[0], by_chance=curves[1:].mean(0))


def deletions(orders: NDArray[np.integer], shares: Sequence[float] = SHARES) -> NDArray[np.bool_]:
    """What stays (N * F, T) when each share is removed in each order (N, T); never nothing, always something goes."""
    length = orders.shape[1]
    rank = np.argsort(orders, axis=1)  # (N, T) when each one goes
    removed = np.array([min(length - 1, max(1, round(share * length))) for share in shares])
    return np.asarray(rank[:, None, :] >= removed[:, None]).reshape(-1, length)
