"""How each person labels, as far as it is theirs: what they say more often than the others where the others say k.

A cell (k, l) of an annotator's confusion is a *habit* with probability `prior`, and then its rate lies above what is
usual; otherwise it is what is usual. Said n times among m votes where the others say k:

    r_g       = s + (1 - s) g,   g on `_EXCESS`;   s[k, l] = the rate among those without this habit
    P(habit)  = prior mean_g L(r_g) / (prior mean_g L(r_g) + (1 - prior) L(s)),   L(r) = r^n (1 - r)^(m - n)

What is usual has a part that is spread evenly over the classes, slips, of which there are few (`MOST_SLIPS`); what lies
above twice that part is how nearly everybody differs on these two classes.

Shape legend: P people (annotators, or annotators on one class), C classes, N votes, D chosen votes, G excess rates.
Tables are [person, what the others say, given].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MOST_SLIPS = 0.1  # of a person's votes; whatever is more frequent is no slip
_EXCESS = np.array([0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97])
_PRIOR, _PRIOR_CELLS = 0.1, 20.0  # share of cells that are habits before any is seen, and how many cells it counts for
_SLIPS, _SLIP_VOTES = 0.04, 50.0  # the same for slips
_TRIMS = 5  # rounds in which cells that stand out are left out
_FEW = 0.3  # share of the votes whose givers say something least: what they say, nearly everybody does
_SILENT = 0.05  # votes below which a cell counts as never said


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Habits:
    """What is usual, and what is somebody's own."""

    counts: Floats  # (P, C, C) votes, by what the others say
    usual: Floats  # (C, C) rate among people without a habit there; 0 on the diagonal
    slip: Floats  # (C, C) the part of it that is slips
    prior: float  # of a habit
    sure: Floats  # (P, C, C) probability of a habit; 0 on the diagonal
    confusion: Floats  # (P, C, C) rows sum to one

    @property
    def slip_rate(self) -> float:
        """Share of votes that are slips."""
        return float(self.slip.sum(axis=1).mean())

    def apart(self, said: Floats, votes: Floats, usual: Floats) -> tuple[Floats, Floats]:
        """Probability of a habit and the rate that it adds to what is usual, for cells of any equal shape."""
        chance = usual[..., None] + (1.0 - usual[..., None]) * _EXCESS
        kept = (votes - said)[..., None]
        likely = said[..., None] * (np.log(chance) - np.log(usual)[..., None]) + kept * np.log1p(-_EXCESS)
        top = likely.max(axis=-1, keepdims=True)
        weight = np.exp(likely - top)
        odds = np.log(self.prior / (1.0 - self.prior)) + top[..., 0] + np.log(weight.mean(axis=-1))
        sure = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
        return sure, (1.0 - usual) * (weight @ _EXCESS) / weight.sum(axis=-1)


def count(people: Codes, label: Codes, weight: Floats, believed: Floats, n_people: int) -> Floats:
    """(P, C, C) votes of each person by what the others say of the unit, `believed` (N, C)."""
    c = believed.shape[1]
    cell = people * c + label
    sums = [np.bincount(cell, believed[:, k] * weight, minlength=n_people * c).reshape(n_people, c) for k in range(c)]
    return np.stack(sums, axis=1)


def fit_habits(counts: Floats, before: Habits | None) -> Habits:
    """One round: what is usual without the habits that were found before, then habits beyond what is usual."""
    c = counts.shape[1]
    free = np.ones_like(counts) if before is None else 1.0 - before.sure
    totals = counts.sum(axis=2, keepdims=True)
    off = ~np.eye(c, dtype=np.bool_)
    slip = _slips((free * counts).sum(axis=0)[off], (free * totals).sum(axis=0)[off], c)
    common = np.maximum(_low_rate(counts, totals) - 2.0 * slip, 0.0)
    own = Habits(
        counts=counts, usual=np.where(off, slip + common, 0.0), slip=np.where(off, slip, 0.0),
        prior=_PRIOR if before is None else before.prior, sure=np.zeros_like(counts), confusion=counts,
    )
    sure, more = _cells(own, totals)
    rates = np.where(off, own.usual + sure * more, 0.0)
    stays = np.maximum(1.0 - rates.sum(axis=2), 0.02)
    rates[:, ~off] = stays
    seen = (counts > 0.5) & off
    prior = (float(sure[seen].sum()) + _PRIOR * _PRIOR_CELLS) / (float(seen.sum()) + _PRIOR_CELLS)
    return Habits(
        counts=counts, usual=own.usual, slip=own.slip, prior=float(np.clip(prior, 0.02, 0.4)), sure=sure,
        confusion=rates / rates.sum(axis=2, keepdims=True),
    )


def _slips(said: Floats, votes: Floats, c: int) -> float:
    """Rate of slips to one other class, from all cells but those that stand out; shrunk, and at most `MOST_SLIPS`."""
    kept, each = np.ones(len(said), np.bool_), _SLIPS / (c - 1)
    rate = each
    for _ in range(_TRIMS):
        rate = (said[kept].sum() + each * _SLIP_VOTES) / (votes[kept].sum() + _SLIP_VOTES)
        kept = said <= votes * rate + 3.0 * np.sqrt(votes * rate) + 1.0
    return float(min(rate, MOST_SLIPS / (c - 1)))


def _low_rate(counts: Floats, totals: Floats) -> Floats:
    """(C, C) rate of each cell among the half of the votes whose givers say so least: what nearly everybody does."""
    rates = (counts + 0.1) / (totals + 1.0)
    order = np.argsort(rates, axis=0)
    said = np.take_along_axis(counts, order, axis=0)
    votes = np.take_along_axis(np.broadcast_to(totals, counts.shape), order, axis=0)
    before = np.cumsum(votes, axis=0) - votes
    share = np.clip((_FEW * votes.sum(axis=0) - before) / np.maximum(votes, 1e-300), 0.0, 1.0)
    return np.asarray((share * said).sum(axis=0) / np.maximum((share * votes).sum(axis=0), 1.0))


def _cells(own: Habits, totals: Floats) -> tuple[Floats, Floats]:
    """(P, C, C) probability of a habit, and the rate that it adds. Where something was never said, L(s) drops out."""
    p, c, _ = own.counts.shape
    never, little = own.apart(np.zeros((p, c)), totals[:, :, 0], np.full((p, c), 0.5))
    sure = np.broadcast_to(never[:, :, None], own.counts.shape).copy()
    more = np.broadcast_to(2.0 * little[:, :, None], own.counts.shape).copy()
    every = np.arange(c)
    at = np.nonzero(own.counts > _SILENT)
    sure[at], more[at] = own.apart(own.counts[at], totals[at[0], at[1], 0], np.maximum(own.usual[at[1:]], 1e-9))
    sure[:, every, every] = more[:, every, every] = 0.0
    return sure, more
