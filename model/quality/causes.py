"""Why the votes on a divided unit differ: a habit of one person, two readings of it, a slip, or it cannot be told.

For each vote l of annotator a that is not what its unit is thought to be, four explanations are weighed. All that they
stand on leaves the vote itself out: w, what the unit was meant as given the *other* votes on it, and the annotator's
habits given *their other* votes.

    habit    : sum_k w[k] h_a[k, l]                this person says l of k, more often than the others do (`habits`)
    readings : P(two readings) * share of l  +  sum_k w[k] s[k, l]      s: nearly everybody takes k for l now and then
    slip     : sum_k w[k] e[k, l]                  e: a small rate, spread evenly over the classes
    right    : P(the unit is l)                    then nothing is wrong with this vote, and nothing is said of it

A unit has one class, or two that it can be read as, each by a share of 0.2 to 0.8 of its readers:

    one : rho[k] prod_a M_a[k, l_a]
    two : tau[jk] mean_share prod_a (share M_a[j, l_a] + (1 - share) M_a[k, l_a]),   j, k the classes with most votes

M, rho, tau and the habits are fitted by a few rounds of EM in which every vote is counted by what the other votes say
of its unit. What an annotator's own out-of-sample model expects, as odds against how often they give the label anyway,
multiplies everything that is meant (all but the slip).

A cause is named where its share of the four reaches `BAR`; on units with few votes it takes `OVERWHELMING`. Nothing is
called the habit of somebody who shares few units with others, or who did not do it several times elsewhere; nothing is
called a slip that more than a quarter of the votes on the unit say (`ALIKE`), habits not counted.
benchmarks/disagreements.py measures what that comes to.

Shape legend: U units, A annotators, C classes, N votes, D dissenting votes, S shares of readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.quality.habits import Habits, count, fit_habits
from model.quality.readings import SHARES, Readings, Votes, read

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

BAR = 0.6  # probability that names a cause: three to two
OVERWHELMING = 0.99
ENOUGH_VOTES = 5  # on a unit
ENOUGH_COMMON = 20  # units that an annotator shares with others
SEEN_BEFORE = 2.5  # times that somebody said the same elsewhere: three, since votes are counted by what units may be
ALIKE = 0.25  # of the votes on a unit; one vote is always fewer
_ROUNDS = 8
_LIMIT = 2.3  # nats that an own model may add or take
_BY_CONTENT = 0.01  # prior probability of a habit that only the content shows


class Cause(StrEnum):
    """Why a vote, or the votes on a unit, are what they are."""

    AGREED = "agreed"  # what the unit is thought to be; of a unit: all the same
    HABIT = "habit"  # one person's way of labelling, known from their other votes
    READINGS = "readings"  # the unit can be read in two ways
    SLIP = "slip"  # neither; the others agree, and this person would usually not have said so
    CANNOT_TELL = "cannot-tell"  # too few votes, or more than one explanation fits


CAUSES = tuple(Cause)  # by code
_AGREED, _HABIT, _READINGS, _SLIP, _CANNOT = range(5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Causes:
    """What was found; codes point into `CAUSES`."""

    vote: NDArray[np.int8]  # (N,)
    unit: NDArray[np.int8]  # (U,) the cause that most of its dissenting votes have
    thought: Codes  # (U,) class that the unit is thought to be; -1 without votes
    readings: Floats  # (U,) probability of two readings; 0 where all votes are equal, NaN without votes
    share: Floats  # (N, 3) probability of habit, readings and slip; 0 for votes that do not dissent
    times: Floats  # (N,) how often this annotator said the same elsewhere where the others said `instead`
    of: Floats  # (N,) of how many votes; both NaN for votes that do not dissent
    instead: Codes  # (N,) class that the others' votes on the unit come to, -1 for votes that do not dissent
    divided: Flags  # (U,) not all votes are equal
    slip_rate: float

    def of_unit(self, unit: int) -> Cause:
        """The main cause of a unit."""
        return CAUSES[int(self.unit[unit])]


def causes(
    answers: AnswerMatrix, belief: Floats, *, who: NDArray[np.integer] | None = None, own: Floats | None = None,
    trust: float = 1.0,
) -> Causes:
    """Name the cause of every difference.

    `belief` (N, C): what is thought of each vote's unit without it (`posterior_without`), where the fit starts. `who`
    (N,): whose habit a vote belongs to; the annotator by default, and with several choices the annotator on one class.
    `own` (N, C): out-of-sample probabilities of each vote's annotator, NaN where there are none; `trust` is the power
    that they are worth (`Slips.weights`).
    """
    if not len(answers) or len(answers.classes) < 2:
        return _nothing(answers)
    people = (answers.annotator if who is None else np.asarray(who)).astype(np.int64)
    n_people = int(people.max()) + 1
    votes = Votes.of(answers, people)
    label, weight = answers.label.astype(np.int64), votes.weight
    habits = fit_habits(count(people, label, weight, belief, n_people), None)
    readings = None
    for _ in range(_ROUNDS):
        readings = read(votes, habits.confusion, readings)
        habits = fit_habits(count(people, label, weight, readings.counted, n_people), habits)
    assert readings is not None
    thought = np.where(answers.voted, readings.posterior.argmax(axis=1), -1)
    rows = np.flatnonzero(votes.divided[answers.unit] & (label != thought[answers.unit]))
    differing = _Differing(votes=votes, habits=habits, readings=readings, rows=rows)
    share = differing.shares()
    if own is not None:
        share = _with_own(share, differing, own, trust, n_people)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    times, of, instead = differing.seen()
    code = _named(differing, share, times)
    n = len(answers)
    return Causes(
        vote=_spread(code, rows, n, _AGREED).astype(np.int8), unit=_of_units(votes, readings, rows, code),
        thought=thought, readings=np.where(answers.voted, readings.probability, np.nan),
        share=_spread(share[:, :3], rows, n, 0.0), times=_spread(times, rows, n, np.nan),
        of=_spread(of, rows, n, np.nan), instead=_spread(instead, rows, n, -1).astype(np.int64),
        divided=votes.divided, slip_rate=habits.slip_rate,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Differing:
    """Votes that are not what their unit is thought to be, with all that is known without each."""

    votes: Votes
    habits: Habits
    readings: Readings
    rows: Codes  # (D,)

    @property
    def label(self) -> Codes:
        return self.votes.answers.label[self.rows].astype(np.int64)

    def left(self) -> tuple[Floats, Floats]:
        """(D, C) how often the person said the same where the others say k, and of how many votes, without this."""
        who, own = self.votes.people[self.rows], self.readings.counted[self.rows] * self.votes.weight[self.rows, None]
        counts = self.habits.counts
        said = np.maximum(counts[who, :, self.label] - own, 0.0)
        return said, np.maximum(counts[who].sum(axis=2) - own, said)

    def meant(self) -> Floats:
        """(D, C) what the unit means to others: one class, and each of two readings by its share."""
        meant, two, at = self.readings.one[self.rows].copy(), self._two(), np.arange(len(self.rows))
        pair = self.votes.pair[self.votes.answers.unit[self.rows]]
        meant[at, pair[:, 0]] += two @ SHARES
        meant[at, pair[:, 1]] += two @ (1.0 - SHARES)
        return meant

    def shares(self) -> Floats:
        """(D, 4) how probable the vote is by habit, by two readings, by a slip, and because it is right."""
        label, at, meant, habits = self.label, np.arange(len(self.rows)), self.meant(), self.habits
        said, all_of = self.left()
        usual = np.maximum(habits.usual[:, label].T, 1e-9)  # (D, C)
        sure, more = habits.apart(said, all_of, usual)
        slip = habits.slip[:, label].T
        pair = self.votes.pair[self.votes.answers.unit[self.rows]]
        second = np.where(label[:, None] == pair, self._two() @ np.stack([SHARES, 1.0 - SHARES], axis=1), 0.0)
        keeps = self._keeps(all_of[at, label])
        right = self.readings.one[self.rows][at, label] * keeps
        meant[at, label] = 0.0
        return np.stack([
            (meant * sure * more).sum(axis=1), second.sum(axis=1) * keeps + (meant * (usual - slip)).sum(axis=1),
            (meant * slip).sum(axis=1), right,
        ], axis=1)  # fmt: skip

    def seen(self) -> tuple[Floats, Floats, Codes]:
        """(D,) times that the person said the same where the others say `instead`, of how many votes, and `instead`."""
        said, all_of = self.left()
        meant, at = self.meant(), np.arange(len(self.rows))
        meant[at, self.label] = -1.0
        instead = meant.argmax(axis=1)
        return said[at, instead], all_of[at, instead], instead

    def _two(self) -> Floats:
        return self.readings.two[self.rows]

    def _keeps(self, votes: Floats) -> Floats:
        """(D,) how often the person says l where the others do, with `votes` (D,) of those besides this one."""
        label, who, c = self.label, self.votes.people[self.rows], len(self.habits.usual)
        counts = self.habits.counts[who, label]  # (D, C)
        usual = np.maximum(self.habits.usual[label], 1e-9)
        sure, more = self.habits.apart(np.minimum(counts, votes[:, None]), np.repeat(votes[:, None], c, axis=1), usual)
        off = usual + sure * more
        off[np.arange(len(label)), label] = 0.0
        return np.asarray(np.maximum(1.0 - off.sum(axis=1), 0.02))


def _with_own(share: Floats, differing: _Differing, own: Floats, trust: float, n_people: int) -> Floats:
    """(D, 4) with what the own models expect: odds against the person's habits of speech for all that is meant."""
    answers, people, rows = differing.votes.answers, differing.votes.people, differing.rows
    c = len(answers.classes)
    said = np.bincount(people * c + answers.label, minlength=n_people * c).reshape(n_people, c).astype(np.float64)
    every = said.sum(axis=0) / said.sum()
    mine = said[people[rows], differing.label] - 1.0 + 2.0 * every[differing.label]
    usual = mine / (said.sum(axis=1)[people[rows]] + 1.0)
    p = own[rows, differing.label]
    odds = np.where(np.isfinite(p), trust * (np.log(np.clip(np.nan_to_num(p), 1e-3, 1.0)) - np.log(usual)), 0.0)
    factor = np.exp(np.clip(odds, -_LIMIT, _LIMIT))
    floor = np.where(odds > 0.0, _BY_CONTENT * (1.0 - share[:, 3].clip(0.0, 1.0)), 0.0)
    habit = np.maximum(share[:, 0], floor)
    return np.stack([habit * factor, share[:, 1] * factor, share[:, 2], share[:, 3] * factor], axis=1)


def _named(differing: _Differing, share: Floats, times: Floats) -> Codes:
    """(D,) codes: the explanation that reaches its bar."""
    answers, people = differing.votes.answers, differing.votes.people
    on = np.diff(answers.indptr)[answers.unit]
    common = np.bincount(people, on > 1, minlength=int(people.max()) + 1)
    few = on[differing.rows] < ENOUGH_VOTES
    bar = np.repeat(np.where(few, OVERWHELMING, BAR)[:, None], 3, axis=1)
    unknown = (common[people[differing.rows]] < ENOUGH_COMMON) | (times < SEEN_BEFORE)
    bar[unknown, 0] = np.inf
    cell = answers.cell[differing.rows]  # votes that say the same, but for those who say so by habit
    same = np.bincount(cell, share[:, 0] < BAR, minlength=int(cell.max(initial=0)) + 1)[cell]
    bar[same > np.maximum(ALIKE * on[differing.rows], 1.0), 2] = np.inf  # others say so too
    best = share[:, :3].argmax(axis=1)
    at = np.arange(len(best))
    clear = share[at, best] >= bar[at, best]
    return np.where(clear, best + _HABIT, _CANNOT)


def _of_units(votes: Votes, readings: Readings, rows: Codes, code: Codes) -> NDArray[np.int8]:
    """(U,) the cause that most of a unit's differing votes have; two readings where they are probable themselves."""
    answers = votes.answers
    n = np.diff(answers.indptr)
    table = np.bincount(answers.unit[rows] * len(CAUSES) + code, minlength=len(n) * len(CAUSES))
    table = table.reshape(len(n), len(CAUSES))[:, [_READINGS, _HABIT, _SLIP]]  # of equally many, the first
    main = np.where(table.any(axis=1), np.array([_READINGS, _HABIT, _SLIP])[table.argmax(axis=1)], _CANNOT)
    main = np.where((readings.probability >= BAR) & (n >= ENOUGH_VOTES), _READINGS, main)
    return np.where(votes.divided, main, np.where(n > 1, _AGREED, _CANNOT)).astype(np.int8)


def _spread(values: NDArray[np.generic], rows: Codes, n: int, otherwise: float) -> Floats:
    """Values of the chosen rows among all N."""
    out = np.full((n, *values.shape[1:]), otherwise, dtype=np.float64)
    out[rows] = values
    return out


def _nothing(answers: AnswerMatrix) -> Causes:
    """Of no votes, or of one class."""
    n, votes = len(answers), np.diff(answers.indptr)
    return Causes(
        vote=np.zeros(n, np.int8), unit=np.where(votes > 1, _AGREED, _CANNOT).astype(np.int8),
        thought=np.where(votes > 0, 0, -1), readings=np.where(votes > 0, 0.0, np.nan), share=np.zeros((n, 3)),
        times=np.full(n, np.nan), of=np.full(n, np.nan), instead=np.full(n, -1), divided=np.zeros(len(votes), np.bool_),
        slip_rate=0.0,
    )
