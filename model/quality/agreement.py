"""Agreement between annotators, corrected for chance or not, over nominal votes with missing data.

    percent        : of all pairs of votes on the same unit, how many say the same
    Cohen kappa    : two annotators, their common units, optionally weighted by the distance of ordered classes
    Fleiss kappa   : chance from the overall shares; here for any number of votes a unit (each unit counts once)
    Krippendorff   : 1 - observed / expected disagreement with a nominal, ordinal or interval distance
    Gwet AC1       : chance from how evenly the classes are used; does not collapse when one class dominates

Everything is a function of two small tables: the coincidences (C, C) of pairable votes and the class counts, which are
one `bincount` over the votes; no loop over pairs. Vote weights are ignored: agreement counts votes.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from model.crowd.answers import AnswerMatrix
from model.crowd.sums import class_totals, votes_table

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def unit_counts(answers: AnswerMatrix) -> Floats:
    """(U, C) number of votes for each class of each unit."""
    return class_totals(answers, np.ones(len(answers)))


def coincidences(answers: AnswerMatrix) -> Floats:
    """(C, C) Krippendorff's coincidence matrix: each unit's ordered pairs of votes, over (votes of the unit - 1)."""
    n_classes = len(answers.classes)
    if n_classes == 0:
        return np.zeros((0, 0))
    votes = np.diff(answers.indptr)
    share = np.where(votes > 1, 1.0 / np.maximum(votes - 1, 1), 0.0)  # (U,)
    counts = unit_counts(answers)
    table = np.asarray(votes_table(answers, np.repeat(share, votes)).T @ counts)
    table[np.diag_indices(n_classes)] -= share @ counts
    return table


def distances(level: Level, totals: Floats, values: Floats | None = None) -> Floats:
    """(C, C) squared distances of Krippendorff's alpha; `totals` (C,) are the coincidence margins.

    `values` (C,) are the numbers that the classes stand for (interval level; by default their positions).
    """
    n_classes = len(totals)
    if level == "nominal":
        return 1.0 - np.eye(n_classes)
    if level == "ordinal":
        rank = np.cumsum(totals) - totals / 2.0
        gap: Floats = (rank[:, None] - rank[None, :]) ** 2
        return gap
    x = np.arange(n_classes, dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
    squared: Floats = (x[:, None] - x[None, :]) ** 2
    return squared


def alpha_of(table: Floats, level: Level = "nominal", values: Floats | None = None) -> float:
    """Krippendorff's alpha of a coincidence matrix; NaN without pairs, 1 where only one class was ever used."""
    totals = table.sum(axis=0)
    n = float(totals.sum())
    if n < 2:
        return float("nan")
    delta = distances(level, totals, values)
    expected = float(totals @ delta @ totals) / (n - 1.0)
    if expected <= 0:
        return 1.0
    return 1.0 - float((table * delta).sum()) / expected


def krippendorff_alpha(answers: AnswerMatrix, level: Level = "nominal", values: Floats | None = None) -> float:
    """Krippendorff's alpha; classes must stand in order for `ordinal` and `interval`."""
    return alpha_of(coincidences(answers), level, values)


def percent_agreement(answers: AnswerMatrix) -> float:
    """Share of pairs of votes on one unit that are equal; NaN without pairs."""
    same, pairs = _pairs(unit_counts(answers))
    return float(same.sum() / pairs.sum()) if pairs.sum() else float("nan")


def fleiss_kappa(answers: AnswerMatrix) -> float:
    """Fleiss' kappa; units with a single vote are left out of both parts."""
    counts = unit_counts(answers)
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return float("nan")
    same, pairs = _pairs(counts)
    share = counts.sum(axis=0) / counts.sum()
    return _corrected(float(np.mean(same / pairs)), float(share @ share))


def gwet_ac1(answers: AnswerMatrix) -> float:
    """Gwet's AC1: observed agreement over units with two votes or more, chance from the mean shares of all units."""
    counts = unit_counts(answers)
    votes = counts.sum(axis=1)
    if not (votes > 1).any() or counts.shape[1] < 2:
        return float("nan") if not (votes > 1).any() else 1.0
    same, pairs = _pairs(counts[votes > 1])
    share = np.mean(counts[votes > 0] / votes[votes > 0][:, None], axis=0)
    chance = float((share * (1.0 - share)).sum()) / (counts.shape[1] - 1)
    return _corrected(float(np.mean(same / pairs)), chance)


def class_agreement(answers: AnswerMatrix) -> Floats:
    """(C,) of the pairs with a vote for this class, the share in which the other says it too; NaN for unused ones."""
    table = coincidences(answers)
    totals = table.sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(totals > 0, np.diagonal(table) / np.where(totals > 0, totals, 1.0), np.nan)


def class_alpha(answers: AnswerMatrix) -> Floats:
    """(C,) nominal alpha of each class against all others."""
    table = coincidences(answers)
    totals, n = table.sum(axis=0), float(table.sum())
    out = np.full(len(totals), np.nan)
    for k in range(len(totals)):
        own, mixed = table[k, k], totals[k] - table[k, k]
        out[k] = alpha_of(np.array([[own, mixed], [mixed, n - own - 2 * mixed]]))
    return out


def presence_agreement(given: Floats, votes: Floats) -> tuple[Floats, Floats]:
    """`class_agreement` and `class_alpha` (C,) of classes of which one answer may hold several, or none.

    `given` (U, C): how many answers on each unit hold each class; `votes` (U,): how many answers there are.
    """
    several = votes > 1
    yes, n = given[several], votes[several][:, None]
    no = n - yes
    both, mixed, neither = (
        (pairs / (n - 1.0)).sum(axis=0) for pairs in (yes * (yes - 1.0), yes * no, no * (no - 1.0))
    )
    used = both + mixed
    same = np.where(used > 0, both / np.where(used > 0, used, 1.0), np.nan)
    tables = np.stack([both, mixed, mixed, neither], axis=1).reshape(-1, 2, 2)
    return same, np.array([alpha_of(table) for table in tables])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairwise:
    """Agreement of each pair of annotators on their common units."""

    common: NDArray[np.int64]  # (A, A) units that both voted on
    percent: Floats  # (A, A) NaN where there is no common unit
    kappa: Floats  # (A, A) Cohen's kappa


def pairwise_agreement(answers: AnswerMatrix, weights: Literal["none", "linear", "quadratic"] = "none") -> Pairwise:
    """All pairs at once, by sparse products; memory is A^2 * C. `weights` makes kappa respect the order of classes."""
    n_units, n_annotators, n_classes = answers.shape
    ones = np.ones(len(answers))
    by_unit = sparse.csr_array((ones, (answers.annotator, answers.unit)), shape=(n_annotators, n_units))
    by_class = []
    for k in range(n_classes):
        rows = answers.label == k
        entries = (np.ones(int(rows.sum())), (answers.annotator[rows], answers.unit[rows]))
        by_class.append(sparse.csr_array(entries, shape=(n_annotators, n_units)))
    common = (by_unit @ by_unit.T).toarray()
    penalty = disagreement_weights(n_classes, weights)
    given = [(by_class[k] @ by_unit.T).toarray() for k in range(n_classes)]  # a says k on units that b also has
    same = np.zeros_like(common)
    observed, expected = np.zeros_like(common), np.zeros_like(common)
    for k in range(n_classes):
        same += (by_class[k] @ by_class[k].T).toarray()
        for other in range(n_classes):
            if penalty[k, other]:
                observed += penalty[k, other] * (by_class[k] @ by_class[other].T).toarray()
                expected += penalty[k, other] * given[k] * given[other].T
    with np.errstate(invalid="ignore", divide="ignore"):
        percent = np.where(common > 0, same / common, np.nan)
        kappa = np.where(expected > 0, 1.0 - observed * common / expected, np.where(common > 0, 1.0, np.nan))
    return Pairwise(common=common.astype(np.int64), percent=percent, kappa=kappa)


def cohen_kappa(table: Floats, weights: Literal["none", "linear", "quadratic"] = "none") -> float:
    """Cohen's kappa of a (C, C) table of two annotators' votes; NaN when it is empty."""
    n = float(table.sum())
    if n == 0:
        return float("nan")
    penalty = disagreement_weights(len(table), weights)
    expected = float((penalty * np.outer(table.sum(axis=1), table.sum(axis=0))).sum()) / n
    return 1.0 if expected == 0 else 1.0 - float((penalty * table).sum()) / expected


def disagreement_weights(n_classes: int, weights: Literal["none", "linear", "quadratic"]) -> Floats:
    """(C, C) how bad it is to say one class where the other says another."""
    gap = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes)[None, :]).astype(np.float64)
    if weights == "none":
        return 1.0 - np.eye(n_classes)
    scale = max(n_classes - 1, 1)
    power: Floats = (gap / scale) ** (1 if weights == "linear" else 2)
    return power


def _pairs(counts: Floats) -> tuple[Floats, Floats]:
    """(U,) equal ordered pairs and (U,) all ordered pairs of votes."""
    votes = counts.sum(axis=1)
    return (counts * (counts - 1.0)).sum(axis=1), votes * (votes - 1.0)


def _corrected(observed: float, chance: float) -> float:
    return 1.0 if chance >= 1.0 else (observed - chance) / (1.0 - chance)
