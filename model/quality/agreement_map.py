"""Who agrees with whom, and a map made of it: annotators who give the same labels lie near each other.

    distance of two annotators : 1 - share of equal votes on the tasks that both labelled
    map                        : classical scaling (Torgerson 1952) of these distances: B = -J D^2 J / 2, J = I - 1/K;
                                 its two largest eigenvalues give the axes

Invariants: a distance rests on `common` tasks or it is unknown, and unknown ones are never made up: whoever has too
many of them is left off the map, and where too few people remain, or two axes show too little, there is no map.

Shape legend: K chosen annotators, U units, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from model.crowd.answers import AnswerMatrix

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
FEWEST, COMMON, SHOWN = 5, 20, 0.5  # people on a map, tasks of each pair, share that two axes have to show
_STRENGTH = 5.0  # common tasks by which a pair's agreement is shrunk to everybody's, for the order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Map:
    """Places of some annotators."""

    chosen: Counts  # (M,) which of the K are on it
    place: Floats  # (M, 2)
    explained: float  # share of the squared distances that the two axes show, in [0, 1]


def pair_counts(answers: AnswerMatrix, chosen: Sequence[int]) -> tuple[Counts, Counts]:
    """(K, K) units that both labelled and (K, K) on how many of them they say the same."""
    units, people, classes = answers.shape
    place = np.full(people, -1, np.int64)
    place[list(chosen)] = np.arange(len(chosen))
    row = place[answers.annotator]
    known = row >= 0
    row, unit = row[known], answers.unit[known].astype(np.int64)
    ones = np.ones(len(row))
    there = sparse.csr_array((ones, (row, unit)), shape=(len(chosen), units))
    said = sparse.csr_array((ones, (row, unit * classes + answers.label[known])), shape=(len(chosen), units * classes))
    common, same = ((table @ table.T).toarray().astype(np.int64) for table in (there, said))
    return common, same


def by_likeness(common: Counts, same: Counts) -> Counts:
    """(K,) an order in which those who agree stand together (average linkage, optimal order of leaves)."""
    if len(common) < 3:
        return np.arange(len(common))
    off = ~np.eye(len(common), dtype=np.bool_)
    usual = same[off].sum() / max(common[off].sum(), 1)
    share = (same + usual * _STRENGTH) / (common + _STRENGTH)
    gap = 1.0 - (share + share.T) / 2.0
    np.fill_diagonal(gap, 0.0)
    tree = linkage(squareform(gap, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), np.int64)


def agreement_map(common: Counts, same: Counts) -> Map | None:
    """The map of those of whom every distance is known; None where that says too little."""
    chosen = np.arange(len(common))
    while len(chosen) >= FEWEST:
        unknown = (common[np.ix_(chosen, chosen)] < COMMON).sum(axis=1)  # a pair of one counts alike for all
        unknown -= np.diagonal(common)[chosen] < COMMON
        if not unknown.any():
            break
        chosen = np.delete(chosen, unknown.argmax())
    if len(chosen) < FEWEST:
        return None
    distance = 1.0 - same[np.ix_(chosen, chosen)] / common[np.ix_(chosen, chosen)]
    np.fill_diagonal(distance, 0.0)
    centred = np.eye(len(chosen)) - 1.0 / len(chosen)
    values, vectors = np.linalg.eigh(-centred @ distance**2 @ centred / 2.0)
    positive = values.clip(0.0)
    explained = float(positive[-2:].sum() / positive.sum()) if positive.sum() > 0 else 0.0
    if explained < SHOWN:
        return None
    axes = vectors[:, [-1, -2]] * np.sqrt(positive[[-1, -2]])  # (M, 2)
    axes *= np.where(axes.sum(axis=0) < -1e-12, -1.0, 1.0)  # a sign that does not depend on the machine
    return Map(chosen=chosen, place=axes, explained=explained)
