"""Rung 1, the annotator prior: how often each annotator gives each label, whatever the content.

    p[a, c] = (n[a, c] + k g[c]) / (n[a] + k),   g = everybody's smoothed frequencies,   k = `prior_strength`

With several choices the frequencies are those of each class being chosen. The last row stands for an unknown annotator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Targets
from model.data.spaces import ValueKind


def fit_prior(targets: Targets, annotators: int, strength: float) -> NDArray[np.float64]:
    """Probabilities (A + 1, C); the last row is for an annotator without votes."""
    classes = targets.y.shape[1]
    weighted = targets.y * targets.weight[:, None]
    count = np.zeros((annotators + 1, classes))
    np.add.at(count, targets.annotator, weighted)
    total = np.bincount(targets.annotator, weights=targets.weight, minlength=annotators + 1)
    start = 1.0 / classes if targets.space.kind is ValueKind.CLASS else 0.5
    everybody = (weighted.sum(0, dtype=np.float64) + start) / (float(targets.weight.sum()) + 1.0)
    own = (count + strength * everybody) / (total + strength)[:, None]
    return np.vstack([own[:annotators], everybody])
