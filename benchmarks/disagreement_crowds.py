"""Simulated projects in which it is known why every vote differs: habits, two readings (by content or chance), slips.

A unit has a class, or with two readings a first and a second one. An annotator reads it, names it by their habit, and
now and then slips:

    reading : the first or the second class; by content, whole camps of annotators side alike; by chance, each anew
    habit   : lenient (k -> k - 1), severe (k -> k + 1) or shifted (one k -> one l), in a share of 0.55 to 0.95
    slip    : any other class, in 3 to 8 % of all votes

The cause of a vote that is not the unit's class is the last of these that changed it. The unit's class is what most of
the panel reads. Seeded.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix

KINDS = ("habits", "camps by content", "camps by chance", "all together")
NONE, HABIT, READINGS, SLIP = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """Votes, and why they are what they are."""

    answers: AnswerMatrix
    cause: NDArray[np.int64]  # (N,) NONE where the vote is the unit's class
    truth: NDArray[np.int64]  # (U,)
    double: NDArray[np.bool_]  # (U,) has two readings


def crowd(seed: int, kind: str, votes: int) -> Crowd:
    """One project of one kind, with so many votes a unit."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    c, people = int(rng.choice([2, 3, 3, 4, 5])), int(rng.integers(max(votes, 5), 13))
    units = int(rng.integers(150, 401))
    share = float(rng.uniform(0.3, 0.45)) if kind in ("habits", "all together") else 0.0
    twofold = 0.0 if kind == "habits" else float(rng.uniform(0.05, 0.15))
    slips = float(rng.uniform(0.03, 0.08))
    first = rng.choice(c, units, p=rng.dirichlet(np.full(c, 8.0)))
    second = (first + rng.integers(1, c, units)) % c
    double = rng.random(units) < twofold
    reads = _readings(rng, kind, first, second, double, people)
    truth = np.where((reads == first[:, None]).mean(axis=1) >= 0.5, first, second)
    named = reads.copy()
    for a in rng.permutation(people)[: round(share * people)]:
        named[:, a] = _habit(rng, reads[:, a], c)
    slipped = rng.random(named.shape) < slips
    label = np.where(slipped, (named + rng.integers(1, c, named.shape)) % c, named)
    cause = np.select([slipped, named != reads, double[:, None]], [SLIP, HABIT, READINGS], NONE)
    cause = np.where(label == truth[:, None], NONE, cause)
    asked = np.argsort(rng.random(named.shape), axis=1) < votes
    unit, annotator = np.nonzero(asked)
    answers = AnswerMatrix.from_codes(
        units=[f"{u:05d}" for u in range(units)], annotators=[f"a{a:02d}" for a in range(people)],
        classes=[f"c{k}" for k in range(c)], unit=unit, annotator=annotator, label=label[unit, annotator],
    )
    return Crowd(answers=answers, cause=cause[unit, annotator], truth=truth, double=double)


def _readings(
    rng: np.random.Generator, kind: str, first: NDArray[np.int64], second: NDArray[np.int64],
    double: NDArray[np.bool_], people: int,
) -> NDArray[np.int64]:
    """(U, A) what each annotator takes each unit for."""
    shape = (len(first), people)
    if kind == "camps by content":
        topics = rng.random((2, people)) < 0.5  # who takes the second reading, on units of each of two topics
        other = topics[rng.integers(2, size=len(first))]
    else:
        other = rng.random(shape) < rng.uniform(0.25, 0.5, len(first))[:, None]
    return np.where(double[:, None] & other, second[:, None], first[:, None])


def _habit(rng: np.random.Generator, reads: NDArray[np.int64], c: int) -> NDArray[np.int64]:
    """(U,) what somebody with a habit calls what they read."""
    kind, rate = int(rng.integers(3)), float(rng.uniform(0.55, 0.95))
    to = np.arange(c)
    if kind == 0:
        to = np.maximum(to - 1, 0)
    elif kind == 1:
        to = np.minimum(to + 1, c - 1)
    else:
        one = int(rng.integers(c))
        to[one] = (one + int(rng.integers(1, c))) % c
    return np.where(rng.random(len(reads)) < rate, to[reads], reads)
