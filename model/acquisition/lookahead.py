"""What looking some votes ahead says of the next one: by how much the consensus becomes likelier to be right.

    rise_m = sum over outcomes (l_1 .. l_m) of max_k q_k prod_i L[k, l_i]  -  max_k q_k,       L[k, l] = J[k, l] / q_k
    gain   = max_m rise_m / m  +  hint * (sum_kl J[k, l]^2 / p_l - sum_k q_k^2)

With m = 1 this is the knowledge gradient, with more its repair where one vote cannot overturn the label (Frazier and
Powell 2010, KG(*)): such a vote has no value by itself, though it may be the first of three that do. The m votes are
taken to be alike and independent given the consensus. The hint, the expected fall of the Brier score, is so small that
it orders only what the first term leaves equal. With many classes the likeliest five are looked at, all other answers
being one.

Shape legend: G gaps, C classes, K of them looked at; J is [gap, consensus, given].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_CLASSES = 5
_HINT = 1e-4


def expected_rise(table: Floats, ahead: Sequence[int]) -> Floats:
    """(G,) gains from joints (G, C, C)."""
    q = table.sum(axis=2)
    hint = (np.square(table).sum(axis=1) / table.sum(axis=1)).sum(axis=1) - np.square(q).sum(axis=1)
    likelihood, q = _likeliest(table / q[:, :, None], q)
    today, gain = q.max(axis=1), np.zeros(len(q))
    for votes in ahead:
        after = np.zeros(len(q))
        for outcome in combinations_with_replacement(range(likelihood.shape[2]), votes):
            orders = factorial(votes) // prod(factorial(times) for times in Counter(outcome).values())
            weight = q.copy()  # (G, K)
            for answer in outcome:
                weight *= likelihood[:, :, answer]
            after += orders * weight.max(axis=1)
        gain = np.maximum(gain, (after - today) / votes)
    return np.asarray(gain + _HINT * np.maximum(hint, 0.0))


def _likeliest(likelihood: Floats, q: Floats) -> tuple[Floats, Floats]:
    """(G, K, K + 1) and (G, K) of the likeliest classes; the last answer is any of the others."""
    if q.shape[1] <= _CLASSES + 1:
        return likelihood, q
    top = np.argsort(-q, axis=1, kind="stable")[:, :_CLASSES]  # (G, K)
    rows = np.take_along_axis(likelihood, top[:, :, None], axis=1)  # (G, K, C)
    picked = np.take_along_axis(rows, top[:, None, :], axis=2)  # (G, K, K)
    rest = np.maximum(rows.sum(axis=2) - picked.sum(axis=2), 0.0)
    return np.concatenate([picked, rest[:, :, None]], axis=2), np.take_along_axis(q, top, axis=1)
