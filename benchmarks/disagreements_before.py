"""The rule for causes that Polyvox had before, kept as the baseline of `benchmarks.disagreements`.

It asks of a whole unit whether one class or two readings explain its votes, and calls everything else errors:

    one class : sum_k rho_k prod_a pi_a[k, l_a]
    two       : mean_x prod_a (x pi_a[j, l_a] + (1 - x) pi_a[k, l_a]) / (C choose 2)

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate
from model.crowd.dawid_skene import DawidSkene
from model.crowd.sums import class_totals, unit_totals

Floats = NDArray[np.float64]
NAMES = ("agreed", "two readings", "errors", "unclear")
_MIXES = np.array([0.2, 0.35, 0.5, 0.65, 0.8])
_PRIOR, _STRENGTH, _ROUNDS = 0.1, 20.0, 10


def named_before(answers: AnswerMatrix, fitted: Aggregate) -> NDArray[np.int64]:
    """(U,) codes into NAMES."""
    p = _readings(answers, fitted)
    votes = np.diff(answers.indptr)
    equal = class_totals(answers, np.ones(len(answers))).max(axis=1) == votes
    return np.select([votes < 2, equal, p >= 0.5, p < 0.25], [3, 0, 1, 2], default=3)


def _readings(answers: AnswerMatrix, fitted: Aggregate) -> Floats:
    divided, odds = _log_ratio(answers, fitted)
    p = _posterior(answers, divided, odds)
    clear = ~(p >= 0.5)[answers.unit]
    if not clear.all() and clear.any():
        odds = _log_ratio(answers, replace(fitted, confusion=_without(answers, fitted, clear)))[1]
        p = _posterior(answers, divided, odds)
    return p


def _log_ratio(answers: AnswerMatrix, fitted: Aggregate) -> tuple[NDArray[np.bool_], Floats]:
    c = len(answers.classes)
    rows, prior = DawidSkene().evidence(answers, fitted)
    totals = class_totals(answers)
    top = np.argpartition(-totals, 1, axis=1)[:, :2]
    divided = np.take_along_axis(totals, top, axis=1).min(axis=1) > 0
    scores = np.stack([unit_totals(answers, rows[:, k]) for k in range(c)], axis=1) + prior
    part = answers.select(divided[answers.unit])
    p = np.exp(np.take_along_axis(rows[divided[answers.unit]], top[part.unit], axis=1))
    mixed = np.stack([unit_totals(part, np.log(mix * p[:, 0] + (1.0 - mix) * p[:, 1])) for mix in _MIXES])
    double = logsumexp(mixed, axis=0) - np.log(len(_MIXES)) - np.log(c * (c - 1) / 2.0)
    return divided, np.asarray(double - logsumexp(scores, axis=1))


def _posterior(answers: AnswerMatrix, divided: NDArray[np.bool_], log_ratio: Floats) -> Floats:
    several = max(int((np.diff(answers.indptr) > 1).sum()), 1)
    share, p = _PRIOR, np.zeros(len(divided))
    for _ in range(_ROUNDS):
        p = np.where(divided, expit(log_ratio + np.log(share / (1.0 - share))), 0.0)
        share = (float(p.sum()) + _PRIOR * _STRENGTH) / (several + _STRENGTH)
    return p


def _without(answers: AnswerMatrix, fitted: Aggregate, rows: NDArray[np.bool_]) -> Floats:
    n_annotators, c = len(answers.annotators), len(answers.classes)
    part = answers.select(rows)
    counts = np.stack([
        np.bincount(part.key, fitted.posterior[part.unit, k] * part.weights, minlength=n_annotators * c)
        .reshape(n_annotators, c) for k in range(c)
    ], axis=1) + DawidSkene().pseudo_votes(c)
    shares: Floats = counts / counts.sum(axis=2, keepdims=True)
    return shares
