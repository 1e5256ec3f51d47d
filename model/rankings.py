"""Rankings as a space: orders of items with ties and with items left out, their distance, loss and consensus.

Encoded, a ranking is the number of each item's bucket: 0 is best, NaN stands for an item that was not ranked. Within a
bucket the order means nothing; `decode` gives the items in the order of the space.

Shape legend: I items of the space, V rankings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.rankings import RankingAgreement, ranking_agreement, ranks_of
from model.data.spaces import Value, ValueKind
from model.data.votes import Votes
from model.errors import ModelError
from model.plackett_luce import log_likelihood

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rankings:
    """All orders of any of `items`."""

    items: tuple[str, ...]
    kind: ValueKind = ValueKind.RANKING

    def contains(self, value: Value) -> bool:
        """Whether it names items of this space only, and each at most once."""
        ranks = ranks_of(value)
        return ranks is not None and ranks.keys() <= set(self.items)

    def encode(self, value: Value) -> NDArray[np.float32]:
        """Bucket of each item, (I,). Raises ModelError for a value outside the space."""
        ranks = ranks_of(value)
        if ranks is None or not ranks.keys() <= set(self.items):
            raise ModelError(f"value {value.kind} is no order of the {len(self.items)} items, each at most once")
        return np.array([ranks.get(item, np.nan) for item in self.items], dtype=np.float32)

    def decode(self, row: NDArray[np.floating]) -> Value:
        """The order of a row (I,), the lowest number first; equal numbers share a bucket, NaN stays out."""
        return order_of({item: float(x) for item, x in zip(self.items, row, strict=True) if not np.isnan(x)})

    def distance(self, one: Value, other: Value) -> float:
        """Share of the pairs of items both rank that stand the other way round; a tie in one alone counts half. NaN
        where fewer than two items are common."""
        a, b = self.encode(one), self.encode(other)
        common = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        if len(common) < 2:
            return float("nan")
        upper = np.triu_indices(len(common), 1)
        first, second = (np.sign(x[common][:, None] - x[common])[upper] for x in (a, b))
        return float(np.abs(first - second).mean() / 2.0)

    def loss(self, scores: NDArray[np.floating], value: Value) -> float:
        """Negative log-probability of a ranking of its own items under Plackett-Luce scores (I,), in nats."""
        row = self.encode(value)
        bucket = np.where(np.isnan(row), -1, np.nan_to_num(row)).astype(np.int64)
        return -float(log_likelihood(np.asarray(scores, np.float64)[None], bucket[None])[0][0])

    def consensus(self, values: Iterable[Value]) -> Value | None:
        """See `mean_rank`."""
        return mean_rank(value for value in values if self.contains(value))

    def agreement(self, votes: Votes) -> RankingAgreement:
        """Kendall's tau-b of pairs of rankings; see `model.crowd.rankings`."""
        return ranking_agreement(votes)


def order_of(places: Mapping[str, float]) -> Value:
    """The ranking that puts the lowest place first; places that differ by rounding alone share a bucket."""
    buckets: dict[float, list[str]] = defaultdict(list)
    for item, place in places.items():
        buckets[round(place, 9)].append(item)
    return Value(ValueKind.RANKING, tuple(tuple(buckets[place]) for place in sorted(buckets)))


def mean_rank(values: Iterable[Value]) -> Value | None:
    """The consensus of rankings: items in the order of their mean place. None without a ranking.

    A place is the share of the ranked items that stand before an item, tied ones counted half, so that rankings of
    fewer items weigh the same; it is averaged over the rankings that name the item. Rankings with an item twice are
    left out.
    """
    places = mean_places(values)
    return order_of(places) if places else None


def mean_places(values: Iterable[Value]) -> dict[str, float]:
    """Item -> mean place from 0 (best) to 1, over the rankings that name it; see `mean_rank`."""
    found: dict[str, list[float]] = defaultdict(list)
    for value in values:
        ranks = ranks_of(value)
        if ranks is None:
            continue
        at = np.array(list(ranks.values()))
        before = (at[None, :] < at[:, None]).sum(1) + 0.5 * (at[None, :] == at[:, None]).sum(1)
        for item, place in zip(ranks, (before / len(at)).tolist(), strict=True):
            found[item].append(place)
    return {item: float(np.mean(given)) for item, given in found.items()}
