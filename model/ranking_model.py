"""Predicted rankings: Plackett-Luce scores of each annotator, from rankings alone.

    s[u, a, i] = pooled[i] + own[a, i] + unit[u, i],    a ranking of (u, a) ~ Plackett-Luce(s[u, a])

with Gaussian priors on all three, fitted by maximum a posteriori. `pooled` and `own` carry over from task to task where
items have the same id there; `unit` is what rankings of a task say about its items, so it is worked out when somebody
asks, from the rankings that the task has. The content of items is not read.

Widths of the priors are chosen by cross-validation over units, which also says whether the model may speak: on units
without a ranking (`unseen`) and on those with some (`gap`) it does only where it beats equal chances for all orders,
paired by units, by more than chance. A ranking never takes part in a prediction for who gave it on the same unit: the
callers ask for gaps only.

Shape legend: N rankings, L places in each, I items with scores of their own, A annotators, P (unit, item) pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from model.crowd.rankings import ranks_of
from model.data.spaces import Value
from model.data.votes import Votes
from model.errors import ModelError
from model.plackett_luce import log_likelihood

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Given = tuple[str, Value, float]  # a ranking of a unit: who, what, weight

MOST_ITEMS = 64  # with scores of their own: those ranked most often; what is known of the others is their task's
POOLED_WIDTH = 2.0
OWN_WIDTHS, UNIT_WIDTHS = (0.6, 0.1), (0.2, 0.5, 1.0)
MOST_WORK = 30_000.0  # of a fit, in places of strict rankings (`_work`), some ten seconds; of many the newest are taken
FOLDS = 3
LEAST_VOTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rankings as arrays over tables of items and annotators; index I and A stand for those not in them."""

    unit: Ints  # (N,)
    annotator: Ints  # (N,)
    item: Ints  # (N, L)
    pair: Ints  # (N, L) which (unit, item)
    bucket: Ints  # (N, L) 0 is best, -1 no item
    weight: Floats  # (N,)
    scored: NDArray[np.bool_]  # (N,)

    def rows(self, chosen: NDArray[np.bool_] | Ints) -> Table:
        """The chosen rankings."""
        return Table(unit=self.unit[chosen], annotator=self.annotator[chosen], item=self.item[chosen],
                     pair=self.pair[chosen], bucket=self.bucket[chosen], weight=self.weight[chosen],
                     scored=self.scored[chosen])

    def log_likelihood(self, pooled: Floats, own: Floats, unit: Floats) -> tuple[Floats, Floats]:
        """(N,), and its gradient by the scores (N, L)."""
        return log_likelihood(pooled[self.item] + own[self.annotator[:, None], self.item] + unit[self.pair],
                              self.bucket)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingModel:
    """What was learned of one control. JSON-able by `to_json`."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    pooled: Floats  # (I + 1,) the last is 0, of items without a score of their own
    own: Floats  # (A + 1, I + 1) the last row and column are 0
    width: float  # of the prior on what is particular to a unit
    figures: Mapping[str, Any] = field(default_factory=dict)

    def speaks(self, *, seen: bool) -> bool:
        """Whether it beat equal chances, on units with rankings (`seen`) or without."""
        return bool(self.figures.get("gap" if seen else "unseen", {}).get("helps"))

    def scores(
        self, items: Sequence[Sequence[str]], annotators: Sequence[str], given: Sequence[Sequence[Given]] = ()
    ) -> list[Floats]:
        """Scores (len(annotators) + 1, len(items)) on each unit; the last row is the mean annotator's, for all.

        `items` are those of each unit, `given` its rankings; those with an item twice are left out.
        """
        column = {name: at for at, name in enumerate(self.items)}
        person = {name: at for at, name in enumerate(self.annotators)}
        particular = self._particular(given, column, person)
        rows = self.own[[person.get(who, len(person)) for who in annotators]]
        mean = self.own[:-1].mean(0, keepdims=True) if self.annotators else self.own
        people = np.concatenate([rows, mean])
        found = []
        for unit, names in enumerate(items):
            at = [column.get(name, len(column)) for name in names]
            own = np.array([particular.get((unit, name), 0.0) for name in names])
            found.append(self.pooled[at] + people[:, at] + own)
        return found

    def _particular(
        self, given: Sequence[Sequence[Given]], column: Mapping[str, int], person: Mapping[str, int]
    ) -> dict[tuple[int, str], float]:
        """(unit, item) -> what the rankings of the unit say of it; one fit for all units."""
        told = [(unit, who, ranks, weight) for unit, votes in enumerate(given) for who, value, weight in votes
                if (ranks := ranks_of(value)) is not None]
        if not told:
            return {}
        pairs: dict[tuple[int, str], int] = {}
        table = _table([unit for unit, *_ in told], [person.get(who, len(person)) for _, who, *_ in told],
                       [ranks for _, _, ranks, _ in told], [weight for *_, weight in told], column, pairs=pairs)
        fitted = _unit_scores(table, self.pooled, self.own, self.width, len(pairs))
        return dict(zip(pairs, fitted[:-1].tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """What `from_json` makes the model from."""
        return {
            "items": list(self.items), "annotators": list(self.annotators), "width": self.width,
            "pooled": np.round(self.pooled[:-1], 3).tolist(), "own": np.round(self.own[:-1, :-1], 3).tolist(),
            **self.figures,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RankingModel:
        """Inverse of `to_json`, to three digits. Raises ModelError where parts do not fit together."""
        items, annotators = (tuple(str(name) for name in stored[key]) for key in ("items", "annotators"))
        pooled = np.array(stored["pooled"], np.float64).reshape(-1)
        own = np.array(stored["own"], np.float64).reshape(len(annotators), -1 if annotators else len(items))
        if len(pooled) != len(items) or own.shape != (len(annotators), len(items)):
            raise ModelError("the stored scores of a ranking control do not fit together")
        figures = {key: stored[key] for key in ("votes", "unseen", "gap") if key in stored}
        return cls(items=items, annotators=annotators, width=float(stored["width"]), figures=figures,
                   pooled=np.append(pooled, 0.0), own=np.pad(own, ((0, 1), (0, 1))))


def fit_rankings(votes: Votes, seed: int = 0) -> RankingModel | None:
    """The model of the rankings among the votes of one control; None where there are too few of two items or more."""
    votes, ranks = newest_rankings(votes)
    if len(votes) < LEAST_VOTES:
        return None
    times = Counter(item for order in ranks for item in order)
    items = tuple(sorted(item for item, _ in times.most_common(MOST_ITEMS)))
    used, annotator = np.unique(votes.annotator, return_inverse=True)
    table = _table(votes.unit.tolist(), annotator.tolist(), ranks, votes.weight.tolist(),
                   {name: at for at, name in enumerate(items)}, votes.scored)
    shape = (len(items), len(used))
    tried = [((OWN_WIDTHS[0], unit), _crossed(table, shape, (OWN_WIDTHS[0], unit), seed)) for unit in UNIT_WIDTHS]
    best = min(tried, key=_loss)
    other = (OWN_WIDTHS[1], best[0][1])
    widths, crossed = min((best, (other, _crossed(table, shape, other, seed))), key=_loss)
    pooled, own = _fit(table, shape, widths)
    figures = {"votes": len(votes), **{name: _figures(part) for name, part in crossed.items()}}
    return RankingModel(items=items, annotators=tuple(votes.annotators[code] for code in used), pooled=pooled, own=own,
                        width=widths[1], figures=figures)


def newest_rankings(votes: Votes) -> tuple[Votes, list[dict[str, int]]]:
    """Votes that rank two items or more, and item -> place of each: the newest, as many as `MOST_WORK` allows."""
    orders = [ranks_of(value) for value in votes.values]
    usable = np.array([order is not None and len(order) > 1 for order in orders], np.bool_)[votes.value]
    votes = votes.select(np.flatnonzero(usable))
    newest = np.argsort(votes.time, kind="stable")[::-1]
    work = np.array([_work(order or {}) for order in orders])[votes.value[newest]]
    votes = votes.select(newest[: max(int((work.cumsum() <= MOST_WORK).sum()), LEAST_VOTES)][::-1])
    return votes, [dict(orders[code] or {}) for code in votes.value.tolist()]


def _work(ranks: Mapping[str, int]) -> float:
    """What the likelihood of a ranking costs, measured in places of strict rankings."""
    buckets = Counter(ranks.values())
    ties = sum(size > 1 for size in buckets.values())
    return len(ranks) * (1.0 + (len(buckets) / 4.0 + 8.0 * ties if ties else 0.0))


def _loss(tried: tuple[tuple[float, float], dict[str, dict[str, Floats]]]) -> float:
    return sum(float(np.nansum(part["loss"])) for part in tried[1].values())


def _table(
    unit: Sequence[int], annotator: Sequence[int], ranks: Sequence[Mapping[str, int]], weight: Sequence[float],
    column: Mapping[str, int], scored: NDArray[np.bool_] | None = None, pairs: dict[tuple[int, str], int] | None = None,
) -> Table:
    """Rankings as a table; `pairs` is filled with the numbers of (unit, item) pairs, by their first appearance."""
    places = max(map(len, ranks))
    item, pair, bucket = (np.full((len(ranks), places), filler, np.int64) for filler in (len(column), -1, -1))
    pairs = {} if pairs is None else pairs
    for row, (where, order) in enumerate(zip(unit, ranks, strict=True)):
        item[row, : len(order)] = [column.get(name, len(column)) for name in order]
        pair[row, : len(order)] = [pairs.setdefault((where, name), len(pairs)) for name in order]
        bucket[row, : len(order)] = np.unique(list(order.values()), return_inverse=True)[1]
    return Table(
        unit=np.array(unit, np.int64), annotator=np.array(annotator, np.int64), item=item, pair=pair, bucket=bucket,
        weight=np.array(weight, np.float64), scored=np.ones(len(ranks), np.bool_) if scored is None else scored,
    )


def _fit(table: Table, shape: tuple[int, int], widths: tuple[float, float]) -> tuple[Floats, Floats]:
    """`pooled` (I + 1,) and `own` (A + 1, I + 1), with what is particular to units fitted beside them."""
    items, people = shape
    seen = np.unique(table.pair[table.pair >= 0])
    place = np.full(int(seen.max(initial=-1)) + 2, len(seen), np.int64)
    place[seen] = np.arange(len(seen))
    pair = place[table.pair]
    table = Table(unit=table.unit, annotator=table.annotator, item=table.item, pair=pair, bucket=table.bucket,
                  weight=table.weight, scored=table.scored)
    sizes = (items + 1, (people + 1) * (items + 1), len(seen) + 1)
    ends = np.cumsum(sizes)
    precision = np.repeat([POOLED_WIDTH**-2, widths[0] ** -2, widths[1] ** -2], sizes)
    free = np.ones(ends[-1])
    free[items] = free[-1] = 0.0
    own_free = free[ends[0] : ends[1]].reshape(people + 1, items + 1)
    own_free[-1] = own_free[:, -1] = 0.0

    def objective(x: Floats) -> tuple[float, Floats]:
        pooled, own, unit = np.split(x * free, ends[:-1])
        value, slope = table.log_likelihood(pooled, own.reshape(people + 1, items + 1), unit)
        slope = slope * table.weight[:, None]
        gradient = np.concatenate([
            np.bincount(table.item.ravel(), slope.ravel(), sizes[0]),
            np.bincount((table.annotator[:, None] * (items + 1) + table.item).ravel(), slope.ravel(), sizes[1]),
            np.bincount(table.pair.ravel(), slope.ravel(), sizes[2]),
        ])
        prior = 0.5 * float((precision * x * x).sum())
        return prior - float((value * table.weight).sum()), precision * x - gradient * free

    x = minimize(objective, np.zeros(ends[-1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x * free
    return x[: ends[0]], x[ends[0] : ends[1]].reshape(people + 1, items + 1)


def _unit_scores(table: Table, pooled: Floats, own: Floats, width: float, pairs: int) -> Floats:
    """What rankings say of the items of their units, (pairs + 1,); the last is 0 and stands for no item."""

    def objective(x: Floats) -> tuple[float, Floats]:
        unit = np.append(x, 0.0)
        value, slope = table.log_likelihood(pooled, own, unit)
        slope = slope * table.weight[:, None]
        gradient = np.bincount(np.where(table.pair < 0, pairs, table.pair).ravel(), slope.ravel(), pairs + 1)[:-1]
        return 0.5 * float((x * x).sum()) / width**2 - float((value * table.weight).sum()), x / width**2 - gradient

    return np.append(minimize(objective, np.zeros(pairs), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x, 0.0)


def _crossed(
    table: Table, shape: tuple[int, int], widths: tuple[float, float], seed: int
) -> dict[str, dict[str, Floats]]:
    """Losses of rankings on units that the scores were fitted without, each (N,), NaN where a ranking was not scored.

    `unseen`: nothing else is known of the unit. `gap`: every other ranking of it is shown, the rest scored.
    """
    units, unit = np.unique(table.unit, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(units))[unit] % FOLDS
    order = np.argsort(unit, kind="stable")
    nth = np.empty(len(unit), np.int64)
    nth[order] = np.arange(len(unit)) - np.searchsorted(unit[order], unit[order])
    hidden = (nth % 2 == 0) & (np.bincount(unit)[unit] > 1)
    pairs = int(table.pair.max()) + 1
    nothing = np.zeros(pairs + 1)
    uniform = -log_likelihood(np.zeros(table.item.shape), table.bucket)[0]
    found = {name: {way: np.full(len(unit), np.nan) for way in ("loss", "pooled")} for name in ("unseen", "gap")}
    for each in range(FOLDS):
        inside = fold != each
        if not inside.any() or inside.all():
            continue
        pooled, own = _fit(table.rows(inside), shape, widths)
        rows = np.flatnonzero(~inside & table.scored)
        test, shown = table.rows(rows), table.rows(~inside & ~hidden)
        gaps = np.flatnonzero(~inside & table.scored & hidden)
        for way, mine in (("loss", own), ("pooled", np.zeros_like(own))):
            found["unseen"][way][rows] = -test.log_likelihood(pooled, mine, nothing)[0]
            if len(gaps):
                known = _unit_scores(shown, pooled, mine, widths[1], pairs)
                found["gap"][way][gaps] = -table.rows(gaps).log_likelihood(pooled, mine, known)[0]
    for part in found.values():
        part |= {"uniform": np.where(np.isnan(part["loss"]), np.nan, uniform), "unit": unit.astype(np.float64)}
    return found


def _figures(part: Mapping[str, Floats]) -> dict[str, Any]:
    """Mean losses in nats a ranking, and the gain over equal chances with its 95 % interval, clustered by units."""
    there = ~np.isnan(part["loss"])
    count = int(there.sum())
    units, unit = np.unique(part["unit"][there], return_inverse=True)
    if len(units) < 2:
        return {"scored": count, "helps": False}
    gain = part["uniform"][there] - part["loss"][there]
    of_unit = np.bincount(unit, gain - gain.mean())
    half = 1.96 * float(np.sqrt((of_unit**2).sum() * len(units) / (len(units) - 1))) / count
    mean = float(gain.mean())
    return {
        "scored": count, "helps": mean - half > 0.0, "gain": mean, "low": mean - half, "high": mean + half,
        **{way: float(part[way][there].mean()) for way in ("loss", "pooled", "uniform")},
    }
