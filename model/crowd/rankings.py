"""Agreement of rankings: Kendall's tau-b of two annotators' orders of the same items, averaged over pairs and units.

    tau-b = (concordant - discordant) / sqrt(pairs untied in one * pairs untied in the other)

A ranking is a sequence of buckets, the best first; the items of one bucket are tied. Only rankings that name each item
once, and of the same items, can be compared; the others are counted.

Shape legend: N votes, I items of a unit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from model.data.spaces import Value, ValueKind
from model.data.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingAgreement:
    """How far rankings agree, and how many could not be compared."""

    tau: float  # mean over units of the mean over pairs; NaN without any
    units: int  # with two comparable rankings or more
    doubled: int  # rankings that name an item twice
    incomplete: int  # rankings of other items than most have ranked on the unit


def ranks_of(value: Value) -> dict[str, int] | None:
    """Item -> number of its bucket; None where an item stands twice, or the value is no ranking."""
    ranks: dict[str, int] = {}
    if value.kind is not ValueKind.RANKING or not isinstance(value.data, tuple):
        return None
    for at, bucket in enumerate(value.data):
        for item in bucket:
            if item in ranks:
                return None
            ranks[item] = at
    return ranks or None


def ranking_agreement(votes: Votes) -> RankingAgreement:
    """Of the rankings among the votes of one control."""
    ranks = [ranks_of(value) for value in votes.values]
    ranking = [value.kind is ValueKind.RANKING for value in votes.values]
    by_unit: dict[int, list[dict[str, int]]] = defaultdict(list)
    doubled = incomplete = 0
    for unit, code in zip(votes.unit.tolist(), votes.value.tolist(), strict=True):
        order = ranks[code]
        if order is not None:
            by_unit[unit].append(order)
        elif ranking[code]:
            doubled += 1
    found = []
    for orders in by_unit.values():
        items, _ = Counter(frozenset(order) for order in orders).most_common(1)[0]
        whole = [order for order in orders if order.keys() == items]
        incomplete += len(orders) - len(whole)
        taus = [tau for one, other in combinations(whole, 2) if np.isfinite(tau := _tau(one, other))]
        if taus:
            found.append(float(np.mean(taus)))
    return RankingAgreement(
        tau=float(np.mean(found)) if found else float("nan"), units=len(found), doubled=doubled, incomplete=incomplete
    )


def _tau(one: dict[str, int], other: dict[str, int]) -> float:
    """Kendall's tau-b; NaN where one of the two ties everything."""
    a = np.array([one[item] for item in one])
    b = np.array([other[item] for item in one])
    first, second = (np.sign(x[:, None] - x[None, :]) for x in (a, b))  # (I, I)
    untied = float(np.abs(first).sum()) * float(np.abs(second).sum())
    return float((first * second).sum()) / untied**0.5 if untied else float("nan")
