"""Regions of two annotators: overlaps by hand, one-to-one matching, F1 over units and pairs."""

from __future__ import annotations

import numpy as np
import pytest

from model.regions import Region, iou, matched, regions_agreement


def span(start: float, end: float, label: str = "P", where: str = "t") -> Region:
    return Region(labels=frozenset([label]), where=where, outline=((start, end),))


def shape(*corners: tuple[float, float], label: str = "P") -> Region:
    return Region(labels=frozenset([label]), where="i", outline=corners)


def box(x: float, y: float, width: float, height: float) -> Region:
    return shape((x, y), (x + width, y), (x + width, y + height), (x, y + height))


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        (span(0, 10), span(5, 15), 1 / 3), (span(0, 10), span(0, 10), 1.0), (span(0, 5), span(5, 9), 0.0),
        (span(3, 3), span(3, 3), 1.0), (span(3, 3), span(4, 4), 0.0), (span(0, 10), box(0, 0, 10, 10), 0.0),
        (box(0, 0, 10, 10), box(5, 0, 10, 10), 1 / 3), (box(0, 0, 1, 1), box(8, 8, 1, 1), 0.0),
        (box(0, 0, 10, 10), shape((0, 0), (10, 0), (0, 10)), 0.5),
        # a square turned by 45 degrees in a square: the corners are cut off
        (box(0, 0, 10, 10), shape((5, 0), (10, 5), (5, 10), (0, 5)), 0.5),
        # a U is not convex: the box fills its gap of 2 x 8
        (box(0, 0, 6, 10), shape((0, 0), (6, 0), (6, 10), (4, 10), (4, 2), (2, 2), (2, 10), (0, 10)), 44 / 60),
        (box(0, 0, 0, 0), box(0, 0, 0, 0), 1.0), (box(0, 0, 0, 5), box(0, 0, 5, 5), 0.0),
    ],
)
def test_overlaps_by_hand(one: Region, other: Region, value: float) -> None:
    assert iou(one, other) == pytest.approx(value, abs=0.003)
    assert iou(other, one) == pytest.approx(value, abs=0.003)


def test_regions_are_matched_one_to_one_to_the_greatest_overlap() -> None:
    # greedily the first would take the second's better partner
    one, other = [span(0, 10), span(2, 12)], [span(1, 11), span(0, 9)]
    assert sorted(matched(one, other)) == pytest.approx([9 / 11, 0.9])
    assert len(matched([span(0, 10)] * 3, [span(0, 10)])) == 1
    assert len(matched([span(0, 10)], [span(0, 10, label="Q")])) == 0
    assert len(matched([span(0, 10)], [span(0, 10, where="u")])) == 0
    assert len(matched([span(0, 10)], [span(0, 4)])) == 0 and len(matched([], [span(0, 4)])) == 0


def test_f1_over_units_and_pairs() -> None:
    found = regions_agreement({
        "1": {"a": [span(0, 10), span(20, 30)], "b": [span(0, 10)], "c": []},
        "2": {"a": [span(0, 10)], "b": [span(0, 9)]},
        "3": {"a": [], "b": []},  # nothing on both sides says nothing
        "4": {"a": [span(0, 1)]},
    })
    pairs = {(pair.one, pair.other): pair for pair in found.pairs}
    assert pairs["a", "b"].f1 == pytest.approx((2 / 3 + 1) / 2) and pairs["a", "b"].units == 2
    assert pairs["a", "b"].exact == pytest.approx((2 / 3 + 0) / 2) and pairs["a", "b"].iou == pytest.approx(0.95)
    assert pairs["a", "c"].f1 == 0.0 and np.isnan(pairs["a", "c"].iou) and found.pairs[-1].other == "b"
    assert found.units == 2 and found.f1 == pytest.approx(((2 / 3 + 0 + 0) / 3 + 1) / 2)
    assert found.low <= found.f1 <= found.high


def test_nothing_to_compare_has_no_figures() -> None:
    found = regions_agreement({"1": {"a": [span(0, 1)]}})
    assert found.units == 0 and np.isnan(found.f1) and found.pairs == ()
