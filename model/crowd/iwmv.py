"""Iterative weighted majority vote (Li & Yu 2014): weigh each annotator by C * accuracy - 1, vote, measure, repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.sums import Floats, class_totals
from model.crowd.weighted_vote import agreement, shares, vote_totals, winners


@dataclass(frozen=True, slots=True, kw_only=True)
class IterativeWeightedVote(Aggregator):
    """Stops when no label changes. `skill` is the agreement with the outcome, `objective` its mean over votes.

    An annotator worse than chance has a negative weight: their vote counts against the class.
    """

    name: ClassVar[str] = "iwmv"
    max_iter: int = 100

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        n_classes = len(answers.classes)
        totals = class_totals(answers)
        label = winners(answers, totals, gold)
        history: list[float] = []
        converged = False
        while len(history) < self.max_iter and not converged:
            skill = agreement(answers, label, empty=1.0 / n_classes)
            totals = vote_totals(answers, n_classes * skill - 1.0)
            before, label = label, winners(answers, totals, gold)
            history.append(float(np.average(answers.label == label[answers.unit], weights=answers.weight)))
            converged = bool(np.array_equal(before, label))
        # A share needs positive weights: votes against a class are votes for each of the others.
        return Estimate(
            posterior=shares(totals - np.minimum(totals.min(axis=1, keepdims=True), 0.0)), label=label, skill=skill,
            objective=tuple(history), converged=converged,
        )
