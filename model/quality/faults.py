"""Four faults of annotators, told apart by comparing explanations of their votes.

    sound    : p(l) = alpha * (belief @ P)[l] + (1 - alpha) * q[l], alpha in [0.3, 1], mostly near 1
    spammer  : the same with alpha in [0, 0.1]: answers do not depend on the truth
    inverter : the same as sound with the columns of P permuted: knows the classes, names them wrongly (in part, too);
               only if right less often than by chance, or than under their own naming, beyond chance
    drifter  : sound up to some vote, alpha lower by 0.4 or more after it
    constant : one class takes nearly all votes, far more often than the units explain (a binomial test)

`belief` is what the *other* votes say of a unit, P the pooled confusion matrix of the better half of the annotators,
q the annotator's own answer frequencies. Each explanation is averaged over alpha (and the change point), so that a
richer one has to earn its freedom; a fault has prior `prior`, and few votes accuse nobody.

One annotator gets one fault: a constant answerer is also a spammer, and is called constant.

Shape legend: A annotators, C classes, N votes, G values of alpha. Logs are natural.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import betainc, gammaln, logsumexp

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import posterior_without
from model.quality.annotators import Against, against_belief

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_ALPHA = np.linspace(0.0, 1.0, 11)
_SOUND = np.where(_ALPHA >= 0.25, _ALPHA**3, 0.0)  # weights of alpha: sound annotators are mostly near the usual
_SOUND /= _SOUND.sum()
_RENAMED = np.where(_ALPHA >= 0.15, 1.0 / np.maximum(_ALPHA, 0.1), 0.0)  # many confuse the names only in part
_RENAMED /= _RENAMED.sum()
_SPAM = np.where(_ALPHA <= 0.15, 1.0, 0.0) / 2.0
_LOSS = 0.4  # a drifter's alpha falls by at least this much
_BELOW, _MISNAMED = 2.0, 3.0  # standard errors; the second bar is for the best of C! namings, so it is higher
_CHANGES = 40  # change points that are tried


class Fault(StrEnum):
    """What is wrong with an annotator."""

    NONE = "none"
    CONSTANT = "constant"
    INVERTER = "inverter"
    DRIFTER = "drifter"
    SPAMMER = "spammer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """The fault of every annotator, with what led to it."""

    annotators: tuple[str, ...]
    fault: tuple[Fault, ...]  # (A,)
    probability: dict[Fault, Floats]  # (A,) each, of NONE, INVERTER, DRIFTER and SPAMMER; they sum to one
    against: Against  # measured against the others
    top_class: NDArray[np.int64]  # (A,) the class given most often
    top_share: Floats  # (A,) its share of the annotator's votes; NaN without votes
    expected_share: Floats  # (A,) its share if they answered as annotators usually do on these units
    belief: Floats  # (N, C) what is thought of each vote's unit without the vote
    fitted: Aggregate

    def of(self, fault: Fault) -> list[str]:
        """Ids of the annotators with this fault."""
        return [name for name, found in zip(self.annotators, self.fault, strict=True) if found is fault]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFinder:
    """Runs an aggregator and compares the explanations."""

    method: Aggregator = field(default_factory=DawidSkene)
    prior: float = 0.05  # of each fault
    constant_share: float = 0.9  # of a constant answerer's votes, at least
    level: float = 0.01  # chance that a flawless project accuses anybody of constant answers

    def find(self, answers: AnswerMatrix) -> Findings:
        """Faults of all annotators; drift only when the answers carry times."""
        n_annotators, n_classes = len(answers.annotators), len(answers.classes)
        fitted = self.method.fit(answers)
        belief = np.empty((0, n_classes))
        if len(answers):
            belief = posterior_without(self.method, answers, fitted)
        against = against_belief(answers, belief)
        top, share, expected, constant = self._constant(against)
        log_odds = np.zeros((n_annotators, 4))
        if len(answers) and n_classes > 1:
            log_odds = _evidence(answers, belief, against)
        log_odds += np.log([1.0 - 3.0 * self.prior, self.prior, self.prior, self.prior])
        p = np.exp(log_odds - logsumexp(log_odds, axis=1, keepdims=True))
        kinds = (Fault.NONE, Fault.INVERTER, Fault.DRIFTER, Fault.SPAMMER)
        best = [kinds[int(row.argmax())] for row in p]
        for a in np.flatnonzero(constant):  # somebody careful may rarely say "yes" and mean it: they stay sound
            if best[a] in (Fault.SPAMMER, Fault.INVERTER):
                best[a] = Fault.CONSTANT
        return Findings(
            annotators=answers.annotators, fault=tuple(best), against=against, belief=belief, fitted=fitted,
            top_class=top, top_share=share, expected_share=expected,
            probability={kind: p[:, i] for i, kind in enumerate(kinds)},
        )

    def _constant(self, against: Against) -> tuple[NDArray[np.int64], Floats, Floats, Flags]:
        """Most frequent answer, its share, the share to expect, and whether that is a constant answerer."""
        table = against.table  # (A, believed, given)
        n = table.sum(axis=(1, 2))
        if table.shape[1] < 2:
            nothing = np.full(len(table), np.nan)
            return np.zeros(len(table), np.int64), nothing, nothing, np.zeros(len(table), np.bool_)
        given = table.sum(axis=1)  # (A, C)
        top, every = given.argmax(axis=1), np.arange(len(table))
        share = np.where(n > 0, given[every, top] / np.maximum(n, 1e-300), np.nan)
        pooled = table.sum(axis=0) + 1e-9
        pooled /= pooled.sum(axis=1, keepdims=True)
        units = table.sum(axis=2) / np.maximum(n, 1e-300)[:, None]  # (A, C) what their units are
        expected = np.where(n > 0, (units * pooled[:, top].T).sum(axis=1), np.nan)
        count = np.maximum(given[every, top], 1.0)
        chance = np.clip(np.nan_to_num(expected), 1e-6, 1.0 - 1e-6)
        tail = betainc(count, np.maximum(n - count, 0.0) + 1.0, chance)  # binomial P(X >= count)
        found: Flags = (n > 0) & (np.nan_to_num(share) >= self.constant_share) & (tail < self.level / len(table))
        return top, share, expected, found


def reference_confusion(against: Against) -> Floats:
    """(C, C) [believed, given] of the annotators whose kappa is at least the median: what sound votes look like."""
    table = against.table
    kappa = np.nan_to_num(against.kappa, nan=-np.inf)
    known = np.isfinite(against.kappa)
    good = known & (kappa >= np.median(kappa[known])) if known.any() else np.ones(len(table), dtype=np.bool_)
    pooled = table[good].sum(axis=0) + 0.5 * np.eye(table.shape[1]) + 0.1
    shares: Floats = pooled / pooled.sum(axis=1, keepdims=True)
    return shares


def _evidence(answers: AnswerMatrix, belief: Floats, against: Against) -> Floats:
    """(A, 4) log evidence of: sound, inverter, drifter, spammer."""
    _, n_annotators, n_classes = answers.shape
    usual = reference_confusion(against)
    given = against.table.sum(axis=1)  # (A, C)
    overall = given.sum(axis=0) / max(given.sum(), 1e-300)
    habit = (given + 2.0 * overall) / (given.sum(axis=1, keepdims=True) + 2.0)
    rows = np.lexsort((answers.unit, answers.time, answers.annotator)) if answers.time is not None else (
        np.argsort(answers.annotator, kind="stable")
    )
    who, label = answers.annotator[rows], answers.label[rows]
    expected = belief[rows] @ usual  # (N, C)
    q = habit[who, label]
    weight = answers.weights[rows]
    n = np.bincount(who, minlength=n_annotators)
    first = np.cumsum(n) - n
    sound = _log_mixture(expected[np.arange(len(rows)), label], q, weight)  # (N, G)
    total = _per_annotator(sound, who, n_annotators)  # (A, G)
    mapping = _best_mapping(against.table)  # (A, C) what the annotator calls each class
    evidence = np.full((n_annotators, 4), -np.inf)
    evidence[:, 0], evidence[:, 3] = _average(total, _SOUND), _average(total, _SPAM)
    below = np.nan_to_num(against.kappa) < -_BELOW * against.kappa_se if n_classes == 2 else _misnamed(against, mapping)
    below &= (mapping != np.arange(n_classes)).any(axis=1)
    if below.any():
        theirs = np.flatnonzero(below[who])
        renamed = np.argsort(mapping, axis=1)[who[theirs], label[theirs]]  # the class that seems to have been meant
        inverted = _log_mixture(expected[theirs, renamed], q[theirs], weight[theirs])
        others = np.log(np.expm1(gammaln(n_classes + 1)))  # it is one of C! - 1 other namings
        evidence[below, 1] = _average(_per_annotator(inverted, who[theirs], n_annotators)[below], _RENAMED) - others
    if answers.time is not None:
        for a in np.flatnonzero(n > 1):
            evidence[a, 2] = _change_evidence(sound[first[a] : first[a] + n[a]])
    evidence[n == 0] = [0.0, -np.inf, -np.inf, -np.inf]
    return evidence


def _misnamed(against: Against, mapping: NDArray[np.int64]) -> Flags:
    """(A,) whether the annotator's answers fit their own naming of the classes better than the common one.

    By three standard errors of the difference. With two classes that is kappa below zero; with more, somebody may name
    most classes wrongly and still not be worse than chance.
    """
    table = against.table
    fits = np.take_along_axis(table, mapping[:, :, None], axis=2)[:, :, 0].sum(axis=1)
    right = np.trace(table, axis1=1, axis2=2)
    misnamed: Flags = fits - right > _MISNAMED * np.sqrt(fits + right)
    return misnamed


def _log_mixture(expected: Floats, habit: Floats, weight: Floats) -> Floats:
    """(N, G) weighted log of alpha * expected + (1 - alpha) * habit."""
    mixed = _ALPHA * expected[:, None] + (1.0 - _ALPHA) * habit[:, None]
    return weight[:, None] * np.log(np.maximum(mixed, 1e-12))


def _per_annotator(votes: Floats, who: NDArray[np.int32], n_annotators: int) -> Floats:
    columns = [np.bincount(who, votes[:, g], minlength=n_annotators) for g in range(votes.shape[1])]
    return np.stack(columns, axis=1).astype(np.float64)


def _average(log_evidence: Floats, weight: Floats) -> Floats:
    """(A,) log of the weighted mean evidence over alpha."""
    return np.asarray(logsumexp(log_evidence, axis=1, b=weight))


def _best_mapping(table: Floats) -> NDArray[np.int64]:
    """(A, C) the class name that each annotator uses for each class: the assignment that most votes fit."""
    mapping = np.tile(np.arange(table.shape[1]), (len(table), 1))
    # Only where the diagonal is not each row's maximum anyway can another assignment be better.
    for a in np.flatnonzero((np.diagonal(table, axis1=1, axis2=2) < table.max(axis=2)).any(axis=1)):
        mapping[a] = linear_sum_assignment(-table[a])[1]
    return mapping


def _change_evidence(votes: Floats) -> float:
    """Log evidence of one fall of alpha at an unknown vote; `votes` (n, G) are one annotator's, in order of time."""
    n = len(votes)
    before = np.cumsum(votes, axis=0)
    cuts = np.unique(np.linspace(0.1 * n, 0.9 * n, min(_CHANGES, n)).astype(np.int64))
    cuts = cuts[(cuts > 0) & (cuts < n)]
    if not len(cuts):
        return -np.inf
    early = before[cuts - 1]  # (T, G)
    late = before[-1] - early
    falls = _ALPHA[:, None] - _ALPHA[None, :] >= _LOSS - 1e-9  # (G before, G after)
    weight = _SOUND[:, None] * falls / np.maximum(falls.sum(axis=1, keepdims=True), 1)
    both = early[:, :, None] + late[:, None, :]
    top = float(both.max())  # scipy's logsumexp takes most of its time to look at its arguments
    return top + float(np.log((np.exp(both - top) * weight).sum() / (weight.sum() * len(cuts))))
