"""Zero-based skill: weighted majority vote whose weights move towards the agreement with the outcome, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.sums import Floats
from model.crowd.weighted_vote import agreement, shares, vote_totals, winners


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroBasedSkill(Aggregator):
    """`skill` starts at 1 / C and moves by `rate` times its distance to the agreement; the rate halves as it goes."""

    name: ClassVar[str] = "zero-based-skill"
    rate: float = 1.0
    halve_every: int = 20
    max_iter: int = 100
    tol: float = 1e-5

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        start = 1.0 / len(answers.classes)
        skill = np.full(len(answers.annotators), start)
        history: list[float] = []
        converged = False
        rate = self.rate
        label = winners(answers, vote_totals(answers, skill), gold)
        for step in range(1, self.max_iter + 1):
            if step % self.halve_every == 0:
                rate *= 0.5
            moved = skill + rate * (agreement(answers, label, empty=start) - skill)
            change = float(np.abs(moved - skill).max())
            skill = moved
            totals = vote_totals(answers, skill)
            label = winners(answers, totals, gold)
            history.append(float(np.average(answers.label == label[answers.unit], weights=answers.weight)))
            if change < self.tol:
                converged = True
                break
        return Estimate(
            posterior=shares(totals), label=label, skill=skill, objective=tuple(history), converged=converged
        )
