"""A map of annotators: the learned queries, projected to the plane that keeps most of their differences.

Each member of a committee has a query space of its own; distances between annotators are averaged over members by
laying the members' coordinates side by side, which is exact for squared distances. The sign of each axis is fixed (the
largest entry is positive), so that the map does not flip from one version to the next by chance alone.

Shape legend: M members, A annotators, d width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def query_map(queries: NDArray[np.floating]) -> tuple[Floats, float]:
    """(A, 2) positions of queries (M, A, d), and the share of their variance that the plane shows.

    With fewer than two annotators everything is 0.
    """
    members, annotators, _ = queries.shape
    if annotators < 2 or members == 0:
        return np.zeros((annotators, 2)), 0.0
    x = np.concatenate(list(np.asarray(queries, np.float64)), axis=1) / np.sqrt(members)  # (A, M * d)
    x = x - x.mean(axis=0)
    left, size, _ = np.linalg.svd(x, full_matrices=False)
    total = float(np.square(size).sum())
    if total <= 0.0:
        return np.zeros((annotators, 2)), 0.0
    plane = np.zeros((annotators, 2))
    kept = min(2, len(size))
    plane[:, :kept] = left[:, :kept] * size[:kept]
    plane *= np.where(plane[np.abs(plane).argmax(axis=0), [0, 1]] < 0.0, -1.0, 1.0)
    return plane, float(np.square(size[:2]).sum()) / total
