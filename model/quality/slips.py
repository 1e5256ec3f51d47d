"""Which votes look like slips: not what this annotator would have said of this unit, by all that is known.

    q(l)   ~ p_own(l)^alpha * p_others(l)^beta                 what was to be expected (each blind to the vote itself)
    score  = log eps/(1 - eps) + log (1 - q(given)) / ((C - 1) q(given)) + contradiction + pace

p_own is the out-of-sample prediction of this annotator's own model, p_others what the other votes say through this
annotator's confusion matrix. alpha and beta are fitted by the log-loss of the votes, so that two sources which know the
same are not counted twice and a useless one is ignored. Somebody who answers at random is expected to, and none of
their votes stands out. A slip is a wrong key: any other class, with probability eps.

    contradiction = log (1/2) / (1 - c),  c = how often annotators repeat themselves on near-duplicates: one of the two
                    votes is wrong, and q says which
    pace          = log (.7 + .3 N(z; -2.5, 1) / N(z; 0, 1)),  z from `pace`: some slips are made in haste

The score is a log-odds in nats.

Shape legend: N votes, C classes, P pairs of units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.sums import softmax_rows

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
SLIP_RATE = 0.02  # eps
_FLOOR = 1e-3  # no source is surer than this
_RIDGE = 20.0  # votes behind the weights that are taken before any vote has spoken
_DUPLICATE_STRENGTH = 10.0  # pairs behind `_USUAL`
_USUAL = 0.9  # how often people repeat themselves, before any pair has spoken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slips:
    """How suspicious every vote is, and which part says so; parts are 0 where nothing is known."""

    score: Floats  # (N,) log-odds
    expected: Codes  # (N,) the most probable answer; the given one where nothing speaks against it
    own: Floats  # (N,) nats by which the own model prefers the expected answer
    others: Floats  # (N,) nats by which the other votes do
    contradiction: Floats  # (N,)
    haste: Floats  # (N,)
    duplicate: Codes  # (N,) row of the vote that it contradicts, -1 where there is none
    weights: tuple[float, float]  # alpha, beta


def slips(
    answers: AnswerMatrix, *, own: Floats | None = None, others: Floats | None = None,
    near_duplicates: NDArray[np.integer] | None = None, pace: Floats | None = None,
) -> Slips:
    """Score all votes.

    `own` (N, C): out-of-sample probabilities of each vote's annotator, rows of NaN where there are none; `others`
    (N, C): `VotePredictor.predict_votes`; `near_duplicates` (P, 2): pairs of units;
    `pace` (N,): z, NaN if unknown.
    """
    n, n_classes = len(answers), len(answers.classes)
    nothing, label = np.zeros(n), answers.label.astype(np.int64)
    if n == 0 or n_classes < 2:
        return Slips(
            score=np.full(n, -np.inf), expected=label, own=nothing, others=nothing, contradiction=nothing,
            haste=nothing, duplicate=np.full(n, -1), weights=(0.0, 0.0),
        )
    logs = [_logs(source, n, n_classes) for source in (own, others)]
    weights = _weights(logs, label)
    rows = np.arange(n)
    p = weights[0] * logs[0] + weights[1] * logs[1]
    softmax_rows(p)
    given = np.clip(p[rows, label], 1e-9, 1.0 - 1e-9)
    score = np.log(SLIP_RATE / (1.0 - SLIP_RATE)) + np.log((1.0 - given) / ((n_classes - 1) * given))
    best = p.argmax(axis=1)
    gain = [w * (each[rows, best] - each[rows, label]) for w, each in zip(weights, logs, strict=True)]
    contradiction, duplicate = _contradictions(answers, near_duplicates, given)
    haste = nothing if pace is None else np.where(np.isfinite(pace), _haste(np.nan_to_num(pace)), 0.0)
    return Slips(
        score=score + contradiction + haste, expected=best, own=gain[0], others=gain[1], contradiction=contradiction,
        haste=haste, duplicate=duplicate, weights=weights,
    )


def source_weights(answers: AnswerMatrix, own: Floats | None, others: Floats | None) -> tuple[float, float]:
    """alpha and beta, for sources as in `slips`; what each is worth beside the other."""
    n, n_classes = len(answers), len(answers.classes)
    if n == 0 or n_classes < 2:
        return 0.0, 0.0
    return _weights([_logs(source, n, n_classes) for source in (own, others)], answers.label.astype(np.int64))


def _logs(source: Floats | None, n: int, n_classes: int) -> Floats:
    """(N, C) log-probabilities; zeros, which say nothing, where the source is silent."""
    if source is None:
        return np.zeros((n, n_classes))
    known = np.isfinite(source).all(axis=1, keepdims=True)
    return np.where(known, np.log(np.clip(np.nan_to_num(source), _FLOOR, 1.0)), 0.0)


def _weights(logs: Sequence[Floats], label: Codes) -> tuple[float, float]:
    """alpha and beta by Newton steps on the votes' log-loss, with a prior; never negative, 0 for a silent source."""
    rows = np.arange(len(label))
    there = [bool(each.any()) for each in logs]
    start = np.array([1.0 / max(sum(there), 1) if here else 0.0 for here in there])
    w = start.copy()
    for _ in range(8):
        p = w[0] * logs[0] + w[1] * logs[1]
        softmax_rows(p)
        mean = [np.einsum("nc,nc->n", p, each) for each in logs]
        slope = np.array([
            (m - each[rows, label]).sum() for m, each in zip(mean, logs, strict=True)
        ]) + _RIDGE * (w - start)
        bend = _RIDGE * np.eye(2)
        for i in range(2):
            for j in range(2):
                bend[i, j] += np.einsum("nc,nc,nc->", p, logs[i], logs[j]) - mean[i] @ mean[j]
        step = np.linalg.solve(bend, slope)
        w = np.where(there, np.clip(w - step, 0.0, 3.0), 0.0)
        if np.abs(step).max() < 1e-4:
            break
    return float(w[0]), float(w[1])


def _contradictions(
    answers: AnswerMatrix, near_duplicates: NDArray[np.integer] | None, given: Floats
) -> tuple[Floats, Codes]:
    """(N,) what a differing vote on a near-duplicate adds, and the row of that vote."""
    n = len(answers)
    added, partner = np.zeros(n), np.full(n, -1, dtype=np.int64)
    if near_duplicates is None or not len(near_duplicates):
        return added, partner
    one, other = _same_annotator(answers, np.asarray(near_duplicates, np.int64))
    if not len(one):
        return added, partner
    differ = answers.label[one] != answers.label[other]
    same = (float((~differ).sum()) + _DUPLICATE_STRENGTH * _USUAL) / (len(one) + _DUPLICATE_STRENGTH)
    strength = max(float(np.log(0.5 / max(1.0 - same, 1e-3))), 0.0)
    for mine, theirs in ((one[differ], other[differ]), (other[differ], one[differ])):
        # The less expected of the two votes is the one to look at; the other keeps what it had.
        worse = given[mine] <= given[theirs]
        added[mine[worse]] = strength
        partner[mine] = theirs
    return added, partner


def _same_annotator(answers: AnswerMatrix, pairs: Codes) -> tuple[Codes, Codes]:
    """Rows of the pairs of votes that one annotator gave to both units of a pair."""
    votes = np.diff(answers.indptr)
    left = np.repeat(np.arange(len(pairs)), votes[pairs[:, 0]])
    at = np.arange(len(left)) - np.repeat(np.cumsum(votes[pairs[:, 0]]) - votes[pairs[:, 0]], votes[pairs[:, 0]])
    row = answers.indptr[pairs[left, 0]] + at  # every vote on the first unit of every pair
    key = answers.unit.astype(np.int64) * len(answers.annotators) + answers.annotator  # ascending
    wanted = pairs[left, 1] * len(answers.annotators) + answers.annotator[row]
    place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    found = key[place] == wanted
    return row[found].astype(np.int64), place[found]


def _haste(z: Floats) -> Floats:
    z = np.clip(z, -4.0, 4.0)
    return np.asarray(np.log(0.7 + 0.3 * np.exp(-2.5 * z - 3.125)))
