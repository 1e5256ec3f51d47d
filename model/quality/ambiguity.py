"""Is a divided unit ambiguous, or were its annotators careless? Two explanations of its votes are compared.

    one class : sum_k rho_k prod_a pi_a[k, l_a]                        (Dawid-Skene: differences are errors)
    two       : mean_lambda prod_a (lambda pi_a[j, l_a] + (1 - lambda) pi_a[k, l_a]) / (C choose 2)

j and k are the two classes with most votes: everybody reads the unit in one of two ways and errs from there. The ratio
and the share of ambiguous units make a probability; the share is estimated from all units, under a prior of one in ten,
and so that ambiguous units do not pass for errors of their annotators, pi is estimated again without them. A split
among careful annotators speaks for two readings; one of a careless annotator against careful ones does not, and neither
do spammers, whose rows of pi are alike. A unit is called ambiguous rarely without being so; one that few people read
the second way goes unseen.

Camps are the annotators behind each label, weighed by what their votes are worth.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator
from model.crowd.dawid_skene import DawidSkene
from model.crowd.sums import class_totals, unit_totals
from model.quality.annotators import Against

Floats = NDArray[np.float64]
_MIXES = np.array([0.2, 0.35, 0.5, 0.65, 0.8])  # how many read it in the first way
_PRIOR, _STRENGTH = 0.1, 20.0  # share of ambiguous units, and how many units it counts for
_ROUNDS = 10  # of the share; it moves little after a few
_SHRINK = 10.0  # votes before an annotator's kappa is half believed


class Cause(StrEnum):
    """Why the votes on a unit are what they are."""

    AGREED = "agreed"  # all the same
    AMBIGUOUS = "ambiguous"  # careful annotators read it in two ways
    CARELESS = "careless"  # the votes differ by slips and habits
    UNCLEAR = "unclear"  # a single vote, or a difference that fits both


def ambiguity(answers: AnswerMatrix, method: Aggregator, fitted: Aggregate) -> Floats:
    """(U,) probability of two readings; 0 where all votes are equal, NaN without votes.

    Raises ModelError for methods without a likelihood.
    """
    out = np.where(answers.voted, 0.0, np.nan)
    if not len(answers) or len(answers.classes) < 2:
        return out
    divided, odds = _log_ratio(answers, method, fitted)
    p = _posterior(answers, divided, odds)
    clear = ~(p >= 0.5)[answers.unit]
    if not clear.all() and clear.any():
        odds = _log_ratio(answers, method, replace(fitted, confusion=_without(answers, fitted, clear)))[1]
        p = _posterior(answers, divided, odds)
    return np.where(divided, p, out)


def _log_ratio(answers: AnswerMatrix, method: Aggregator, fitted: Aggregate) -> tuple[NDArray[np.bool_], Floats]:
    """(U,) which units have two classes among their votes, and (U,) log evidence of two readings over one class."""
    n_classes = len(answers.classes)
    rows, prior = method.evidence(answers, fitted)  # (N, C)
    totals = class_totals(answers)
    top = np.argpartition(-totals, 1, axis=1)[:, :2]  # (U, 2)
    divided = np.take_along_axis(totals, top, axis=1).min(axis=1) > 0
    scores = np.stack([unit_totals(answers, rows[:, k]) for k in range(n_classes)], axis=1) + prior
    mine = divided[answers.unit]
    part = answers.select(mine)
    p = np.exp(np.take_along_axis(rows[mine], top[part.unit], axis=1))  # (n, 2)
    mixed = np.stack([unit_totals(part, np.log(mix * p[:, 0] + (1.0 - mix) * p[:, 1])) for mix in _MIXES])
    double = logsumexp(mixed, axis=0) - np.log(len(_MIXES)) - np.log(n_classes * (n_classes - 1) / 2.0)
    return divided, np.asarray(double - logsumexp(scores, axis=1))


def _posterior(answers: AnswerMatrix, divided: NDArray[np.bool_], log_ratio: Floats) -> Floats:
    """(U,) probability of two readings, with the share of such units among those with two votes or more."""
    several = max(int((np.diff(answers.indptr) > 1).sum()), 1)
    share, p = _PRIOR, np.zeros(len(divided))
    for _ in range(_ROUNDS):
        p = np.where(divided, expit(log_ratio + np.log(share / (1.0 - share))), 0.0)
        share = (float(p.sum()) + _PRIOR * _STRENGTH) / (several + _STRENGTH)
    return p


def _without(answers: AnswerMatrix, fitted: Aggregate, rows: NDArray[np.bool_]) -> Floats:
    """(A, C, C) confusions from the chosen votes (N,) alone, at the fitted posteriors; trust as in Dawid-Skene."""
    n_annotators, n_classes = len(answers.annotators), len(answers.classes)
    part = answers.select(rows)
    counts = np.stack([
        np.bincount(part.key, fitted.posterior[part.unit, k] * part.weights, minlength=n_annotators * n_classes)
        .reshape(n_annotators, n_classes) for k in range(n_classes)
    ], axis=1) + DawidSkene().pseudo_votes(n_classes)  # [annotator, true, given]
    shares: Floats = counts / counts.sum(axis=2, keepdims=True)
    return shares


def causes(answers: AnswerMatrix, ambiguous: Floats, *, sure: float = 0.5) -> list[Cause]:
    """One for each unit (U,); units without votes are unclear. Careless is said below half of `sure`."""
    votes = np.diff(answers.indptr)
    ones = class_totals(answers, np.ones(len(answers)))
    equal = ones.max(axis=1, initial=0.0) == votes
    kinds = np.select(
        [votes < 2, equal, ambiguous >= sure, ambiguous < sure / 2.0],
        [3, 0, 1, 2], default=3,
    )
    names = (Cause.AGREED, Cause.AMBIGUOUS, Cause.CARELESS, Cause.UNCLEAR)
    return [names[kind] for kind in kinds.tolist()]


def worth(against: Against) -> Floats:
    """(A,) what a vote of each annotator counts: kappa against the others, shrunk to 0 and never below it."""
    votes = against.table.sum(axis=(1, 2))
    return np.asarray(np.maximum(np.nan_to_num(against.kappa), 0.0) * votes / (votes + _SHRINK))


def division(answers: AnswerMatrix, value: Floats) -> Floats:
    """(U,) weight of the second heaviest camp, with the votes' worth (A,): so much would have to be wrong."""
    if len(answers.classes) < 2:
        return np.zeros(len(answers.units))
    camps = class_totals(answers, value[answers.annotator])
    return np.asarray(np.partition(camps, -2, axis=1)[:, -2])
