"""GLAD (Whitehill et al. 2009): annotators have an ability, units a difficulty, errors are spread evenly.

    p(l = k | k) = sigmoid(alpha_a * beta_u),  beta_u = exp(b_u) > 0 (large: easy)
    objective    = log p(votes) + log N(alpha; mean, sd) + log N(b; mean, sd) + smoothing_prior * sum log rho

Vectorised EM. The M step climbs by one Newton step for all annotators, then one Fisher step for all units: given the
other side, each ability and each difficulty has a one-dimensional problem of its own. A step that would lower its own
part of the objective is halved until it does not, so the objective never falls.

Shape legend: U units, A annotators, C classes, N votes. With t the posterior of a vote's class and z = alpha * beta,
a vote adds t * z - softplus(z) to the M step's target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.dawid_skene import log_shares, start_posterior
from model.crowd.sums import Floats, annotator_totals, at_label, class_totals, safe_log, unit_totals

_HALVINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Glad(Aggregator):
    """GLAD by vectorised EM; `skill` is alpha, `difficulty` is 1 / beta."""

    name: ClassVar[str] = "glad"
    ability_mean: float = 1.0
    ability_sd: float = 1.0
    ease_mean: float = 1.0  # of b = log beta
    ease_sd: float = 1.0
    estimate_prior: bool = False  # False: classes are equally likely beforehand, as in the paper
    smoothing_prior: float = 1.0  # pseudo-units in every class when the prior is estimated
    steps: int = 2  # rounds of (abilities, difficulties) in an M step
    max_iter: int = 200
    tol: float = 1e-6

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        n_units, n_annotators, n_classes = answers.shape
        alpha, b = np.full(n_annotators, self.ability_mean), np.full(n_units, self.ease_mean)
        log_prior, voted = np.full(n_classes, -np.log(n_classes)), answers.voted
        if self.estimate_prior:
            log_prior = log_shares(start_posterior(answers, gold)[voted].sum(axis=0), self.smoothing_prior)
        log_others = np.log(max(n_classes - 1, 1))
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        weights = answers.weights
        at = _votes(alpha[answers.annotator] * np.exp(b)[answers.unit])
        while True:
            posterior = class_totals(answers, weights * (at.z + log_others)) + log_prior
            likelihood = float(posterior_from(posterior, gold)[voted].sum())
            likelihood -= float(weights @ (at.softplus + log_others))
            penalty = float(self._ability_prior(alpha).sum() + self._ease_prior(b).sum())
            if self.estimate_prior:
                penalty += self.smoothing_prior * float(log_prior.sum())
            if trace.stop(likelihood + penalty):
                break
            target = at_label(answers, posterior)
            for _ in range(self.steps):
                alpha, at = self._move_abilities(answers, weights, target, alpha, np.exp(b)[answers.unit], at)
                b, at = self._move_difficulties(answers, weights, target, alpha, b, at)
            if self.estimate_prior:
                log_prior = log_shares(posterior[voted].sum(axis=0), self.smoothing_prior)
        return Estimate(
            posterior=posterior, skill=alpha, difficulty=np.exp(-b), objective=tuple(trace.values),
            parameters={"prior": np.exp(log_prior)}, converged=trace.converged,
        )

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        assert fitted.skill is not None and fitted.difficulty is not None
        n_classes = len(answers.classes)
        z = fitted.skill[answers.annotator] / fitted.difficulty[answers.unit]
        wrong = -softplus(z) - np.log(max(n_classes - 1, 1))
        rows = np.repeat(wrong[:, None], n_classes, axis=1)
        rows[np.arange(len(answers)), answers.label] = z - softplus(z)
        return rows * answers.weights[:, None], safe_log(fitted.parameters["prior"])

    def _ability_prior(self, alpha: Floats) -> Floats:
        prior: Floats = -0.5 * ((alpha - self.ability_mean) / self.ability_sd) ** 2
        return prior

    def _ease_prior(self, b: Floats) -> Floats:
        prior: Floats = -0.5 * ((b - self.ease_mean) / self.ease_sd) ** 2
        return prior

    def _move_abilities(
        self, answers: AnswerMatrix, weights: Floats, target: Floats, alpha: Floats, ease: Floats, at: _Votes
    ) -> tuple[Floats, _Votes]:
        """A Newton step in every ability (A,), given beta of each vote (N,); each one's problem is concave.

        What the votes are like at the old abilities comes in, and at the new ones goes out.
        """
        p = at.sigmoid
        gradient = annotator_totals(answers, weights * (target - p) * ease)
        gradient -= (alpha - self.ability_mean) / self.ability_sd**2
        curvature = annotator_totals(answers, weights * p * (1.0 - p) * ease**2) + 1.0 / self.ability_sd**2
        old = annotator_totals(answers, weights * (target * at.z - at.softplus)) + self._ability_prior(alpha)
        step = np.clip(gradient / curvature, -4.0, 4.0)
        for _ in range(_HALVINGS):
            moved = alpha + step
            at = _votes(moved[answers.annotator] * ease)
            new = annotator_totals(answers, weights * (target * at.z - at.softplus)) + self._ability_prior(moved)
            worse = new < old
            if not worse.any():
                return moved, at
            step = np.where(worse, step * 0.25, step)
        moved = np.where(worse, alpha, moved)
        return moved, _votes(moved[answers.annotator] * ease)

    def _move_difficulties(
        self, answers: AnswerMatrix, weights: Floats, target: Floats, alpha: Floats, b: Floats, at: _Votes
    ) -> tuple[Floats, _Votes]:
        """A Fisher step in every b (U,), given the abilities (A,)."""
        ability = alpha[answers.annotator]
        p, z = at.sigmoid, at.z
        gradient = unit_totals(answers, weights * (target - p) * z) - (b - self.ease_mean) / self.ease_sd**2
        curvature = unit_totals(answers, weights * p * (1.0 - p) * z**2) + 1.0 / self.ease_sd**2
        old = unit_totals(answers, weights * (target * z - at.softplus)) + self._ease_prior(b)
        step = np.clip(gradient / curvature, -2.0, 2.0)
        for _ in range(_HALVINGS):
            moved = b + step
            at = _votes(ability * np.exp(moved)[answers.unit])
            new = unit_totals(answers, weights * (target * at.z - at.softplus)) + self._ease_prior(moved)
            worse = new < old
            if not worse.any():
                return moved, at
            step = np.where(worse, step * 0.25, step)
        moved = np.where(worse, b, moved)
        return moved, _votes(ability * np.exp(moved)[answers.unit])


def softplus(z: Floats) -> Floats:
    """log(1 + exp(z)) without overflow."""
    soft: Floats = np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0)
    return soft


class _Votes(NamedTuple):
    """Of each vote (N,)."""

    z: Floats
    sigmoid: Floats
    softplus: Floats


def _votes(z: Floats) -> _Votes:
    return _Votes(z, *sigmoid_softplus(z))


def sigmoid_softplus(z: Floats) -> tuple[Floats, Floats]:
    """Both from one exponential."""
    e = np.exp(-np.abs(z))
    p = np.where(z >= 0, 1.0, e) / (1.0 + e)
    return p, np.log1p(e) + np.maximum(z, 0.0)
