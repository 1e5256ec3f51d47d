"""Dawid-Skene where confusion matrices would not fit into memory: only the cells of answers that were given are kept.

An annotator's row of a class that they never gave is not read in the E step, and all that the M step needs of it is its
pseudo-votes: K different (annotator, given class) keys with a row (C true classes) each stand for A * C of them. The
steps, the objective and the posteriors are those of `DawidSkene`, exactly; confusion matrices are not made.

    total[a, k] = sum_l counts[a, l, k] + sum_l S[l, k]        log pi_a[k, l] = log (counts + S)[a, l, k] / total[a, k]

Shape legend: U units, A annotators, C classes, K keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.room import require_votes_times_classes
from model.crowd.sums import Floats, VoteBlocks, safe_log

_ROWS = 512


class GivenKeys:
    """The keys that votes name, and tables (K, C) over them."""

    def __init__(self, answers: AnswerMatrix, smoothing: float, trust: float) -> None:
        """Raises ModelError where even these tables are too large."""
        self._n_annotators, self._n_classes = len(answers.annotators), len(answers.classes)
        self.keys, self.place = np.unique(answers.key.astype(np.int64), return_inverse=True)
        require_votes_times_classes("this method", len(self.keys), self._n_classes)
        self.annotator, self.given = np.divmod(self.keys, self._n_classes)
        self._smoothing, self._trust = smoothing, trust
        self._first = np.searchsorted(self.annotator, np.arange(self._n_annotators))
        self.blocks = VoteBlocks(answers, key=self.place.astype(np.int32), n_keys=len(self.keys))

    def log_table(self, counts: Floats) -> tuple[Floats, float, Floats]:
        """Expected votes (K, C) -> log pi (K, C), sum of the pseudo-votes times log pi over all cells, and (A, C) the
        diagonal of every annotator's confusion matrix."""
        s, trust, n = self._smoothing, self._trust, self._n_classes
        total = self._sums(counts) + (n * s + trust)  # (A, C)
        at = np.arange(len(self.keys))
        table = np.maximum(counts + s, 1e-300)
        table[at, self.given] += trust
        np.log(table, out=table)
        log_total = np.log(np.maximum(total, 1e-300))
        for first in range(0, len(table), _ROWS):  # what is in the processor's cache is not fetched again
            table[first : first + _ROWS] -= log_total[self.annotator[first : first + _ROWS]]
        with np.errstate(invalid="ignore", divide="ignore"):
            off, diagonal = (np.where(total > 0, each / total, 1.0 / n) for each in (s, s + trust))
        nothing = total <= 0
        if nothing.any():  # a true class without votes or pseudo-votes: the row is uniform
            table[nothing[self.annotator]] = -np.log(n)
        used = np.bincount(self.annotator, minlength=self._n_annotators)[:, None] * np.ones(n)
        own = np.zeros((self._n_annotators, n))
        own[self.annotator, self.given] = 1.0
        penalty = s * float(table.sum()) + trust * float(table[at, self.given].sum())
        penalty += s * float(((n - 1 - (used - own)) * safe_log(off)).sum())
        penalty += (s + trust) * float(((1.0 - own) * safe_log(diagonal)).sum())
        diagonal[self.annotator, self.given] = np.exp(table[at, self.given])
        return table, penalty, diagonal

    def _sums(self, counts: Floats) -> Floats:
        """(A, C) sums over each annotator's keys."""
        sums = np.zeros((self._n_annotators, self._n_classes))
        there = np.flatnonzero(np.bincount(self.annotator, minlength=self._n_annotators))
        sums[there] = np.add.reduceat(counts, self._first[there], axis=0)
        return sums


def places(keys: NDArray[np.float64], answers: AnswerMatrix) -> NDArray[np.int64]:
    """(N,) the row of each vote in tables over these keys."""
    found: NDArray[np.int64] = np.searchsorted(keys, answers.key)
    return found
