"""Near-duplicates: pairs of units whose features point the same way, found block by block.

    cos(f[u] - mean, f[v] - mean) >= threshold

Features are centred first, since those of many encoders share one large direction and would all look alike. A
projection to a few leading components sorts most pairs out: it never lengthens a distance, so no pair above the
threshold is missed. Of a unit with many near-duplicates (the same text a thousand times) only the nearest few are kept,
so the result is linear in the units.

Shape legend: U units, D dim, P pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]
Pairs = NDArray[np.int64]

MOST_UNITS = 60_000  # the latest ones; the work grows with the square
_SKETCH = 32  # components of the projection
_SAMPLE = 4_000  # units that the components are fitted on
_BLOCK = 1 << 22  # similarities in memory at once


def near_duplicates(
    features: NDArray[np.floating], *, threshold: float = 0.95, most: int = 6
) -> tuple[Pairs, Singles]:
    """Pairs (P, 2) of rows of `features` (U, D), the lower first, and their similarity (P,).

    At most `most` partners of each row are looked at, the nearest ones. Rows without any direction have none; of
    more than `MOST_UNITS` rows the last are taken.
    """
    first = max(len(features) - MOST_UNITS, 0)
    f = np.asarray(features[first:], dtype=np.float32)
    f = f - f.mean(axis=0, keepdims=True) if len(f) else f
    length = np.linalg.norm(f, axis=1)
    alive = np.flatnonzero(length > 1e-6)
    if len(alive) < 2:
        return np.empty((0, 2), np.int64), np.empty(0, np.float32)
    f = f[alive] / length[alive, None]
    sketch = f @ _components(f)  # (U, S)
    rest = np.sqrt(np.maximum(1.0 - np.square(sketch).sum(axis=1), 0.0))  # what the sketch leaves out of each row
    found = []
    step = max(_BLOCK // len(f), 1)
    for start in range(0, len(f), step):
        rows = slice(start, start + step)
        bound = sketch[rows] @ sketch.T + rest[rows, None] * rest[None, :]  # no cosine is larger
        found.append(_candidates(f, bound, start, threshold, most))
    pairs = np.concatenate([part[0] for part in found])
    near = np.concatenate([part[1] for part in found])
    pairs, place = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    return alive[pairs] + first, near[place]


def _components(f: Singles) -> Singles:
    """(D, S) orthonormal directions of most variance, from a sample of rows evenly spread."""
    sample = f[:: max(len(f) // _SAMPLE, 1)]
    _, vectors = np.linalg.eigh(sample.T @ sample)
    return np.asarray(vectors[:, ::-1][:, :_SKETCH], dtype=np.float32)


def _candidates(
    f: Singles, bound: Singles, start: int, threshold: float, most: int
) -> tuple[Pairs, Singles]:
    """Exact similarities where the bound (B, U) allows the threshold; the nearest `most` of each row."""
    row, other = np.nonzero(bound >= threshold)
    keep = other != row + start
    row, other = row[keep], other[keep]
    near = np.empty(len(row), np.float32)
    for at in range(0, len(row), _SAMPLE * 8):
        part = slice(at, at + _SAMPLE * 8)
        near[part] = np.einsum("nd,nd->n", f[row[part] + start], f[other[part]])
    keep = near >= threshold
    row, other, near = row[keep], other[keep], near[keep]
    order = np.lexsort((other, -near, row))
    row, other, near = row[order], other[order], near[order]
    count = np.bincount(row, minlength=len(bound))
    rank = np.arange(len(row)) - (np.cumsum(count) - count)[row]
    keep = rank < most
    return np.stack([row[keep] + start, other[keep]], axis=1).astype(np.int64), near[keep]
