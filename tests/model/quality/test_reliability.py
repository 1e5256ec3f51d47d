"""Reliability: stated against true, with intervals."""

import numpy as np
import pytest

from model.quality.reliability import reliability, weighted_gap


def test_bins_hold_what_was_stated_and_how_much_of_it_was_right():
    stated = np.array([0.55, 0.55, 0.85, 0.85, 0.85, 0.85, 1.0])
    right = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    bins = reliability(stated, right)
    assert [(each.low, each.labels) for each in bins] == [(0.5, 2), (0.8, 4), (0.9, 1)]
    assert [each.right.value for each in bins] == [0.5, 0.75, 1.0]
    assert weighted_gap(bins) == pytest.approx((2 * 0.05 + 4 * 0.1) / 7)
    assert all(each.beyond == 0.0 for each in bins)  # so few say nothing against it
    assert np.isnan(weighted_gap([]))


def test_what_lies_beyond_the_interval():
    (only,) = reliability(np.full(1000, 0.97), np.r_[np.ones(830), np.zeros(170)])
    assert only.beyond == pytest.approx(0.97 - only.right.high) and only.beyond > 0.1
