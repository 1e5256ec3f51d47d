"""Metrics of probabilistic predictions on votes, per annotator and averaged, and paired intervals clustered by task.

Shape legend: N votes, C classes. `p` are predicted probabilities (N, C), `y` the encoded votes (N, C): one-hot for a
single choice, multi-hot for several. The log-loss of a vote is its negative log-likelihood in nats; with several
choices it is the sum over the classes, each a Bernoulli.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from model.data.numbers import NumberBins
from model.data.spaces import SingleChoice, Space, ValueKind

Floats = NDArray[np.float64]
_FLOOR = 1e-6  # a probability never counts as less


def log_losses(space: Space, p: NDArray[np.floating], y: NDArray[np.floating]) -> Floats:
    """Negative log-likelihood of each vote, (N,)."""
    p = np.clip(np.asarray(p, dtype=np.float64), _FLOOR, 1.0)
    if space.kind is ValueKind.CLASS:
        return np.asarray(-(np.log(p) * y).sum(-1))
    q = np.clip(1.0 - p, _FLOOR, 1.0)
    return np.asarray(-(np.log(p) * y + np.log(q) * (1.0 - y)).sum(-1))


def correct(space: Space, p: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether the decoded prediction equals the vote (with several choices: the whole set), (N,)."""
    if space.kind is ValueKind.CLASS:
        return np.asarray(p.argmax(-1) == y.argmax(-1)) if p.shape[-1] else np.ones(len(p), dtype=np.bool_)
    return np.asarray(((p >= 0.5) == (y >= 0.5)).all(-1))


def ordered_errors(space: SingleChoice, p: NDArray[np.floating], y: NDArray[np.floating]) -> Floats:
    """Distance of the predicted median from the vote, (N,): in classes; or in numbers, votes as their bins' middles."""
    if isinstance(space, NumberBins):
        return np.asarray(np.abs(space.quantiles(p, 0.5) - space.middle[y.argmax(-1)]))
    upto = np.cumsum(p, axis=-1)
    median = np.minimum((upto < 0.5 * upto[:, -1:]).sum(-1), p.shape[-1] - 1)
    return np.asarray(np.abs(median - y.argmax(-1)).astype(np.float64))


def brier_scores(p: NDArray[np.floating], y: NDArray[np.floating]) -> Floats:
    """Squared distance between prediction and vote, summed over classes, (N,)."""
    return np.asarray(np.square(np.asarray(p, dtype=np.float64) - y).sum(-1))


def calibration_error(space: Space, p: NDArray[np.floating], y: NDArray[np.floating], *, bins: int = 10) -> float:
    """Expected calibration error over equally wide confidence bins; with several choices over all class decisions."""
    if space.kind is ValueKind.CLASS:
        confidence, hit = p.max(-1, initial=0.0), correct(space, p, y).astype(np.float64)
    else:
        confidence, hit = np.maximum(p, 1.0 - p).ravel(), ((p >= 0.5) == (y >= 0.5)).astype(np.float64).ravel()
    if not len(confidence):
        return 0.0
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(which, weights=hit - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(confidence))


def summarise(
    space: Space, p: NDArray[np.floating], y: NDArray[np.floating], annotator: NDArray[np.integer]
) -> dict[str, Any]:
    """Accuracy, log-loss, Brier score and calibration error over votes, for ordered classes the mean absolute error
    too; of all but the calibration error the annotators' mean as well.

    JSON-able; with no votes only `votes: 0`.
    """
    if not len(y):
        return {"votes": 0}
    columns = {
        "accuracy": correct(space, p, y).astype(np.float64),
        "log_loss": log_losses(space, p, y),
        "brier": brier_scores(p, y),
    }
    if isinstance(space, SingleChoice) and space.ordered:
        columns["mae"] = ordered_errors(space, p, y)
    seen = np.flatnonzero(np.bincount(annotator))
    count = np.bincount(annotator)[seen]
    figures: dict[str, Any] = {"votes": len(y), "annotators": len(seen), "ece": calibration_error(space, p, y)}
    for name, column in columns.items():
        figures[name] = float(column.mean())
        figures[f"{name}_annotator_mean"] = float((np.bincount(annotator, weights=column)[seen] / count).mean())
    return figures


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its two-sided interval."""

    mean: float
    low: float
    high: float

    def exceeds(self, margin: float) -> bool:
        """Whether it is shown to be above 0, by a mean of more than counts as no difference."""
        return self.low > 0.0 and self.mean > margin


def paired_interval(difference: Floats, cluster: NDArray[np.integer], *, level: float = 0.95) -> Interval:
    """Interval of the mean difference, clustered, since votes on one task share their luck.

    `difference` (N,) is loss of one prediction minus loss of the other on the same votes; `cluster` (N,) says which
    votes belong together. The mean is a ratio, sum of totals by sum of sizes; with G clusters of totals t and sizes n
    its standard error is sqrt(G / (G - 1) * sum (t - mean * n)^2) / sum n, and the interval is Student's with G - 1
    degrees of freedom: a percentile bootstrap covers too little where clusters are few. With no votes, everything is
    0; with votes in a single cluster the interval is unbounded.
    """
    if not len(difference):
        return Interval(0.0, 0.0, 0.0)
    mean = float(difference.mean())
    _, which = np.unique(cluster, return_inverse=True)
    total, size = np.bincount(which, weights=difference), np.bincount(which).astype(np.float64)
    groups = len(total)
    if groups == 1:
        return Interval(mean, -np.inf, np.inf)
    error = float(np.sqrt(groups / (groups - 1) * np.square(total - mean * size).sum()) / size.sum())
    reach = float(stdtrit(groups - 1, (1 + level) / 2)) * error
    return Interval(mean, mean - reach, mean + reach)
