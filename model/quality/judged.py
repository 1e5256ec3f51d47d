"""One look at everything that votes say of their annotators and units: consensus, faults, surprise, drift, ability.

What `identify` shows of a file and what the statistics of a live project show come from here, so that they agree.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator
from model.crowd.glad import Glad
from model.crowd.leave_one_out import VotePredictor
from model.crowd.room import require_confusions
from model.quality.annotators import Against
from model.quality.drift import Drift
from model.quality.faults import ALPHA, FaultFinder, Findings, Witness
from model.quality.tasks import disagreement_after_bias

GLAD_VOTES = 200_000  # GLAD takes long beyond
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """What was found; None where the method or the votes do not allow it."""

    answers: AnswerMatrix
    faults: Findings
    predicted: Floats | None  # (N, C) how probable each answer of a vote's annotator was, without that vote
    surprise: Floats | None  # (U,) disagreement that habits do not explain
    glad: Aggregate | None

    @property
    def against(self) -> Against:
        """The votes, judged by everybody else."""
        return self.faults.against

    @property
    def drift(self) -> Drift | None:
        """Changes over time, of shared votes; None where the votes have no times."""
        return self.faults.drift

    @property
    def fitted(self) -> Aggregate:
        """The consensus."""
        return self.faults.fitted


def judge(
    answers: AnswerMatrix, method: Aggregator, *, glad: bool = False, witness: Witness | None = None,
    watched: bool = False, share: float = 1.0,
) -> Judged:
    """Run the aggregator and the detectors; GLAD beyond `GLAD_VOTES` only if asked for.

    `watched`: this crowd is judged again and again as it grows; `share` is the part of the chance of a false alarm that
    it may use, where a project has several controls. Raises ModelError when the method has no likelihood, and where the
    tables would not fit into memory.
    """
    require_confusions("judging annotators", len(answers.annotators), len(answers.classes))
    faults = FaultFinder(method=method, watched=watched, alpha=ALPHA * share).find(answers, witness)
    predicted = surprise = None
    if faults.fitted.counts is not None and len(answers):
        predicted = VotePredictor().predict_votes(method, answers, faults.fitted)
        surprise = disagreement_after_bias(answers, faults.fitted, predicted)
    return Judged(
        answers=answers, faults=faults, predicted=predicted, surprise=surprise,
        glad=Glad().fit(answers) if glad or len(answers) <= GLAD_VOTES else None,
    )
