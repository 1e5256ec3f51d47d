"""What is believed of a unit, and of a vote on it, without that vote: exact, and about as cheap as one E step.

`posterior_without` removes each vote's own evidence from its unit's scores. `predict_votes` also takes the vote out of
its annotator's expected counts (and out of the pooled ones that these are shrunk to), and says how probable each answer
of that annotator is, given everybody else: evidence for gaps, and the measure of how surprising a vote is.

Both are exact at fixed parameters; nothing is refitted.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, posterior_from
from model.crowd.sums import Floats
from model.errors import ModelError

_CHUNK = 16_384  # votes of predict_votes that are in the processor's cache at once


def posterior_without(method: Aggregator, answers: AnswerMatrix, fitted: Aggregate) -> Floats:
    """(N, C) posterior of each vote's unit as if that vote had not been given; gold stays certain.

    Row order is that of `answers`. Raises ModelError for methods without a likelihood.
    """
    _same_tables(answers, fitted)
    rows, prior = method.evidence(answers, fitted)
    n = len(answers)
    shape = (len(answers.units), n)
    per_unit = sparse.csr_array((np.ones(n), np.arange(n, dtype=np.int32), answers.indptr), shape=shape)
    scores = per_unit @ rows + prior
    rows *= -1.0
    rows += scores[answers.unit]
    posterior_from(rows, fitted.gold[answers.unit])
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class VotePredictor:
    """How an annotator answers, from the expected counts of a fit, shrunk to the pooled confusion matrix."""

    strength: float = 4.0  # pseudo-votes of the pooled matrix in each row
    floor: float = 0.1  # pseudo-votes in every cell of the pooled matrix itself

    def predict_votes(self, method: Aggregator, answers: AnswerMatrix, fitted: Aggregate) -> Floats:
        """(N, C) probability of each answer of each vote's annotator on its unit, without that vote."""
        if fitted.counts is None:
            raise ModelError(f"{fitted.method} keeps no expected counts of its annotators' answers")
        believed = posterior_without(method, answers, fitted)
        out = np.zeros_like(believed)
        pooled = fitted.counts.sum(axis=0) + self.floor  # (C, C) [true, given]
        totals, weights = fitted.counts.sum(axis=2), answers.weights
        for first in range(0, len(answers), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            label, who = answers.label[chunk], answers.annotator[chunk]
            at = np.arange(len(label))
            given = out[chunk, :]
            for true in range(len(pooled)):
                # Only the column of the answer that was given changes when the vote is taken out of the counts.
                own = fitted.posterior[answers.unit[chunk], true] * weights[chunk]
                mine, all_of = fitted.counts[who, true, label], pooled[true, label]
                left, left_of = np.maximum(mine - own, 0.0), np.maximum(all_of - own, self.floor)
                total = totals[who, true] - mine + left + self.strength
                share = believed[chunk, true] / total
                shared = self.strength * share / (pooled[true].sum() - all_of + left_of)
                answer = given[at, label] + share * left + shared * left_of
                given += share[:, None] * fitted.counts[who, true]
                given += shared[:, None] * pooled[true]
                given[at, label] = answer
        return out

    def predict_gaps(self, fitted: Aggregate, units: NDArray[np.integer], annotators: NDArray[np.integer]) -> Floats:
        """(M, C) probability of each answer for M (unit, annotator) code pairs without a vote."""
        confusion = self.confusion(fitted)
        predicted: Floats = np.einsum("nk,nkl->nl", fitted.posterior[units], confusion[annotators])
        return predicted

    def confusion(self, fitted: Aggregate) -> Floats:
        """(A, C, C) [annotator, true, given] shrunk confusion matrices."""
        if fitted.counts is None:
            raise ModelError(f"{fitted.method} keeps no expected counts of its annotators' answers")
        pooled = fitted.counts.sum(axis=0) + self.floor
        pooled /= pooled.sum(axis=1, keepdims=True)
        shrunk = fitted.counts + self.strength * pooled
        rows: Floats = shrunk / shrunk.sum(axis=2, keepdims=True)
        return rows


def log_loss(predicted: Floats, label: NDArray[np.integer]) -> float:
    """Mean -log of the probability of the answers that were given."""
    return float(-np.mean(np.log(np.maximum(predicted[np.arange(len(label)), label], 1e-12))))


def _same_tables(answers: AnswerMatrix, fitted: Aggregate) -> None:
    if (answers.units, answers.annotators, answers.classes) != (fitted.units, fitted.annotators, fitted.classes):
        raise ModelError("the result was fitted on other units, annotators or classes")


__all__ = ["VotePredictor", "log_loss", "posterior_without"]
