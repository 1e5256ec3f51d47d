"""MACE (Hovy et al. 2013): an annotator either knows (and copies the truth) or spams (answers from a habit of theirs).

    p(l | k) = theta_a * [l = k] + (1 - theta_a) * xi_a[l]

Variational Bayes (default; priors Beta on theta, Dirichlet on xi) or MAP-EM; the objective is the evidence bound or the
penalised likelihood, and the best of several seeded starts is kept. A vote moves only the score of its own class, so an
iteration is linear in votes.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.dawid_skene import start_posterior
from model.crowd.room import confusions_fit
from model.crowd.sums import Floats, annotator_totals, at_label, class_totals, safe_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Mace(Aggregator):
    """MACE; `skill` is theta, the probability of knowing."""

    name: ClassVar[str] = "mace"
    stochastic: ClassVar[bool] = True
    variational: bool = True
    knowing: float = 0.5  # Beta pseudo-counts
    spamming: float = 0.5
    habit: float = 10.0  # Dirichlet pseudo-counts of xi, for each class
    restarts: int = 10  # the first start is the soft vote, the others are random
    seed: int = 0
    max_iter: int = 50
    tol: float = 1e-5

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        rng = np.random.default_rng(self.seed)
        best: Estimate | None = None
        for start in range(max(self.restarts, 1)):
            if start == 0:
                known = 0.5 * at_label(answers, start_posterior(answers, gold))
            else:
                known = rng.random(len(answers.annotators))[answers.annotator] * rng.random(len(answers))
            estimate = self._climb(answers, gold, known)
            if best is None or estimate.objective[-1] > best.objective[-1]:
                best = estimate
        assert best is not None
        return best

    def _climb(self, answers: AnswerMatrix, gold: Codes, known: Floats) -> Estimate:
        """From a first guess of the probability that each vote was given knowingly, (N,)."""
        n_classes = len(answers.classes)
        weights, voted = answers.weights, answers.voted
        key = answers.key
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        while True:
            knew = annotator_totals(answers, weights * known)
            spam = np.bincount(key, weights * (1.0 - known), minlength=len(answers.annotators) * n_classes)
            habits = spam.astype(np.float64, copy=False).reshape(-1, n_classes)
            log_know, log_spam, log_habit, penalty = self._update(knew, habits)
            wrong = (log_spam[:, None] + log_habit).reshape(-1)[key]  # (N,)
            right = np.logaddexp(log_know[answers.annotator], wrong)
            posterior = class_totals(answers, weights * (right - wrong)) - np.log(n_classes)
            bound = float(posterior_from(posterior, gold)[voted].sum()) + float(weights @ wrong)
            if trace.stop(bound + penalty):
                break
            known = at_label(answers, posterior) * np.exp(log_know[answers.annotator] - right)
        theta = np.exp(log_know - np.logaddexp(log_know, log_spam))
        xi = np.exp(log_habit - np.logaddexp.reduce(log_habit, axis=1, keepdims=True))
        confusion = None
        if confusions_fit(len(theta), n_classes):
            confusion = (1.0 - theta)[:, None, None] * xi[:, None, :] + theta[:, None, None] * np.eye(n_classes)
        return Estimate(
            posterior=posterior, confusion=confusion, skill=theta, objective=tuple(trace.values),
            parameters={"habit": xi, "log_know": log_know, "log_wrong": log_spam[:, None] + log_habit},
            converged=trace.converged,
        )

    def _update(self, knew: Floats, habits: Floats) -> tuple[Floats, Floats, Floats, float]:
        """(A,) log know, (A,) log spam, (A, C) log habit, and the prior's part of the objective."""
        a, b, c = self.knowing, self.spamming, self.habit
        spammed = habits.sum(axis=1)
        if not self.variational:
            total = knew + spammed + a + b
            log_know, log_spam = safe_log((knew + a) / total), safe_log((spammed + b) / total)
            log_habit = safe_log((habits + c) / (spammed[:, None] + c * habits.shape[1]))
            penalty = float(a * log_know.sum() + b * log_spam.sum() + c * log_habit.sum())
            return log_know, log_spam, log_habit, penalty
        both = digamma(knew + spammed + a + b)
        log_know, log_spam = digamma(knew + a) - both, digamma(spammed + b) - both
        log_habit = digamma(habits + c) - digamma(spammed + c * habits.shape[1])[:, None]
        theta_kl = _dirichlet_kl(np.stack([knew + a, spammed + b], axis=1), np.array([a, b]))
        return log_know, log_spam, log_habit, -theta_kl - _dirichlet_kl(habits + c, np.full(habits.shape[1], c))

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        n_classes = len(answers.classes)
        wrong = fitted.parameters["log_wrong"].reshape(-1)[answers.key]
        rows = np.repeat(wrong[:, None], n_classes, axis=1)
        know = fitted.parameters["log_know"][answers.annotator]
        rows[np.arange(len(answers)), answers.label] = np.logaddexp(know, wrong)
        return rows * answers.weights[:, None], np.full(n_classes, -np.log(n_classes))


def _dirichlet_kl(q: Floats, p: Floats) -> float:
    """Sum over rows of KL(Dirichlet(q) || Dirichlet(p)); q has shape (A, C), p (C,)."""
    total = q.sum(axis=1)
    kl = gammaln(total) - gammaln(q).sum(axis=1) - gammaln(p.sum()) + gammaln(p).sum()
    kl += ((q - p) * (digamma(q) - digamma(total)[:, None])).sum(axis=1)
    return float(kl.sum())
