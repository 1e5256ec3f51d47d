"""MMSR (Ma & Olshevsky 2020): skills from the rank-one structure of pairwise agreement, robust to a few adversaries.

    c_ab = (C / (C - 1)) * agreement_ab - 1 / (C - 1)  is  s_a * s_b  in expectation (one-coin model)
    s_a <- trimmed mean over b of c_ab / s_b: up to F of the values above and F of those below s_a are left out

Labels are then a weighted vote with the log odds that the skills stand for.

Shape legend: A annotators, C classes. Memory is A^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate, posterior_from
from model.crowd.sums import Floats, class_totals
from model.crowd.weighted_vote import agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class Mmsr(Aggregator):
    """`skill` is s in [-1, 1]: 1 always right, 0 chance, below 0 worse than chance."""

    name: ClassVar[str] = "mmsr"
    trim: float = 0.1  # F as a share of an annotator's co-voters
    max_iter: int = 200
    tol: float = 1e-5

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        n_classes = len(answers.classes)
        n_others = max(n_classes - 1, 1)
        covariance, common = pair_covariance(answers)
        first = class_totals(answers).argmax(axis=1).astype(np.int32)
        first[gold >= 0] = gold[gold >= 0]
        start = np.clip((agreement(answers, first, 0.5) * n_classes - 1.0) / n_others, 0.05, 0.99)
        skill, history, converged = self._rank_one(covariance, common, start)
        right = np.clip((skill * n_others + 1.0) / n_classes, 0.005, 0.995)  # (A,) accuracy
        weight = np.log(right) - np.log((1.0 - right) / n_others)
        posterior = class_totals(answers, weight[answers.annotator] * answers.weights)
        posterior_from(posterior, gold)
        return Estimate(
            posterior=posterior, skill=skill, parameters={"accuracy": right}, objective=history, converged=converged
        )

    def _rank_one(self, covariance: Floats, common: Floats, skill: Floats) -> tuple[Floats, tuple[float, ...], bool]:
        """Fixed point of the trimmed means, from `skill` (A,). The history is minus the change of each round."""
        history: list[float] = []
        seen = common > 0
        n_trim = np.floor(self.trim * seen.sum(axis=1)).astype(np.int64)
        for _ in range(self.max_iter):
            divisor = np.where(np.abs(skill) < 0.02, np.where(skill < 0, -0.02, 0.02), skill)
            ratio = np.where(seen, covariance / divisor[None, :], np.nan)  # (A, A)
            weight = np.where(seen, common * divisor[None, :] ** 2, 0.0)  # precise where b is skilled, often met
            below = (ratio < skill[:, None]).sum(axis=1)
            above = (ratio > skill[:, None]).sum(axis=1)
            n_seen = seen.sum(axis=1)
            low, high = np.minimum(n_trim, below), n_seen - np.minimum(n_trim, above)
            ordered = np.sort(ratio, axis=1)  # NaN last
            least = np.take_along_axis(ordered, np.minimum(low, ratio.shape[1] - 1)[:, None], axis=1)
            most = np.take_along_axis(ordered, np.maximum(high - 1, 0)[:, None], axis=1)
            weight = np.where((ratio >= least) & (ratio <= most), weight, 0.0)
            total = weight.sum(axis=1)
            mean = (np.nan_to_num(ratio) * weight).sum(axis=1) / np.where(total > 0, total, 1.0)
            moved = np.where(total > 0, np.clip(0.5 * (mean + skill), -0.99, 0.99), skill)  # damped: no two-cycles
            change = float(np.abs(moved - skill).max())
            skill = moved
            history.append(-change)
            if change < self.tol:
                return skill, tuple(history), True
        return skill, tuple(history), False


def pair_covariance(answers: AnswerMatrix) -> tuple[Floats, Floats]:
    """(A, A) chance-corrected agreement and (A, A) number of common units; the diagonal counts as not seen."""
    n_units, n_annotators, n_classes = answers.shape
    ones = np.ones(len(answers))
    by_cell = sparse.csr_array((ones, (answers.annotator, answers.cell)), shape=(n_annotators, n_units * n_classes))
    by_unit = sparse.csr_array((ones, (answers.annotator, answers.unit)), shape=(n_annotators, n_units))
    same = (by_cell @ by_cell.T).toarray()
    common = (by_unit @ by_unit.T).toarray()
    np.fill_diagonal(common, 0.0)
    n_others = max(n_classes - 1, 1)
    rate = np.divide(same, common, out=np.zeros_like(same), where=common > 0)
    return (n_classes / n_others) * rate - 1.0 / n_others, common
