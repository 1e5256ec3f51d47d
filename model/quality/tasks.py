"""How hard or ambiguous a task is, from votes alone. `margins` adds what a classifier's training shows.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate
from model.crowd.glad import Glad
from model.crowd.sums import annotator_totals, class_totals, safe_log, unit_totals

Floats = NDArray[np.float64]


def entropy(answers: AnswerMatrix, *, smoothing: float = 0.0) -> Floats:
    """(U,) entropy of the votes in nats; NaN without votes.

    `smoothing` adds pseudo-votes in the overall class shares, so that one vote is not taken for unanimity.
    """
    totals = class_totals(answers)
    share = totals.sum(axis=0) / max(totals.sum(), 1e-300)
    totals = totals + smoothing * share
    p = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1e-300)
    return np.where(answers.voted, -(p * safe_log(p)).sum(axis=1) + 0.0, np.nan)


def posterior_entropy(fitted: Aggregate) -> Floats:
    """(U,) entropy of an aggregator's posterior in nats; NaN for unlabelled units."""
    p = fitted.posterior
    return np.where(fitted.unlabelled, np.nan, -(p * safe_log(p)).sum(axis=1) + 0.0)


def glad_difficulty(answers: AnswerMatrix, method: Glad | None = None) -> Floats:
    """(U,) GLAD's 1 / beta; NaN without votes."""
    fitted = (method or Glad()).fit(answers)
    if fitted.difficulty is None:
        return np.full(len(answers.units), np.nan)
    return np.where(answers.voted, fitted.difficulty, np.nan)


def disagreement_after_bias(answers: AnswerMatrix, fitted: Aggregate, predicted: Floats) -> Floats:
    """(U,) how much more its votes surprise than votes of the same annotators usually would, in standard errors.

    `predicted` (N, C) is each vote's distribution given the other votes and its annotator's confusion matrix
    (`VotePredictor.predict_votes`). A unit on which a lenient and a strict annotator differ as they always do scores
    about 0; what stays high is disagreement that the annotators' habits do not explain. NaN without votes.
    """
    surprise = -safe_log(predicted[np.arange(len(answers)), answers.label])
    logs = safe_log(predicted)
    expected = -(predicted * logs).sum(axis=1)
    variance = np.maximum((predicted * logs**2).sum(axis=1) - expected**2, 1e-6)
    w = answers.weights
    excess = unit_totals(answers, w * (surprise - expected))
    spread = np.sqrt(unit_totals(answers, w**2 * variance))
    return np.where(answers.voted, excess / np.where(spread > 0, spread, 1.0), np.nan)


def leniency(answers: AnswerMatrix, scores: Floats) -> Floats:
    """(A,) mean over an annotator's votes of the class score (C,) minus the mean of all votes on the same units.

    With scores 0, 1, ... for ordered classes: who is milder or stricter than those who saw the same. NaN without votes.
    """
    given = scores[answers.label]
    votes = np.maximum(np.diff(answers.indptr), 1)
    mean = np.bincount(answers.unit, given, minlength=len(answers.units)) / votes
    n = np.bincount(answers.annotator, minlength=len(answers.annotators))
    gap = annotator_totals(answers, given - mean[answers.unit])
    return np.where(n > 0, gap / np.maximum(n, 1), np.nan)
