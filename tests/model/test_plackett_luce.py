"""The likelihood of rankings: it is a distribution, exact for ties, and its gradient is the derivative."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from model.plackett_luce import _strict, _with_ties, log_likelihood

SCORES = np.random.default_rng(0).normal(size=5) * 2.0


def probability(*buckets: tuple[int, ...]) -> float:
    row = np.full((1, 5), -1)
    for place, bucket in enumerate(buckets):
        row[0, list(bucket)] = place
    return float(np.exp(log_likelihood(SCORES[None], row)[0][0]))


def strict(order: tuple[int, ...]) -> float:
    return probability(*((item,) for item in order))


def test_strict_orders_add_up_to_one_and_the_best_item_follows_the_rates() -> None:
    orders = list(permutations(range(5)))
    assert sum(map(strict, orders)) == pytest.approx(1.0, abs=1e-12)
    rates = np.exp(SCORES)
    assert sum(strict(order) for order in orders if order[0] == 2) == pytest.approx(rates[2] / rates.sum())


@pytest.mark.parametrize("buckets", [((0, 3), (1, 2, 4)), ((0, 1, 3), (2,), (4,)), ((4,), (0, 1), (2,), (3,)),
                                     ((0, 1, 2, 3, 4),), ((1, 2), (0, 4))])
def test_a_ranking_with_ties_is_as_probable_as_all_orders_that_it_leaves_open(buckets: tuple[tuple[int, ...], ...]
                                                                              ) -> None:
    ways = product(*(permutations(bucket) for bucket in buckets))
    assert probability(*buckets) == pytest.approx(sum(strict(sum(way, ())) for way in ways), rel=1e-10)


def test_the_gradient_is_the_derivative_and_far_scores_stay_finite() -> None:
    scores = np.stack([SCORES, -SCORES, SCORES])
    bucket = np.array([[0, 0, 1, 1, 2], [3, 1, 0, 2, -1], [0, 0, 0, 1, -1]])
    _, slope = log_likelihood(scores, bucket)
    for place in range(5):
        step = 1e-6 * np.eye(5)[place]
        ends = [log_likelihood(scores + sign * step, bucket)[0] for sign in (1.0, -1.0)]
        assert slope[:, place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)
    value, slope = log_likelihood(scores * 200.0, bucket)
    assert np.isfinite(value).all() and np.isfinite(slope).all()


def test_without_ties_sums_from_the_end_say_the_same_as_bucket_by_bucket() -> None:
    rng = np.random.default_rng(0)
    scores, bucket = rng.normal(size=(40, 7)) * 3.0, np.argsort(rng.random((40, 7)), 1)
    for row in range(20):  # places without an item, anywhere in the row
        bucket[row][bucket[row] > row % 7] = -1
    for quick, slow in zip(_strict(scores, bucket), _with_ties(scores, bucket), strict=True):
        np.testing.assert_allclose(quick, slow, atol=1e-12)
