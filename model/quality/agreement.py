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
    """(C,) nominal alpha of each class against all others; NaN for classes without a vote on a unit of several."""
    table = coincidences(answers)
    totals, n = table.sum(axis=0), float(table.sum())
    out = np.full(len(totals), np.nan)
    for k in np.flatnonzero(totals > 0):
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
    return same, np.array([
        alpha_of(table) if there else np.nan for table, there in zip(tables, used > 0, strict=True)])


def why_no_alpha(votes: int, alpha: float) -> str:
    """A sentence that says why a class has no alpha; "" where it has one."""
    if alpha == alpha:
        return ""
    return "No task with two votes or more has this class." if votes else "Nobody gave this class."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairwise:
    """Agreement of each pair of annotators on their common units."""

    common: NDArray[np.int64]  # (A, A) units that both voted on
    percent: Floats  # (A, A) NaN where there is no common unit
    kappa: Floats  # (A, A) Cohen's kappa


def pairwise_agreement(answers: AnswerMatrix, weights: Literal["none", "linear", "quadratic"] = "none") -> Pairwise:
    """All pairs at once, by two sparse products for each class; memory is a few tables of A^2, whatever C.

    `weights` makes kappa respect the order of classes. With R_k[a, b] = units that b has too on which a says k:

        observed[a, b] = sum_k (votes of a for k) . (penalty of b's votes against k)
        expected[a, b] = sum_kl penalty[k, l] R_k[a, b] R_l[b, a]

    and the second sum needs one pass over k for all three penalties (see `_Chance`).
    """
    n_units, n_annotators, n_classes = answers.shape
    shape, place = (n_annotators, n_units), (answers.annotator, answers.unit)
    by_unit = sparse.csr_array((np.ones(len(answers)), place), shape=shape)
    others = sparse.csr_array(by_unit.T)
    pairs = _Pairs(by_unit @ others)
    cells, cell = np.unique(answers.cell, return_inverse=True)
    same_table = sparse.csr_array((np.ones(len(answers)), (answers.annotator, cell)), shape=(n_annotators, len(cells)))
    same, observed = np.zeros_like(pairs.common), np.zeros_like(pairs.common)
    pairs.add(same, same_table @ sparse.csr_array(same_table.T))
    chance = _Chance(pairs, n_classes, weights)
    penalty = disagreement_weights(n_classes, weights)
    for k in np.flatnonzero(np.bincount(answers.label, minlength=n_classes)).tolist():
        rows = answers.label == k
        mine = sparse.csr_array((np.ones(int(rows.sum())), (answers.annotator[rows], answers.unit[rows])), shape=shape)
        chance.add(k, mine @ others)
        if weights != "none":
            against = sparse.csr_array((penalty[answers.label, k], place[::-1]), shape=shape[::-1])
            pairs.add(observed, mine @ against)
    if weights == "none":
        observed = pairs.common - same
    expected, common = chance.expected(), pairs.common
    kappa = np.where(expected > 1e-9, 1.0 - observed * common / np.where(expected > 1e-9, expected, 1.0), 1.0)
    return Pairwise(
        common=pairs.table(common, 0.0).astype(np.int64), percent=pairs.table(same / common), kappa=pairs.table(kappa))


class _Pairs:
    """The P ordered pairs of annotators with a common unit: figures of them are columns (P,)."""

    def __init__(self, common: sparse.csr_array) -> None:
        self._n = common.shape[0]
        entries = sparse.coo_array(common)
        key = entries.row.astype(np.int64) * self._n + entries.col
        order = np.argsort(key)
        self._key = key[order]
        self.common: Floats = entries.data[order]  # (P,) number of common units
        # (P,) where (b, a) is, for each (a, b)
        self.turned = np.searchsorted(self._key, self._key % self._n * self._n + self._key // self._n)

    def add(self, column: Floats, part: sparse.csr_array, times: float = 1.0) -> None:
        """column += times * part, in place; `part` (A, A) speaks of such pairs only."""
        rows = np.repeat(np.arange(self._n, dtype=np.int64), np.diff(part.indptr))
        column[np.searchsorted(self._key, rows * self._n + part.indices)] += times * part.data

    def table(self, column: Floats, otherwise: float = np.nan) -> Floats:
        """(A, A) of a column."""
        found = np.full((self._n, self._n), otherwise)
        found.reshape(-1)[self._key] = column
        return found


class _Chance:
    """expected[a, b] = sum_kl penalty[k, l] R_k[a, b] R_l[b, a], from the R_k in ascending order of k.

        none       common^2 - sum_k R_k * R_k'                              (' transposes, * is by entry)
        linear     sum_t common * (F_t + F_t') - 2 F_t * F_t',  F_t = sum_{k <= t} R_k, over (C - 1)
        quadratic  common * (S + S') - 2 M * M',  M = sum k R_k, S = sum k^2 R_k, over (C - 1)^2
    """

    def __init__(self, pairs: _Pairs, n_classes: int, weights: Literal["none", "linear", "quadratic"]) -> None:
        self._pairs, self._weights, self._n_classes = pairs, weights, n_classes
        self._last = 0
        self._sum = np.zeros_like(pairs.common)  # none: of R_k * R_k'; linear: the sum over t; quadratic: S
        self._upto = np.zeros_like(pairs.common)  # linear: F_t; quadratic: M

    def add(self, k: int, given: sparse.csr_array) -> None:
        """Take in R_k."""
        if self._weights == "none":
            self._pairs.add(self._sum, sparse.csr_array(given.multiply(sparse.csr_array(given.T))))
        elif self._weights == "quadratic":
            self._pairs.add(self._upto, given, k)
            self._pairs.add(self._sum, given, k * k)
        else:
            self._steps(k)
            self._pairs.add(self._upto, given)

    def expected(self) -> Floats:
        """(P,), once all classes were added."""
        common, turned, scale = self._pairs.common, self._pairs.turned, float(max(self._n_classes - 1, 1))
        if self._weights == "none":
            return np.asarray(common * common - self._sum)
        if self._weights == "linear":
            self._steps(self._n_classes - 1)
            return np.asarray(self._sum / scale)
        both = common * (self._sum + self._sum[turned]) - 2.0 * self._upto * self._upto[turned]
        return np.asarray(both / scale**2)

    def _steps(self, k: int) -> None:
        """The terms t from the last class up to below k, during which F_t stays as it is."""
        if k > self._last:
            f, turned = self._upto, self._upto[self._pairs.turned]
            self._sum += (k - self._last) * (self._pairs.common * (f + turned) - 2.0 * f * turned)
        self._last = k


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
