import math

import numpy as np
from scipy.stats import kendalltau

from model.crowd.rankings import ranking_agreement, ranks_of
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote, Votes


def order(*buckets: str) -> Value:
    return Value(ValueKind.RANKING, tuple(tuple(bucket) for bucket in buckets))


def votes(*units: list[Value]) -> Votes:
    return Votes.from_votes(
        Vote(unit=str(unit), annotator=str(who), control="r", value=value)
        for unit, values in enumerate(units) for who, value in enumerate(values)
    )


def test_tau_is_that_of_scipy_with_and_without_ties():
    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second = rng.integers(0, 3, 6), rng.integers(0, 4, 6)
        values = [order(*("".join(chr(97 + i) for i in np.flatnonzero(ranks == r)) for r in np.unique(ranks)))
                  for ranks in (first, second)]
        expected = kendalltau(first, second).statistic
        found = ranking_agreement(votes(values)).tau
        assert (math.isnan(found) and math.isnan(expected)) or abs(found - expected) < 1e-12


def test_units_are_averaged_and_lone_rankings_say_nothing():
    same, turned = [order("a", "b", "c")] * 2, [order("a", "b", "c"), order("c", "b", "a")]
    found = ranking_agreement(votes(same, turned, [order("a", "b")]))
    assert (found.tau, found.units, found.doubled, found.incomplete) == (0.0, 2, 0, 0)
    assert math.isnan(ranking_agreement(votes([order("a")])).tau)


def test_missing_and_doubled_items_are_counted_and_not_compared():
    given = [order("a", "b", "c"), order("a", "b", "c"), order("a", "b"), order("a", "a", "b")]
    found = ranking_agreement(votes(given))
    assert (found.tau, found.units, found.doubled, found.incomplete) == (1.0, 1, 1, 1)
    assert ranks_of(given[3]) is None and ranks_of(Value.of_class("a")) is None
