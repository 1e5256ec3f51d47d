"""Weighted Dawid-Skene: a soft vote in which each vote weighs as much as its annotator is right on that class.

    score_u[l] = sum over votes (u, a, l) of pi_a[l, l], pi from Dawid-Skene
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.dawid_skene import DawidSkene
from model.crowd.sums import Floats, class_totals
from model.crowd.weighted_vote import shares, winners


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedDawidSkene(Aggregator):
    """Keeps the vote's robustness to a wrong noise model; confusions and objective are Dawid-Skene's."""

    name: ClassVar[str] = "weighted-dawid-skene"
    base: DawidSkene = field(default_factory=DawidSkene)

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        fitted = self.base._estimate(answers, gold, probabilities)
        diagonal = fitted.parameters["diagonal"] if fitted.confusion is None else np.diagonal(
            fitted.confusion, axis1=1, axis2=2)  # (A, C)
        totals = class_totals(answers, diagonal[answers.annotator, answers.label] * answers.weights)
        return Estimate(
            posterior=shares(totals), label=winners(answers, totals, gold), confusion=fitted.confusion,
            counts=fitted.counts, skill=fitted.skill, parameters=fitted.parameters, objective=fitted.objective,
            converged=fitted.converged,
        )
