"""One-coin Dawid-Skene: one accuracy per annotator, errors spread evenly over the other classes.

    p(l | k) = p_a if l = k else (1 - p_a) / (C - 1)
    objective = log p(votes) + sum_a [s_r log p_a + s_w log(1 - p_a)] + smoothing_prior * sum log rho

A vote moves only the score of its own class, so an iteration costs N, not N * C.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.dawid_skene import log_shares, start_posterior
from model.crowd.room import confusions_fit
from model.crowd.sums import Floats, annotator_totals, at_label, class_totals, safe_log


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoin(Aggregator):
    """Dawid-Skene with one accuracy per annotator; `skill` is that accuracy."""

    name: ClassVar[str] = "one-coin"
    right: float = 0.01  # pseudo-votes of every annotator that were right
    wrong: float = 0.01  # and wrong
    smoothing_prior: float = 0.01
    max_iter: int = 200
    tol: float = 1e-6

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        n_others = max(len(answers.classes) - 1, 1)
        posterior = start_posterior(answers, gold)
        votes, voted = annotator_totals(answers), answers.voted
        weights = answers.weights
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        while True:
            right = annotator_totals(answers, at_label(answers, posterior) * weights)
            accuracy = self._accuracy(right, votes)
            log_prior = log_shares(posterior[voted].sum(axis=0), self.smoothing_prior)
            log_right, log_wrong = safe_log(accuracy), safe_log((1.0 - accuracy) / n_others)
            posterior = class_totals(answers, (log_right - log_wrong)[answers.annotator] * weights) + log_prior
            likelihood = float(posterior_from(posterior, gold)[voted].sum()) + float(votes @ log_wrong)
            penalty = self.right * log_right.sum() + self.wrong * safe_log(1.0 - accuracy).sum()
            if trace.stop(likelihood + float(penalty) + self.smoothing_prior * float(log_prior.sum())):
                break
        return Estimate(
            posterior=posterior, skill=accuracy,
            confusion=even_confusion(accuracy, len(answers.classes))
            if confusions_fit(len(accuracy), len(answers.classes)) else None,
            parameters={"prior": np.exp(log_prior)}, objective=tuple(trace.values), converged=trace.converged,
        )

    def _accuracy(self, right: Floats, votes: Floats) -> Floats:
        total = votes + self.right + self.wrong
        return np.where(total > 0, (right + self.right) / np.where(total > 0, total, 1.0), 0.5)

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        assert fitted.skill is not None
        n_classes = len(answers.classes)
        log_wrong = safe_log((1.0 - fitted.skill) / max(n_classes - 1, 1))[answers.annotator]
        rows = np.repeat(log_wrong[:, None], n_classes, axis=1)
        rows[np.arange(len(answers)), answers.label] = safe_log(fitted.skill)[answers.annotator]
        return rows * answers.weights[:, None], safe_log(fitted.parameters["prior"])


def even_confusion(accuracy: Floats, n_classes: int) -> Floats:
    """(A, C, C) [annotator, true, given]: accuracy (A,) on the diagonal, the rest shared evenly."""
    if n_classes == 1:
        return np.ones((len(accuracy), 1, 1))
    off = (1.0 - accuracy) / (n_classes - 1)
    confusion = np.repeat(off, n_classes * n_classes).reshape(-1, n_classes, n_classes)
    confusion[:, np.arange(n_classes), np.arange(n_classes)] = accuracy[:, None]
    return confusion
