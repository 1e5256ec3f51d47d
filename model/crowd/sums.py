"""Sums over votes: what the inner loops of the aggregators are made of.

Products with the sparse vote table run in blocks of units, so that a block's scores stay in the processor's cache and
the 500,000-vote table needs no second copy. Nothing here scatters with `np.add.at`.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from model.crowd.answers import AnswerMatrix

Floats = NDArray[np.float64]
_BLOCK_VOTES = 65_536  # 5 votes a unit and 10 classes: scores of a block take about 1 MB


class VoteBlocks:
    """The (U, A * C) table of votes, cut into blocks of units: `product` gathers, `transposed` scatters."""

    def __init__(
        self, answers: AnswerMatrix, key: NDArray[np.int32] | None = None, n_keys: int | None = None
    ) -> None:
        """`key` (N,) below `n_keys`: other columns for the votes than (annotator, given class)."""
        n_units, n_annotators, n_classes = answers.shape
        self.n_units, self.n_keys = n_units, n_annotators * n_classes if n_keys is None else n_keys
        n_votes = max(_BLOCK_VOTES, 4 * self.n_keys)  # a scatter costs n_keys * C whatever the block holds
        key, weight = answers.key if key is None else key, answers.weight
        ones = np.ones(0)
        self._blocks: list[tuple[int, int, sparse.csr_array]] = []
        for start, stop in _cuts(answers.indptr, n_votes):
            first, last = int(answers.indptr[start]), int(answers.indptr[stop])
            if len(ones) < last - first:
                ones = np.ones(last - first)
            data = ones[: last - first] if weight is None else weight[first:last]
            indptr = answers.indptr[start : stop + 1] - answers.indptr[start]
            block = sparse.csr_array((data, key[first:last], indptr), shape=(stop - start, self.n_keys), copy=False)
            self._blocks.append((start, stop, block))

    def __iter__(self) -> Iterator[tuple[int, int, sparse.csr_array]]:
        """(first unit, unit after the last, sparse (units, A * C)) of each block."""
        return iter(self._blocks)

    def product(self, table: Floats) -> Floats:
        """Sum over each unit's votes of the row of `table` that the vote names: (A * C, D) -> (U, D)."""
        out = np.empty((self.n_units, table.shape[1]))
        for start, stop, block in self._blocks:
            out[start:stop] = block @ table
        return out

    def transposed(self, table: Floats) -> Floats:
        """Sum over the votes that name a key of the unit's row of `table`: (U, D) -> (A * C, D)."""
        out = np.zeros((self.n_keys, table.shape[1]))
        for start, stop, block in self._blocks:
            out += block.T @ table[start:stop]
        return out


def _cuts(indptr: NDArray[np.int32], n_votes: int) -> Iterator[tuple[int, int]]:
    """Consecutive unit ranges of about `n_votes` votes and at most as many units."""
    n_units, start = len(indptr) - 1, 0
    while start < n_units:
        stop = int(np.searchsorted(indptr, indptr[start] + n_votes, side="right")) - 1
        stop = min(max(stop, start + 1), start + n_votes, n_units)
        yield start, stop
        start = stop


def row_max(scores: Floats) -> Floats:
    """(U,) largest of each row; column by column, which is several times faster than reducing short rows."""
    if scores.shape[1] > 64:
        return np.asarray(scores.max(axis=1))
    top = scores[:, 0].copy()
    for column in range(1, scores.shape[1]):
        np.maximum(top, scores[:, column], out=top)
    return top


def softmax_rows(scores: Floats) -> Floats:
    """Turn log scores (U, C) into probabilities in place; returns the log of each row's sum, (U,)."""
    top = row_max(scores)
    scores -= top[:, None]
    np.exp(scores, out=scores)
    total = scores @ np.ones(scores.shape[1])
    scores /= total[:, None]
    np.log(total, out=total)
    total += top
    return total


def normalise_rows(table: Floats, empty: Floats | float) -> Floats:
    """Rows divided by their sums; rows that sum to zero become `empty`."""
    total = table.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = table / total
    return np.where(total > 0, shares, empty)


def class_totals(answers: AnswerMatrix, per_vote: Floats | None = None) -> Floats:
    """(U, C) sum of `per_vote` (N,) (the weights when None) over the votes for each class of each unit."""
    weights = answers.weights if per_vote is None else per_vote
    return np.asarray(votes_table(answers, weights).toarray(), dtype=np.float64)


def votes_table(answers: AnswerMatrix, per_vote: Floats) -> sparse.csr_array:
    """Sparse (U, C) with `per_vote` (N,) at each vote's unit and class; entries of one unit and class add up."""
    n_units, _, n_classes = answers.shape
    return sparse.csr_array((per_vote, answers.label, answers.indptr), shape=(n_units, n_classes), copy=False)


def annotator_totals(answers: AnswerMatrix, per_vote: Floats | None = None) -> Floats:
    """(A,) sum of `per_vote` (N,) (the weights when None) over each annotator's votes."""
    weights = answers.weight if per_vote is None else per_vote
    return np.bincount(answers.annotator, weights, minlength=len(answers.annotators)).astype(np.float64, copy=False)


def unit_totals(answers: AnswerMatrix, per_vote: Floats | None = None) -> Floats:
    """(U,) sum of `per_vote` (N,) (the weights when None) over each unit's votes."""
    weights = answers.weight if per_vote is None else per_vote
    return np.bincount(answers.unit, weights, minlength=len(answers.units)).astype(np.float64, copy=False)


def at_label(answers: AnswerMatrix, table: Floats) -> Floats:
    """(N,) the entry of a (U, C) table at each vote's unit and class."""
    return np.take(np.ascontiguousarray(table).reshape(-1), answers.cell)


def safe_log(p: Floats) -> Floats:
    """log with zeros lifted to 1e-300, so that a class that nobody gave stays finite."""
    return np.log(np.maximum(p, 1e-300))
