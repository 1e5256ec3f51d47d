"""AUM and WAUM: how far a classifier's training keeps a label ahead of the best other class.

    AUM(x, y)  = mean over epochs of z_t[y] - max_{k != y} z_t[k]                          (Pleiss et al. 2020; logits)
    WAUM(x)    = sum_a s_a(x) * margin(x, y_a) / sum_a s_a(x),  s_a(x) = <softmax(x), diag pi_a>   (Lefort et al. 2022)

The margin is against the best *other* class; peerannot's paper prints the second largest probability, which is zero or
positive for every top class whatever the label. WAUM uses softmax margins and normalises by the weights.

Input are a training run's logits, (epochs, U, C): no network is run here.

Shape legend: E epochs, U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from model.crowd.answers import AnswerMatrix
from model.crowd.sums import annotator_totals, unit_totals
from model.errors import ModelError

Floats = NDArray[np.float64]


def margin_to_best_other(scores: Floats, label: NDArray[np.integer]) -> Floats:
    """(N,) score of the label minus the largest of the other classes; scores have shape (N, C), C > 1."""
    if scores.shape[1] < 2:
        raise ModelError("a margin needs at least two classes")
    rows = np.arange(len(label))
    own = scores[rows, label].copy()
    others = scores.copy()
    others[rows, label] = -np.inf
    return np.asarray(own - others.max(axis=1))


def area_under_margin(logits: Floats, label: NDArray[np.integer]) -> Floats:
    """(U,) AUM of one label for each unit, from logits (E, U, C); low: hard or mislabelled. NaN where label is -1."""
    known = label >= 0
    chosen = np.where(known, label, 0)
    total = np.zeros(len(label))
    for epoch in _epochs(logits, len(label)):
        total += margin_to_best_other(epoch, chosen)
    return np.where(known, total / len(logits), np.nan)


def vote_margins(answers: AnswerMatrix, logits: Floats) -> Floats:
    """(N,) softmax margin of each vote's class, mean over the epochs of logits (E, U, C)."""
    total = np.zeros(len(answers))
    for epoch in _epochs(logits, len(answers.units)):
        total += margin_to_best_other(softmax(epoch, axis=1)[answers.unit], answers.label)
    return total / len(logits)


def vote_trust(answers: AnswerMatrix, logits: Floats, confusion: Floats) -> Floats:
    """(N,) s_a(x): how right the annotator is on what the classifier takes the unit for, mean over epochs.

    `confusion` has shape (A, C, C) [annotator, true, given].
    """
    belief = np.mean([softmax(epoch, axis=1) for epoch in _epochs(logits, len(answers.units))], axis=0)  # (U, C)
    diagonal = np.diagonal(confusion, axis1=1, axis2=2)  # (A, C)
    return np.asarray((belief[answers.unit] * diagonal[answers.annotator]).sum(axis=1))


def weighted_area_under_margin(answers: AnswerMatrix, logits: Floats, confusion: Floats) -> Floats:
    """(U,) WAUM; low: ambiguous or hard. NaN without votes."""
    trust = vote_trust(answers, logits, confusion) * answers.weights
    return _mean(unit_totals(answers, trust * vote_margins(answers, logits)), unit_totals(answers, trust))


def annotator_area_under_margin(answers: AnswerMatrix, logits: Floats, confusion: Floats) -> Floats:
    """(A,) trust-weighted mean margin of each annotator's votes (WAUM per annotator). NaN without votes."""
    trust = vote_trust(answers, logits, confusion) * answers.weights
    return _mean(annotator_totals(answers, trust * vote_margins(answers, logits)), annotator_totals(answers, trust))


def _epochs(logits: Floats, n_units: int) -> Floats:
    if logits.ndim != 3 or logits.shape[1] != n_units or len(logits) == 0:
        raise ModelError(f"logits have shape {logits.shape}, needed is (epochs, {n_units}, classes)")
    return logits


def _mean(total: Floats, weight: Floats) -> Floats:
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)
