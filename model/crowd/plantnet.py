"""Pl@ntNet's plurality with confidence (Lefort et al. 2024): experience weighs, and unsure units get no label.

    weight_a = n_a^0.5 - n_a^0.2 + ln 2.1     n_a: how many classes (or units) a has identified on valid units
    valid_u  : sum of weights for the label > 2 and its share > 0.7

Weights and validity are recomputed in turn until no label and no validity changes.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate, Flags
from model.crowd.sums import Floats
from model.crowd.weighted_vote import shares, vote_totals, winners


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantNet(Aggregator):
    """Abstains on units that are not valid; `skill` is the annotator's weight.

    `count="classes"` is the paper's (made for thousands of species); `"units"` suits few classes.
    """

    name: ClassVar[str] = "plantnet"
    count: Literal["classes", "units"] = "classes"
    min_weight: float = 2.0
    min_share: float = 0.7
    growth: float = 0.5
    damping: float = 0.2
    floor: float = math.log(2.1)
    max_iter: int = 20

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        weight = np.full(len(answers.annotators), self.floor)
        history: list[float] = []
        converged = False
        before: Codes | None = None
        while len(history) < self.max_iter and not converged:
            totals = vote_totals(answers, weight)
            label = winners(answers, totals, gold)
            label[~self._valid(totals, label) & (gold < 0)] = -1
            history.append(float(np.mean(label >= 0)))
            converged = before is not None and bool(np.array_equal(before, label))
            before = label
            experience = self._experience(answers, label)
            weight = experience**self.growth - experience**self.damping + self.floor
        return Estimate(
            posterior=shares(totals), label=label, skill=weight, objective=tuple(history), converged=converged
        )

    def _valid(self, totals: Floats, label: Codes) -> Flags:
        chosen = np.take_along_axis(totals, label[:, None].astype(np.int64), axis=1)[:, 0]
        valid: Flags = (chosen > self.min_weight) & (chosen > self.min_share * totals.sum(axis=1))
        return valid

    def _experience(self, answers: AnswerMatrix, label: Codes) -> Floats:
        """(A,) classes, or units, that each annotator got right on valid units."""
        n_classes = len(answers.classes)
        right = answers.label == label[answers.unit]
        counts = np.bincount(answers.key[right], minlength=len(answers.annotators) * n_classes).reshape(-1, n_classes)
        return np.asarray((counts > 0 if self.count == "classes" else counts).sum(axis=1), dtype=np.float64)
