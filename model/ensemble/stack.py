"""How the rungs of one control are pooled and calibrated: a weighted sum of scores, a temperature, a bias.

    s[b, a] = (sum_r w[r] s_r[b, a] + bias[a]) / temperature

Shape legend: B units, A annotators (the last row of an (A + 1) axis is an unknown one), C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Pooling and calibration of one control."""

    weights: dict[str, float]  # rung -> w
    temperature: float
    bias: Floats  # (A + 1, C)

    def pool(self, rungs: Mapping[str, Floats]) -> Floats:
        """Scores of the rungs, each (..., A + 1, C), to calibrated scores of the same shape."""
        pooled = sum(weight * rungs[name] for name, weight in self.weights.items())
        return np.asarray((pooled + self.bias) / self.temperature)
