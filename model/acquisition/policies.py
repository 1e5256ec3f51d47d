"""The policies that value one gap at a time; formulas in the class docstrings, all in docs/acquisition.md.

q is the consensus of the unit (U, C), p what the annotator is predicted to say, J their joint (see `joint`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from model.acquisition.base import Floats, Policy, Situation, TaskPolicy
from model.acquisition.joint import entropy, joint
from model.acquisition.lookahead import expected_rise

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Random(Policy):
    """Any gap, all alike: what every other policy is measured against."""

    name: ClassVar[str] = "random"
    reason: ClassVar[str] = "Drawn at random among the votes that are missing."
    stochastic: ClassVar[bool] = True
    again: ClassVar[float] = 1.0
    seed: int = 0

    def _gains(self, situation: Situation, unit: Rows, annotator: Rows) -> Floats:
        chunk = (int(unit[0]), int(annotator[0])) if len(unit) else ()
        return np.random.default_rng((self.seed, *chunk)).random(len(unit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty(TaskPolicy):
    """H(q): the entropy of the consensus, in nats. Annotators take turns. The usual baseline."""

    name: ClassVar[str] = "uncertainty"
    reason: ClassVar[str] = "The consensus of this task is uncertain: its likeliest label has {confidence:.0%}."

    def _gains(self, situation: Situation, unit: Rows, annotator: Rows) -> Floats:
        return entropy(situation.consensus)[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement(TaskPolicy):
    """1 - sum_c m_c^2, m the mean of votes and predicted votes of the panel: how often two of them disagree."""

    name: ClassVar[str] = "disagreement"
    reason: ClassVar[str] = "Annotators are divided on this task: two of them would disagree in {gain:.0%} of cases."

    def _gains(self, situation: Situation, unit: Rows, annotator: Rows) -> Floats:
        classes = situation.consensus.shape[1]
        counts = np.stack([(situation.given == k).sum(axis=1) for k in range(classes)], axis=1)  # (U, C)
        counted = situation.open[..., None]
        panel = counts + np.where(counted, situation.probabilities, 0.0).sum(axis=1)
        mean = panel / np.maximum(panel.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(1.0 - np.square(mean).sum(axis=1))[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedChange(Policy):
    """max_m (E max_k P(k | m votes like this one) - max_k q_k) / m: how much likelier the consensus is to be right
    then, for each vote (see `lookahead`). Next to nothing where no votes looked ahead would change the label."""

    name: ClassVar[str] = "expected-change"
    reason: ClassVar[str] = (
        "Such a vote is expected to raise the consensus' confidence, {confidence:.0%} today, by {points:.1f} points."
    )
    ahead: tuple[int, ...] = (1, 3)  # votes looked ahead; one alone may not overturn anything where three can

    def _gains(self, situation: Situation, unit: Rows, annotator: Rows) -> Floats:
        return expected_rise(joint(situation, unit, annotator), self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bald(Policy):
    """Mutual information in nats of the vote and the consensus, sum J log(J / q p); with a committee, of the vote and
    which member is right, H(mean_m p_m) - mean_m H(p_m)."""

    name: ClassVar[str] = "bald"
    reason: ClassVar[str] = "This annotator's vote says most about the consensus, which has {confidence:.0%} today."

    def _gains(self, situation: Situation, unit: Rows, annotator: Rows) -> Floats:
        if situation.committee is not None:
            members = situation.committee[:, unit, annotator].astype(np.float64)
            return np.asarray(entropy(members.mean(axis=0)) - entropy(members).mean(axis=0))
        table = joint(situation, unit, annotator)
        independent = table.sum(axis=2, keepdims=True) * table.sum(axis=1, keepdims=True)
        return np.asarray((table * np.log(table / independent)).sum(axis=(1, 2)))
