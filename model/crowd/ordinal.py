"""Dawid-Skene for ordered classes: an annotator has a bias, a spread and a lapse rate instead of C * C free numbers.

    pi_a[k, l] = (1 - lapse) * softmax_l(-(l - k - bias)^2 / (2 spread^2)) + lapse / C

The M step looks (bias, spread, lapse) up on a grid: the expected votes times the grid's log tables is one matrix
product, and its row maximum is the exact optimum on the grid, so the penalised likelihood never falls.

Shape legend: U units, A annotators, C classes in order, Q grid points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.dawid_skene import confusion_evidence, log_shares, start_posterior
from model.crowd.sums import Floats, VoteBlocks

_SPREADS = (0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0)
_LAPSES = (0.01, 0.03, 0.1, 0.25, 0.5, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalDawidSkene(Aggregator):
    """`classes` of the answers must stand in their order. `parameters`: bias, spread, lapse (A,) and prior (C,)."""

    name: ClassVar[str] = "ordinal-dawid-skene"
    needs_confusions: ClassVar[bool] = True
    bias_sd: float = 1.0  # of the normal prior on the bias, in classes
    lapse_rate: float = 10.0  # of the exponential prior on the lapse
    smoothing_prior: float = 0.5
    max_iter: int = 100
    tol: float = 1e-5

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        _, n_annotators, n_classes = answers.shape
        grid, tables = _grid(n_classes)
        log_grid_prior = -0.5 * (grid[:, 0] / self.bias_sd) ** 2 - self.lapse_rate * grid[:, 2]
        blocks, voted = VoteBlocks(answers), answers.voted
        posterior = start_posterior(answers, gold)
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        while True:
            counts = blocks.transposed(posterior).reshape(n_annotators, n_classes * n_classes)  # (A, given * true)
            picked = (counts @ tables.T + log_grid_prior).argmax(axis=1)  # (A,)
            log_prior = log_shares(posterior[voted].sum(axis=0), self.smoothing_prior)
            posterior = blocks.product(tables[picked].reshape(-1, n_classes)) + log_prior
            likelihood = float(posterior_from(posterior, gold)[voted].sum())
            penalty = float(log_grid_prior[picked].sum()) + self.smoothing_prior * float(log_prior.sum())
            if trace.stop(likelihood + penalty):
                break
        counts = blocks.transposed(posterior)
        confusion = np.exp(tables[picked]).reshape(n_annotators, n_classes, n_classes).transpose(0, 2, 1)
        bias, spread, lapse = grid[picked].T
        return Estimate(
            posterior=posterior, confusion=confusion,
            counts=counts.reshape(n_annotators, n_classes, n_classes).transpose(0, 2, 1),
            skill=np.exp(log_prior) @ np.diagonal(confusion, axis1=1, axis2=2).T,
            parameters={"bias": bias, "spread": spread, "lapse": lapse, "prior": np.exp(log_prior)},
            objective=tuple(trace.values), converged=trace.converged,
        )

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        return confusion_evidence(answers, fitted)


def _grid(n_classes: int) -> tuple[Floats, Floats]:
    """(Q, 3) bias, spread, lapse and (Q, given * true) log tables."""
    reach = min(2.0, n_classes - 1.0)
    biases = np.linspace(-reach, reach, 17)
    grid = np.array([(b, s, e) for b in biases for s in _SPREADS for e in _LAPSES])
    given, true = np.arange(n_classes)[None, :, None], np.arange(n_classes)[None, None, :]
    bias, spread, lapse = (grid[:, i, None, None] for i in range(3))
    density = np.exp(-0.5 * ((given - true - bias) / spread) ** 2) + 1e-300
    density /= density.sum(axis=1, keepdims=True)
    return grid, np.log((1.0 - lapse) * density + lapse / n_classes).reshape(len(grid), -1)
