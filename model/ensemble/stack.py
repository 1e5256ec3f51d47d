"""How the base models of one control are pooled and calibrated: a weighted sum of scores, a temperature, a bias.

    s[b, a] = (sum_r w[r] s_r[b, a] + bias[a]) / temperature,      sum_r w[r] = 1

There is one stack for units without votes, and there are others for those that have some, with more base models
(`gaps`). All parameters are fitted together, by the log-loss of votes that no base model was trained on, under a prior:
weights near the starting weights of the base models at temperature 1, biases near none. The prior counts as so many
votes, so a tiny project keeps it and a large one forgets it. The problem is convex.

Shape legend: B units, A annotators (the last row of an (A + 1) axis is an unknown one), C classes, N votes, R base
models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from model.data.scores import loss_and_slope
from model.data.spaces import Space

Floats = NDArray[np.float64]
_MAX_TEMPERATURE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Pooling and calibration of one control."""

    weights: dict[str, float]  # base model -> w
    temperature: float
    bias: Floats  # (A + 1, C)

    def pool(self, scores_of: Mapping[str, Floats]) -> Floats:
        """Scores of base models, each (..., A + 1, C), to calibrated scores of the same shape."""
        return self._pool(scores_of, self.bias)

    def pool_votes(self, scores_of: Mapping[str, Floats], annotator: NDArray[np.integer]) -> Floats:
        """The same for chosen annotators (N,): scores (N, C) of single votes, or (B, N, C)."""
        return self._pool(scores_of, self.bias[annotator])

    def _pool(self, scores_of: Mapping[str, Floats], bias: Floats) -> Floats:
        pooled = sum(self.weights[name] * scores_of[name] for name in sorted(self.weights))  # the same bits once loaded
        return np.asarray((pooled + bias) / self.temperature)


def fit_stack(
    space: Space, scores_of: Mapping[str, Floats], annotator: NDArray[np.integer], y: NDArray[np.floating],
    weight: NDArray[np.floating], annotators: int, *, stack_strength: float, bias_strength: float,
    centre_of: Mapping[str, float],
) -> Stack:
    """Fit on out-of-sample scores (N, C) of each base model; with no votes the result is the prior, `centre_of`."""
    names = list(scores_of)
    centre = np.array([centre_of[name] for name in names])
    centre = centre / centre.sum()
    scores = np.stack([scores_of[name] for name in names])  # (R, N, C)
    classes = y.shape[1]

    def objective(flat: Floats) -> tuple[float, Floats]:
        w, bias = flat[: len(names)], flat[len(names) :].reshape(annotators, classes)
        loss, slope = loss_and_slope(space, np.tensordot(w, scores, 1) + bias[annotator], y)
        slope = slope * weight[:, None]
        by_model = np.tensordot(scores, slope, ([1, 2], [0, 1])) + stack_strength * (w - centre)
        by_bias = np.stack(
            [np.bincount(annotator, weights=slope[:, c], minlength=annotators) for c in range(classes)], 1
        )
        value = float(loss @ weight) + 0.5 * stack_strength * float(np.square(w - centre).sum())
        value += 0.5 * bias_strength * float(np.square(bias).sum())
        return value, np.concatenate([by_model, (by_bias + bias_strength * bias).ravel()])

    begin = np.concatenate([centre, np.zeros(annotators * classes)])
    bounds = [(0.0, None)] * len(names) + [(None, None)] * (annotators * classes)
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x
    bias = np.vstack([found[len(names) :].reshape(annotators, classes), np.zeros((1, classes))])
    return _stack(names, found[: len(names)], bias)


def refit_weights(
    stack: Stack, space: Space, scores_of: Mapping[str, Floats], annotator: NDArray[np.integer],
    y: NDArray[np.floating], weight: NDArray[np.floating], *, strength: float,
) -> Stack:
    """The weights alone fitted again on some votes, near those of `stack`, whose biases stay."""
    names = list(stack.weights)
    centre = np.array([stack.weights[name] for name in names]) / stack.temperature
    bias = stack.bias / stack.temperature
    scores = np.stack([scores_of[name] for name in names])  # (R, N, C)

    def objective(w: Floats) -> tuple[float, Floats]:
        loss, slope = loss_and_slope(space, np.tensordot(w, scores, 1) + bias[annotator], y)
        value = float(loss @ weight) + 0.5 * strength * float(np.square(w - centre).sum())
        return value, np.tensordot(scores, slope * weight[:, None], ([1, 2], [0, 1])) + strength * (w - centre)

    found = minimize(objective, centre, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(names)).x
    return _stack(names, found, bias)


def _stack(names: Sequence[str], weights: Floats, bias: Floats) -> Stack:
    """From weights that carry the temperature, (R,), and biases before it, (A + 1, C)."""
    total = max(float(weights.sum()), 1.0 / _MAX_TEMPERATURE)
    return Stack(
        weights={name: float(value) / total for name, value in zip(names, weights, strict=True)},
        temperature=1.0 / total, bias=bias / total,
    )
