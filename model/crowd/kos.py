"""KOS (Karger, Oh, Shah 2014): message passing between units and annotators, for two classes.

    x(u -> a) = sum over the other votes of u of s * y(a' -> u)      s = +1 / -1 for the two classes
    y(a -> u) = sum over the other votes of a of s * x(u' -> a)

Messages are rescaled each round, since only their direction matters. `posterior` is the share of weight on each side,
not a calibrated probability. `skill` is the annotator's mean agreement with the outcome's sign, in [-1, 1].

Shape legend: N votes (two messages each).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregator, Codes, Estimate
from model.crowd.sums import Floats, annotator_totals, unit_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Kos(Aggregator):
    """Binary message passing with a seeded start."""

    name: ClassVar[str] = "kos"
    binary_only: ClassVar[bool] = True
    stochastic: ClassVar[bool] = True
    max_iter: int = 100
    tol: float = 1e-6  # largest change of a rescaled message
    seed: int = 0

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        sign = np.where(answers.label == 0, 1.0, -1.0) * answers.weights
        y = np.random.default_rng(self.seed).normal(1.0, 1.0, len(answers))
        converged = False
        history: list[float] = []  # minus the largest change of a message
        while len(history) < self.max_iter and not converged:
            said = sign * y
            x = unit_totals(answers, said)[answers.unit] - said
            known = gold[answers.unit] >= 0
            x[known] = np.where(gold[answers.unit[known]] == 0, 1.0, -1.0) * max(float(np.abs(x).max(initial=0.0)), 1.0)
            heard = sign * x
            moved = annotator_totals(answers, heard)[answers.annotator] - heard
            scale = float(np.sqrt(np.mean(moved**2)))
            if scale < 1e-12:  # nothing overlaps: every vote speaks for itself
                y, converged = np.ones(len(answers)), True
                break
            moved /= scale
            history.append(-float(np.abs(moved - y).max()))
            converged = -history[-1] < self.tol
            y = moved
        said = sign * y
        total, weight = unit_totals(answers, said), unit_totals(answers, np.abs(said))
        lean = np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), 0.0)  # (U,) in [-1, 1]
        posterior = np.stack([0.5 + 0.5 * lean, 0.5 - 0.5 * lean], axis=1)[:, : len(answers.classes)]
        if len(answers.classes) == 1:
            posterior = np.ones((len(answers.units), 1))
        votes = annotator_totals(answers)
        outcome = np.where(lean >= 0, 1.0, -1.0)
        outcome = np.where(gold >= 0, np.where(gold == 0, 1.0, -1.0), outcome)
        skill = annotator_totals(answers, sign * outcome[answers.unit]) / np.where(votes > 0, votes, 1.0)
        return Estimate(posterior=posterior, skill=skill, objective=tuple(history), converged=converged)
