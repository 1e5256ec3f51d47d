"""What a vote and the consensus have to do with each other: their joint distribution, and what can be read off it.

    J[k, l] = r_k c_l q_k ((1 - h) pi_a[k, l] + h p_l),     sum_l J[k, l] = q_k,     sum_k J[k, l] ~ p_l

q is the consensus of the unit, p what the annotator is predicted to say, pi_a their confusion matrix, h the ambiguity
of the unit. Scaling rows and columns in turn (raking) gives the joint with both margins that is nearest to pi_a; rows
come last, so that what is believed today is exactly the average of what may be believed after the vote.

Shape legend: G gaps, C classes; J is [gap, consensus, given].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from model.acquisition.base import Situation

Floats = NDArray[np.float64]
_FLOOR = 1e-6
_ROUNDS = 4


def joint(situation: Situation, unit: NDArray[np.intp], annotator: NDArray[np.intp]) -> Floats:
    """(G, C, C) of the named gaps."""
    q = _positive(situation.consensus[unit])
    p = _positive(situation.probabilities[unit, annotator].astype(np.float64))
    unexplained = situation.ambiguity[unit][:, None, None]
    table = (1.0 - unexplained) * situation.confusion[annotator] + unexplained * p[:, None, :] + _FLOOR
    table *= q[:, :, None]
    for _ in range(_ROUNDS):
        table *= (p / table.sum(axis=1))[:, None, :]
        table *= (q / table.sum(axis=2))[:, :, None]
    return np.asarray(table)


def _positive(rows: Floats) -> Floats:
    found = np.maximum(rows, _FLOOR)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def entropy(p: Floats) -> Floats:
    """Of rows (..., C), in nats."""
    return np.asarray(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=-1))
