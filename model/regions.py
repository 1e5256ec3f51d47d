"""Agreement on regions: which spans, boxes and polygons of two annotators are the same, and how well they lie.

Two regions can be the same where they lie on the same object and carry the same labels. Among those, regions are paired
one to one so that the summed IoU (intersection over union) is greatest; a pair counts from an IoU of `least` on:

    F1 = 2 matched / (regions of one + regions of the other)

`exact` counts only pairs that lie on each other to a thousandth. A unit on which both drew nothing is no evidence and
is left out. Areas of polygons are taken by scan lines: exact along a line, sampled across (even-odd rule, so a polygon
that crosses itself has an area too).

Shape legend: n, m regions of two annotators, Y scan lines, E edges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Floats = NDArray[np.float64]

LINES = 512  # scan lines over the height of both polygons
_FAR = 1e18  # where the crossings of a line end
_EXACT = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region somebody drew: a span of one dimension, or an outline of two."""

    labels: frozenset[str]
    where: str  # the object, and the part of it, that it lies on
    outline: tuple[tuple[float, float], ...]  # corners; of a span one pair, (start, end)

    @property
    def is_span(self) -> bool:
        return len(self.outline) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Two annotators over the units that both annotated."""

    one: str
    other: str
    units: int  # where at least one of them drew something
    f1: float
    exact: float
    iou: float  # mean of the matched regions; NaN where none are


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionsAgreement:
    """All annotators: figures are means over units of the mean over pairs; NaN without any."""

    units: int
    f1: float
    low: float  # 95 % interval of `f1` from a bootstrap over units
    high: float
    exact: float
    iou: float
    pairs: tuple[PairAgreement, ...]  # least agreeing first


def iou(one: Region, other: Region) -> float:
    """Intersection over union, 0 to 1; of two empty regions 1 where they are the same, else 0."""
    if one.is_span != other.is_span:
        return 0.0
    if one.is_span:
        (start, end), (begin, stop) = one.outline[0], other.outline[0]
        both = max(0.0, min(end, stop) - max(start, begin))
        union = (end - start) + (stop - begin) - both
    else:
        a, b = np.array(one.outline), np.array(other.outline)  # (E, 2)
        if one.outline == other.outline:
            return 1.0
        if (a.max(0) < b.min(0)).any() or (b.max(0) < a.min(0)).any():
            return 0.0
        both, union = _areas(a, b)
    return both / union if union > 0.0 else float(one.outline == other.outline)


def matched(one: Sequence[Region], other: Sequence[Region], least: float = 0.5) -> Floats:
    """The IoU of each pair of regions that are the same, in no order."""
    return _paired(_overlaps(one, other), least)


def _overlaps(one: Sequence[Region], other: Sequence[Region]) -> Floats:
    """(n, m) IoU; 0 of regions that cannot be the same."""
    return np.array([[iou(a, b) if a.where == b.where and a.labels == b.labels else 0.0 for b in other] for a in one])


def _paired(table: Floats, least: float) -> Floats:
    if not table.size:
        return np.zeros(0)
    kept = np.where(table >= least, table, 0.0)
    found: Floats = kept[linear_sum_assignment(kept, maximize=True)]
    return found[found > 0.0]


def regions_agreement(
    drawn: Mapping[str, Mapping[str, Sequence[Region]]], *, least: float = 0.5, draws: int = 500, seed: int = 0
) -> RegionsAgreement:
    """Of unit -> annotator -> regions; an annotator who drew nothing on a unit has an empty sequence there."""
    of_pair: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    of_unit: list[Floats] = []
    for people in drawn.values():
        here = []
        for one, other in combinations(sorted(people), 2):
            count = len(people[one]) + len(people[other])
            if count:
                table = _overlaps(people[one], people[other])
                found, exact = _paired(table, least), _paired(table, _EXACT)
                figures = (2.0 * len(found) / count, 2.0 * len(exact) / count, _mean(found))
                of_pair[one, other].append(figures)
                here.append(figures)
        if here:
            of_unit.append(_means(here))
    each = np.array(of_unit).reshape(-1, 3)
    low, high = _interval(each[:, 0], draws, seed)
    f1, exact_f1, overlap = _means(each)
    pairs = []
    for (one, other), rows in of_pair.items():
        share, same, lies = _means(rows)
        pairs.append(PairAgreement(one=one, other=other, units=len(rows), f1=share, exact=same, iou=lies))
    return RegionsAgreement(
        units=len(each), f1=f1, low=low, high=high, exact=exact_f1, iou=overlap,
        pairs=tuple(sorted(pairs, key=lambda pair: (pair.f1, -pair.units, pair.one, pair.other))),
    )


def _areas(a: Floats, b: Floats) -> tuple[float, float]:
    """Areas of the intersection and of the union of two polygons."""
    low, high = min(a[:, 1].min(), b[:, 1].min()), max(a[:, 1].max(), b[:, 1].max())
    lines = low + (np.arange(LINES) + 0.5) / LINES * (high - low)  # (Y,)
    first, second = _crossings(a, lines), _crossings(b, lines)
    both = 0.0
    for at in range(first.shape[1]):  # one interval of each line at a time: outlines may be long
        start, end = (first[:, at, side, None] for side in (0, 1))  # (Y, 1)
        inside = np.minimum(end, second[..., 1]) - np.maximum(start, second[..., 0])
        both += float(np.maximum(inside, 0.0).sum())
    total = float((first[..., 1] - first[..., 0]).sum() + (second[..., 1] - second[..., 0]).sum())
    return both, total - both


def _crossings(corners: Floats, lines: Floats) -> Floats:
    """Where a polygon lies on each line: (Y, intervals, 2), padded with intervals of no length."""
    ends = np.roll(corners, -1, 0)
    (x, y), (to_x, to_y) = corners.T, ends.T  # (E,)
    over = (y <= lines[:, None]) != (to_y <= lines[:, None])  # (Y, E)
    slope = np.where(to_y == y, 0.0, (to_x - x) / np.where(to_y == y, 1.0, to_y - y))
    at = np.sort(np.where(over, x + (lines[:, None] - y) * slope, _FAR), 1)
    most = int(over.sum(1).max(initial=0))
    return at[:, : most + most % 2].reshape(len(lines), -1, 2)


def _means(rows: Sequence[tuple[float, float, float]] | Floats) -> Floats:
    table = np.asarray(rows, np.float64).reshape(-1, 3)
    return np.array([_mean(column[~np.isnan(column)]) for column in table.T])


def _mean(numbers: Floats) -> float:
    return float(numbers.mean()) if len(numbers) else float("nan")


def _interval(numbers: Floats, draws: int, seed: int) -> tuple[float, float]:
    if len(numbers) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    means = [float(numbers[rng.integers(0, len(numbers), len(numbers))].mean()) for _ in range(draws)]
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return low, high
