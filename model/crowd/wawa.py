"""Wawa, "worker agreement with aggregate": majority vote, weigh annotators by their agreement with it, vote again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.sums import Floats, class_totals
from model.crowd.weighted_vote import agreement, shares, vote_totals, winners


@dataclass(frozen=True, slots=True, kw_only=True)
class Wawa(Aggregator):
    """One round of re-weighting; `skill` is the agreement with the majority."""

    name: ClassVar[str] = "wawa"

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        first = winners(answers, class_totals(answers), gold)
        skill = agreement(answers, first, empty=1.0 / len(answers.classes))
        totals = vote_totals(answers, skill)
        return Estimate(posterior=shares(totals), label=winners(answers, totals, gold), skill=skill)
