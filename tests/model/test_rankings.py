"""The contract of a space, for rankings: encode, decode, distance, loss, consensus and agreement."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.crowd.rankings import ranks_of
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote, Votes
from model.errors import ModelError
from model.rankings import Rankings, mean_rank

ITEMS = ("a", "b", "c", "d")
SPACE = Rankings(ITEMS)
VALUES = st.permutations(ITEMS).flatmap(
    lambda order: st.lists(st.integers(0, 2), min_size=1, max_size=4).map(
        lambda at: ranking(*(tuple(item for item, place in zip(order, at, strict=False) if place == each)
                             for each in range(3)))))


def ranking(*buckets: str | tuple[str, ...]) -> Value:
    return Value(ValueKind.RANKING, tuple(tuple(bucket) for bucket in buckets if bucket))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(VALUES, VALUES)
def test_every_order_comes_back_and_distances_are_such(one: Value, other: Value) -> None:
    assert ranks_of(SPACE.decode(SPACE.encode(one))) == ranks_of(one)
    found = SPACE.distance(one, other)
    assert np.isnan(found) or 0.0 <= found <= 1.0
    assert found == pytest.approx(SPACE.distance(other, one), nan_ok=True)
    assert len(ranks_of(one) or {}) < 2 or SPACE.distance(one, one) == 0.0
    assert SPACE.loss(np.zeros(4), one) >= -1e-12


@pytest.mark.parametrize("value", [ranking("a", "a"), ranking("a", "z"), ranking(), Value.of_class("a")])
def test_what_is_no_order_of_the_items_is_refused(value: Value) -> None:
    assert not SPACE.contains(value)
    with pytest.raises(ModelError, match="no order of the 4 items"):
        SPACE.encode(value)


def test_distance_by_hand() -> None:
    assert SPACE.distance(ranking("a", "b", "c"), ranking("c", "b", "a")) == 1.0
    assert SPACE.distance(ranking("a", "b", "c"), ranking("a", "bc")) == pytest.approx(0.5 / 3)
    assert np.isnan(SPACE.distance(ranking("a", "b"), ranking("c", "d")))


def test_the_loss_is_a_distribution_over_orders() -> None:
    scores = np.array([1.0, -2.0, 0.5, 0.0])
    assert sum(np.exp(-SPACE.loss(scores, ranking(*way))) for way in permutations(ITEMS)) == pytest.approx(1.0)
    assert SPACE.loss(scores, ranking("a", "b")) == pytest.approx(np.log1p(np.exp(-3.0)))


def test_mean_rank_with_ties_and_missing_items_by_hand() -> None:
    assert mean_rank([ranking("a", "b", "c"), ranking("b", "a", "c")]) == ranking(("a", "b"), "c")
    # a: 1/6, 1/4; b: 3/6, 3/4; c: 5/6
    assert mean_rank([ranking("a", "b", "c"), ranking("a", "b"), ranking("a", "a")]) == ranking("a", "b", "c")
    # a: 1/6 and 3/4, their mean 11/24; b: 3/6; c: 5/6 and 1/4, their mean 13/24
    assert SPACE.consensus([ranking("a", "b", "c"), ranking("c", "a")]) == ranking("a", "b", "c")
    assert mean_rank([]) is None and SPACE.consensus([ranking("z", "a")]) is None


def test_agreement_is_kendalls_tau() -> None:
    votes = Votes.from_votes(Vote(unit="1", annotator=who, control="r", value=value)
                             for who, value in (("x", ranking("a", "b", "c")), ("y", ranking("a", "c", "b"))))
    assert SPACE.agreement(votes).tau == pytest.approx(1 / 3)
