"""Several questions that one vote answers: the classes of a control with several choices, or several controls.

    gain(u, a) = sum over questions of gain_q(u, a)

One annotation answers everything on its form at once, so gains of the same policy add up. A control with several
choices is one question of yes or no for each class.

Shape legend: U units, A annotators, C classes, Q questions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.acquisition.base import AcquisitionError, Ask, Flags, Floats, Policy, Situation, TaskPolicy, asks, limits_of
from model.acquisition.greedy import best_pairs, best_units


def of_choices(
    *, probabilities: NDArray[np.floating], chosen: Flags, has: Flags, consensus: NDArray[np.floating],
    may_ask: Flags | None = None,
) -> list[Situation]:
    """One situation for each class of a control with several choices; class 1 of each is yes.

    `probabilities` (U, A, C) that the annotator chooses the class, `chosen` (U, A, C) who did where `has` (U, A),
    `consensus` (U, C) probability that the class is in the consensus.
    """
    return [
        Situation(
            probabilities=_no_and_yes(probabilities[:, :, c]), consensus=_no_and_yes(consensus[:, c]), may_ask=may_ask,
            given=np.where(has, chosen[:, :, c].astype(np.int64), -1),
        )
        for c in range(consensus.shape[1])
    ]


def choose_several(
    policy: Policy, questions: Sequence[Situation], budget: float, *, at_most_per_unit: int = 1, balance: float = 0.0,
    costs: Sequence[float] | NDArray[np.floating] | None = None,
) -> list[Ask]:
    """As `Policy.choose`, for questions about the same units and annotators. Batches are not diversified.

    A gap is one where any question is open. Raises AcquisitionError where the questions do not fit together.
    """
    if len({question.given.shape for question in questions}) != 1:
        raise AcquisitionError("several questions need the same units and annotators, and at least one question")
    scores = np.full(questions[0].given.shape, -np.inf)
    for question in questions:
        found = policy.scores(question)
        scores = np.where(np.isfinite(found), np.where(np.isfinite(scores), scores, 0.0) + found, scores)
    limits = limits_of(np.isfinite(scores).any(axis=0), budget, at_most_per_unit, balance, costs)
    if not isinstance(policy, TaskPolicy):
        return asks(*best_pairs(scores, limits, policy.again))
    earned = np.any([question.given >= 0 for question in questions], axis=0).sum(axis=0) * limits.costs
    reliability = np.mean([question.reliability for question in questions], axis=0)
    return asks(*best_units(scores, earned, reliability, limits, policy.again))


def _no_and_yes(p: NDArray[np.floating]) -> Floats:
    """(..., 2)"""
    return np.stack([1.0 - p, p], axis=-1).astype(np.float64)
