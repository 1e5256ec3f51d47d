"""Rung 2, pooled content plus annotator bias: a regularised logistic model on the mean token of a unit.

    score[b, a, c] = f[b] . W[c] + bias[c] + own[a, c],      f = standardised mean token

fitted by L-BFGS on the weighted log-likelihood with Gaussian priors on W and on the own biases; single choice by
softmax, several choices by one Bernoulli a class. It knows what annotators have in common and how lenient each is,
nothing more: the bar that a model of individual behaviour has to pass.

Shape legend: U units, D dim, A annotators, C classes, N votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from model.dataset import Targets, Tokens
from model.ensemble.scores import loss_and_slope

Floats = NDArray[np.float64]
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)  # precisions of the prior on W to pick from
_BIAS_PRECISION = 1.0


def mean_tokens(tokens: Sequence[Tokens], dim: int) -> NDArray[np.float32]:
    """The mean token of each unit, (U, D)."""
    return np.array([array.mean(0, dtype=np.float32) for array in tokens], dtype=np.float32).reshape(-1, dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The fitted rung of one control."""

    centre: Floats  # (D,)
    scale: Floats  # (D,)
    weight: Floats  # (D, C)
    bias: Floats  # (A + 1, C), the last row for an unknown annotator
    penalty: float = 0.0  # that it was fitted with; 0 in a checkpoint from before it was kept

    def content(self, features: NDArray[np.floating]) -> Floats:
        """The part that all annotators share, (B, C), of mean tokens (B, D)."""
        return np.asarray((features - self.centre) * self.scale @ self.weight)

    def votes(self, features: NDArray[np.floating], targets: Targets) -> Floats:
        """Scores (N, C) of single votes, of mean tokens (U, D) that `targets.unit` points into."""
        used, row = np.unique(targets.unit, return_inverse=True)
        return np.asarray(self.content(features[used])[row] + self.bias[targets.annotator])

    def scores(self, features: NDArray[np.floating]) -> Floats:
        """(B, A + 1, C)."""
        return self.content(features)[:, None] + self.bias


def _generic_too(own: Floats) -> Floats:
    """Own biases (A, C) with a row for votes that nobody's bias explains, (A + 1, C)."""
    return np.vstack([own, np.zeros((1, own.shape[1]))])


def fit_pooled(
    features: NDArray[np.floating], targets: Targets, annotators: int, penalty: float, start: Pooled | None = None
) -> Pooled:
    """Fit on mean tokens (U, D) of all units that `targets.unit` points into; `start` only makes it faster."""
    used, row = np.unique(targets.unit, return_inverse=True)
    f = features[used].astype(np.float64)
    centre, spread = (f.mean(0), f.std(0)) if len(f) else (np.zeros(f.shape[1]), np.zeros(f.shape[1]))
    scale = np.where(spread > 1e-4, 1.0 / np.maximum(spread, 1e-4), 0.0)  # a constant feature says nothing
    f = (f - centre) * scale
    d, c = f.shape[1], targets.y.shape[1]
    split = (d * c, d * c + c)

    def objective(flat: Floats) -> tuple[float, Floats]:
        weight, bias, own = flat[: split[0]].reshape(d, c), flat[split[0] : split[1]], flat[split[1] :].reshape(-1, c)
        scores = (f @ weight)[row] + bias + _generic_too(own)[targets.annotator]
        loss, slope = loss_and_slope(targets.space, scores, targets.y)
        slope = slope * targets.weight[:, None]  # (N, C)
        by_unit = np.stack([np.bincount(row, weights=slope[:, k], minlength=len(used)) for k in range(c)], 1)
        by_annotator = np.stack(
            [np.bincount(targets.annotator, weights=slope[:, k], minlength=annotators) for k in range(c)], 1
        )[:annotators]
        value = float(loss @ targets.weight) + 0.5 * penalty * np.square(weight).sum()
        value += 0.5 * _BIAS_PRECISION * np.square(own).sum()
        gradient = (f.T @ by_unit + penalty * weight, slope.sum(0), by_annotator + _BIAS_PRECISION * own)
        return value, np.concatenate([part.ravel() for part in gradient])

    begin = np.zeros(split[1] + annotators * c)
    if start is not None:
        begin[: split[0]] = start.weight.ravel()
        begin[split[0] : split[1]] = start.bias[-1]
        begin[split[1] :] = (start.bias[:-1] - start.bias[-1]).ravel()
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-7})
    bias, own = found.x[split[0] : split[1]], found.x[split[1] :].reshape(annotators, c)
    return Pooled(
        centre=centre, scale=scale, weight=found.x[: split[0]].reshape(d, c), bias=np.vstack([bias + own, bias]),
        penalty=penalty,
    )
