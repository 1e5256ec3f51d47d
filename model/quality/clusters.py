"""Groups of annotators who label alike: Ward clustering of whom they agree with.

An annotator's profile is their Cohen kappa with everybody else, shrunk to the mean of all pairs by `strength` common
units, so that a lucky pair with three common tasks is no bond. Two annotators are close when they agree with the same
people, which also works for pairs that share no unit. Without a number of clusters the best silhouette decides.
`cohesion` tells a tight group (its members agree far more with each other than with the rest) from a leftover.

Shape legend: A annotators, G clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from model.crowd.answers import AnswerMatrix
from model.quality.agreement import Pairwise, pairwise_agreement

Floats = NDArray[np.float64]
_MOST = 8  # clusters that are tried


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Clusters of annotators, the tightest first."""

    annotators: tuple[str, ...]
    member: NDArray[np.int64]  # (A,) cluster of each annotator
    within: Floats  # (G,) mean percent agreement inside; NaN for a single member
    between: Floats  # (G,) mean percent agreement with everybody else
    silhouette: float  # of the whole clustering, in [-1, 1]

    @property
    def cohesion(self) -> Floats:
        """(G,) within minus between."""
        return self.within - self.between


def group_annotators(
    answers: AnswerMatrix, n_clusters: int | None = None, *, strength: float = 5.0, pairs: Pairwise | None = None
) -> Groups:
    """Cluster the annotators; with fewer than three everybody is in one group. `pairs` are theirs, where known."""
    n = len(answers.annotators)
    pairs = pairs or pairwise_agreement(answers)
    if n < 3 or len(answers) == 0:
        member = np.zeros(n, dtype=np.int64)
        return _describe(answers.annotators, member, pairs.percent, 0.0)
    off = ~np.eye(n, dtype=np.bool_)
    known = off & np.isfinite(pairs.kappa)
    mean = float(pairs.kappa[known].mean()) if known.any() else 0.0
    shrunk = (np.nan_to_num(pairs.kappa) * pairs.common + mean * strength) / (pairs.common + strength)
    np.fill_diagonal(shrunk, mean)
    tree = linkage(shrunk, method="ward")
    distance = squareform(pdist(shrunk))
    counts = [n_clusters] if n_clusters is not None else list(range(2, min(_MOST, n - 1) + 1))
    best, best_score = np.zeros(n, dtype=np.int64), -np.inf
    for count in counts:
        member = fcluster(tree, count, criterion="maxclust").astype(np.int64) - 1
        score = silhouette(distance, member)
        if score > best_score:
            best, best_score = member, score
    return _describe(answers.annotators, best, pairs.percent, best_score)


def silhouette(distance: Floats, member: NDArray[np.integer]) -> float:
    """Mean silhouette of a clustering under (A, A) distances; single members count 0."""
    groups = np.unique(member)
    if len(groups) < 2:
        return 0.0
    belongs = (member[:, None] == groups[None, :]).astype(np.float64)  # (A, G)
    size = belongs.sum(axis=0)
    total = distance @ belongs
    own = total[np.arange(len(member)), np.searchsorted(groups, member)]
    own_size = size[np.searchsorted(groups, member)]
    inside = own / np.maximum(own_size - 1, 1)
    others = np.where(belongs > 0, np.inf, total / size)
    nearest = others.min(axis=1)
    score = np.where(own_size > 1, (nearest - inside) / np.maximum(np.maximum(nearest, inside), 1e-12), 0.0)
    return float(score.mean())


def _describe(annotators: tuple[str, ...], member: NDArray[np.int64], percent: Floats, score: float) -> Groups:
    off = ~np.eye(len(member), dtype=np.bool_) & np.isfinite(percent)
    groups = np.unique(member)
    within, between = np.full(len(groups), np.nan), np.full(len(groups), np.nan)
    for position, group in enumerate(groups):
        inside = member == group
        own, other = off & np.outer(inside, inside), off & np.outer(inside, ~inside)
        within[position] = percent[own].mean() if own.any() else np.nan
        between[position] = percent[other].mean() if other.any() else np.nan
    order = np.argsort(-np.nan_to_num(within, nan=-1.0), kind="stable")
    rank = np.empty(len(groups), dtype=np.int64)
    rank[order] = np.arange(len(groups))
    renamed = rank[np.searchsorted(groups, member)] if len(groups) else member
    return Groups(
        annotators=annotators, member=renamed, within=within[order], between=between[order], silhouette=float(score)
    )
