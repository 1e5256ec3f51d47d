"""What the weighted votes share: weigh each annotator, add up the weights, compare each annotator with the outcome.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Codes
from model.crowd.majority import settle_ties
from model.crowd.sums import Floats, annotator_totals, class_totals


def vote_totals(answers: AnswerMatrix, annotator_weight: Floats) -> Floats:
    """(U, C) sums of the annotators' weights (A,) times the votes' own weights."""
    per_vote = annotator_weight[answers.annotator]
    if answers.weight is not None:
        per_vote *= answers.weight
    return class_totals(answers, per_vote)


def winners(answers: AnswerMatrix, totals: Floats, gold: Codes) -> Codes:
    """(U,) winning classes of totals (U, C), gold where known; ties by the unweighted count, then the overall share."""
    counts = class_totals(answers)
    label = settle_ties(totals, counts, prior=counts.sum(axis=0))
    known = gold >= 0
    label[known] = gold[known]
    return label


def agreement(answers: AnswerMatrix, label: Codes, empty: float) -> Floats:
    """(A,) share of each annotator's votes that equal `label` (U,); `empty` for annotators without votes."""
    weights = answers.weights
    right = annotator_totals(answers, weights * (answers.label == label[answers.unit]))
    total = annotator_totals(answers)
    return np.where(total > 0, right / np.where(total > 0, total, 1.0), empty)


def shares(totals: Floats) -> Floats:
    """(U, C) totals as distributions; units without weight get the overall one."""
    overall = totals.sum(axis=0)
    overall = overall / overall.sum() if overall.sum() > 0 else np.full(totals.shape[1], 1.0 / totals.shape[1])
    sums = totals.sum(axis=1, keepdims=True)
    return np.where(sums > 0, totals / np.where(sums > 0, sums, 1.0), overall)
