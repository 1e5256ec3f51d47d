"""Two-third rule (iNaturalist): a label needs at least two votes for it and two thirds of all; else there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.sums import Floats, class_totals
from model.crowd.weighted_vote import shares


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoThird(Aggregator):
    """Abstains below the bar. The posterior is the soft vote."""

    name: ClassVar[str] = "two-third"
    share: float = 2.0 / 3.0
    min_votes: float = 2.0

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        totals = class_totals(answers)
        label = totals.argmax(axis=1).astype(np.int32)
        top, every = totals.max(axis=1), totals.sum(axis=1)
        reached = (top >= self.min_votes - 1e-9) & (top >= self.share * every * (1.0 - 1e-9))
        return Estimate(posterior=shares(totals), label=np.where(reached, label, -1).astype(np.int32))
