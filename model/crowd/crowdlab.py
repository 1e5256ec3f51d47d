"""CROWDLAB (Goh et al. 2022): a weighted average of a model's probabilities and what the votes say.

    p_u  = (w_M * p_model + sum over votes w_a * p_vote) / (w_M + sum w_a)
    p_vote[l] = P for the class that was given, (1 - P) / (C - 1) for the others
    w_a  = max(1 - (1 - s_a) / (1 - A_MLC), eps)                  s_a: agreement with co-voters
    w_M  = max(1 - (1 - A_M) / (1 - A_MLC), eps) * sqrt(mean votes a unit)

P is the mean agreement of votes with the consensus, A_M the model's and A_MLC that of always naming the most frequent
class; all on units with more than one vote. The consensus before that is the majority, ties to the model.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.majority import settle_ties
from model.crowd.sums import Floats, annotator_totals, at_label, class_totals, normalise_rows, unit_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdLab(Aggregator):
    """Needs `probabilities`. `skill` (A,) is the annotator's quality: how far the ensemble believes their votes."""

    name: ClassVar[str] = "crowdlab"
    needs_probabilities: ClassVar[bool] = True
    floor: float = 1e-3  # eps

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        assert probabilities is not None
        n_classes = len(answers.classes)
        totals = class_totals(answers)
        consensus = settle_ties(totals, probabilities)
        consensus[gold >= 0] = gold[gold >= 0]
        votes = np.diff(answers.indptr)
        shared = votes > 1  # (U,)
        if not shared.any():
            shared = votes > 0  # nobody overlaps: fall back to all units rather than to nothing
        on_shared = shared[answers.unit]
        right = (answers.label == consensus[answers.unit]) & on_shared
        p_vote = _clip(right.sum() / on_shared.sum())
        most = np.bincount(consensus[shared], minlength=n_classes).argmax()
        naive = min(float(np.mean(consensus[shared] == most)), 1.0 - 1e-6)
        model_agrees = float(np.mean(probabilities[shared].argmax(axis=1) == consensus[shared]))
        weight_model = max(1.0 - (1.0 - model_agrees) / (1.0 - naive), self.floor) * np.sqrt(votes[votes > 0].mean())
        agreement = co_agreement(answers, totals, empty=float(p_vote))
        weight = np.maximum(1.0 - (1.0 - agreement) / (1.0 - naive), self.floor)  # (A,)

        per_vote = weight[answers.annotator] * answers.weights
        mass = class_totals(answers, per_vote)
        every = unit_totals(answers, per_vote)
        off = (1.0 - p_vote) / max(n_classes - 1, 1)
        posterior = weight_model * probabilities + mass * (p_vote - off) + every[:, None] * off
        posterior = normalise_rows(posterior, 1.0 / n_classes)
        return Estimate(
            posterior=posterior, skill=self._quality(answers, posterior, agreement, weight, float(weight_model)),
            parameters={"weight": weight, "model_weight": np.array([weight_model]), "agreement": agreement},
        )

    def _quality(
        self, answers: AnswerMatrix, posterior: Floats, agreement: Floats, weight: Floats, weight_model: float
    ) -> Floats:
        """(A,) mean ensemble probability of the annotator's votes, mixed with their agreement with co-voters."""
        total = annotator_totals(answers)
        given = annotator_totals(answers, at_label(answers, posterior) * answers.weights)
        belief = np.where(total > 0, given / np.where(total > 0, total, 1.0), agreement)
        share = weight_model / (weight_model + weight.mean())
        mixed: Floats = share * belief + (1.0 - share) * agreement
        return mixed


def co_agreement(answers: AnswerMatrix, totals: Floats, empty: float) -> Floats:
    """(A,) over the other votes on the same units, how large a share says the same; `empty` without co-voters."""
    weights = answers.weights
    same = at_label(answers, totals) - weights
    others = totals.sum(axis=1)[answers.unit] - weights
    agree, possible = annotator_totals(answers, weights * same), annotator_totals(answers, weights * others)
    return np.where(possible > 1e-12, agree / np.where(possible > 1e-12, possible, 1.0), empty)


def _clip(p: float) -> float:
    return float(min(max(p, 1e-3), 1.0 - 1e-3))
