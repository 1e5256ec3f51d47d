"""Numbers as a space: a distribution over bins, so that base models, consensus and gate work as for classes.

A bin remembers the smallest and the largest number that it stands for. Where the control says minimum, maximum and a
step of few steps, every step is a bin of its own; otherwise the bins hold about equally many of the votes so far, and a
number that many gave has its own. A prediction is the median of the distribution, with a central interval:

    quantile(q) = low[k] + (high[k] - low[k]) (q - P[k - 1]) / p[k],     k = the bin where the sum P reaches q

Invariants: a bin that stands for one number gives it back as it was; every number within the limits has a bin; a class
is named by its range, so that two binnings share exactly the classes that mean the same.

Shape legend: C bins, the last axis of every array of probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import SingleChoice, Value, ValueKind
from model.errors import ModelError

Floats = NDArray[np.float64]
BINS = 12  # that votes are spread over
MOST_STEPS = 24  # of a declared range that have a bin each
INTERVAL = 0.8  # share of the distribution in the central interval
_STILL_GOOD = 0.9  # entropy of the votes in an earlier binning, over that in a new one, above which it is kept


@dataclass(frozen=True, slots=True)
class NumberBins(SingleChoice):
    """Numbers from `least` to `most`; its classes are the names of the bins, in their order."""

    inner: tuple[float, ...] = ()  # (C - 1) upper ends; a number on one belongs to the bin above
    low: tuple[float, ...] = ()  # (C) smallest number that a bin stands for
    high: tuple[float, ...] = ()  # (C) largest
    least: float = -math.inf
    most: float = math.inf
    step: float = 0.0  # that predictions are rounded to; 0: not at all

    def contains(self, value: Value) -> bool:
        number = value.data
        if value.kind is not ValueKind.NUMBER or not isinstance(number, float):
            return False
        return math.isfinite(number) and self.least <= number <= self.most

    def encode(self, value: Value) -> NDArray[np.float32]:
        """One-hot row, shape (C,). Raises ModelError for a value outside the space."""
        if not self.contains(value):
            raise ModelError(f"value {value.kind} is no number from {self.least:g} to {self.most:g}")
        row = np.zeros(len(self.classes), dtype=np.float32)
        row[int(np.searchsorted(self.inner, float(str(value.data)), side="right"))] = 1.0
        return row

    def decode(self, row: NDArray[np.floating]) -> Value:
        """The median of a row of probabilities, shape (C,)."""
        return Value.of_number(float(self.quantiles(np.asarray(row, np.float64)[None], 0.5)[0]))

    def _said(self, kept: Floats, best: NDArray[np.intp]) -> tuple[list[Value], NDArray[np.intp]]:
        """The median, which need not lie in the likeliest bin, and the bin that it lies in."""
        numbers = self.quantiles(kept, 0.5)
        bins = np.searchsorted(self.inner, numbers, side="right")
        return [Value.of_number(number) for number in numbers.tolist()], bins

    def quantiles(self, p: NDArray[np.floating], share: float) -> Floats:
        """The number below which a `share` of each distribution lies; p is (..., C), the answer (...)."""
        p = np.asarray(p, dtype=np.float64)
        upto = np.cumsum(p, -1)
        wanted = share * upto[..., -1:]
        index = np.minimum((upto < wanted - 1e-12).sum(-1, keepdims=True), len(self.classes) - 1)
        mass = np.take_along_axis(p, index, -1)
        into = (wanted - (np.take_along_axis(upto, index, -1) - mass)) / np.maximum(mass, 1e-12)
        low, high = np.array(self.low)[index], np.array(self.high)[index]
        found: Floats = (low + (high - low) * np.clip(into, 0.0, 1.0))[..., 0]
        return self.rounded(found)

    def interval(self, p: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """Both ends of the central interval of each distribution; p is (..., C)."""
        return self.quantiles(p, (1.0 - INTERVAL) / 2.0), self.quantiles(p, (1.0 + INTERVAL) / 2.0)

    def rounded(self, numbers: Floats) -> Floats:
        """To the step, counted from the minimum where there is one."""
        if not self.step:
            return numbers
        start = self.least if math.isfinite(self.least) else 0.0
        found = np.round(np.round((numbers - start) / self.step) * self.step + start, 10)
        return np.asarray(np.clip(found, self.least, self.most))

    @property
    def middle(self) -> Floats:
        """(C,) the number in the middle of each bin: what distances between answers are measured by."""
        return np.asarray((np.array(self.low) + np.array(self.high)) / 2.0)


def number_bins(
    given: Mapping[Value, int], *, least: float = -math.inf, most: float = math.inf, step: float = 0.0,
) -> NumberBins | None:
    """The space of a control from its limits and the numbers given so far; None as long as neither says enough."""
    if step > 0.0 and math.isfinite(least) and math.isfinite(most) and (most - least) / step < MOST_STEPS:
        steps = [round(least + at * step, 10) for at in range(int((most - least) / step + 1e-9) + 1)]
        return _bins(steps, steps, least, most, step)
    times = _inside(given, least, most)
    seen = sorted(times)
    if not seen:
        return None
    numbers, counts = np.array(seen), np.array([times[number] for number in seen], dtype=np.float64)
    # A number belongs to the bin that the middle of its votes falls into.
    bin_of = ((np.cumsum(counts) - counts / 2.0) / counts.sum() * BINS).astype(np.int64)
    if len(seen) <= BINS:
        bin_of = np.arange(len(seen))
    starts = np.flatnonzero(np.diff(bin_of, prepend=-1))
    ends = np.append(starts[1:], len(seen)) - 1
    return _bins(numbers[starts].tolist(), numbers[ends].tolist(), least, most, step)


def _bins(low: Sequence[float], high: Sequence[float], least: float, most: float, step: float) -> NumberBins:
    inner = tuple((before + after) / 2.0 for before, after in zip(high, low[1:], strict=False))
    ends = [least, *inner, most]
    names = tuple(
        f"{one:g}" if one == other else f"{start!r} to {end!r}"
        for one, other, start, end in zip(low, high, ends, ends[1:], strict=False)
    )
    if len(set(names)) < len(names):  # numbers that differ beyond six digits
        names = tuple(f"{start!r} to {end!r}" for start, end in pairwise(ends))
    return NumberBins(
        names, ordered=True, inner=inner, low=tuple(low), high=tuple(high), least=least, most=most, step=step
    )


def kept(new: NumberBins, stored: Mapping[str, Any] | None, given: Mapping[Value, int]) -> NumberBins:
    """The binning of an earlier version (`stored`, as JSON) while it means the same range and still tells the votes
    apart about as well; else the new one.

    A version is compared with the one before, and trained on from it, only where both have the same bins.
    """
    if stored is None:
        return new
    old = from_json(stored)
    if (new.least, new.most, new.step) != (old.least, old.most, old.step):
        return new
    inside = _inside(given, new.least, new.most)
    if inside and (min(inside) < old.low[0] or max(inside) > old.high[-1]):
        return new
    return old if _entropy(old, inside) >= _STILL_GOOD * _entropy(new, inside) else new


def _inside(given: Mapping[Value, int], least: float, most: float) -> dict[float, int]:
    """The numbers within the limits, and how often each was given."""
    numbers = ((value.data, n) for value, n in given.items() if value.kind is ValueKind.NUMBER)
    return {x: n for x, n in numbers if isinstance(x, float) and math.isfinite(x) and least <= x <= most}


def _entropy(space: NumberBins, times: Mapping[float, int]) -> float:
    if not times:
        return 0.0
    place = np.searchsorted(space.inner, list(times), side="right")
    share = np.bincount(place, weights=list(times.values()), minlength=1)
    share = share[share > 0] / max(share.sum(), 1e-12)
    return float(-(share * np.log(share)).sum())


def to_json(space: NumberBins) -> dict[str, Any]:
    """What `from_json` makes the space from; limits that there are not are null."""
    limits = {"least": space.least, "most": space.most}
    return {
        "classes": list(space.classes), "inner": list(space.inner),
        "low": list(space.low), "high": list(space.high), "step": space.step,
        **{name: end if math.isfinite(end) else None for name, end in limits.items()},
    }


def from_json(item: Mapping[str, Any]) -> NumberBins:
    """Inverse of `to_json`; raises ModelError for ends that do not make that many bins."""
    inner, low, high = (tuple(float(end) for end in item[name]) for name in ("inner", "low", "high"))
    classes = tuple(str(name) for name in item["classes"])
    if not len(classes) == len(low) == len(high) == len(inner) + 1:
        raise ModelError("the stored bins of a number control do not fit together")
    return NumberBins(
        classes, ordered=True, inner=inner, low=low, high=high, step=float(item["step"]),
        least=-math.inf if item["least"] is None else float(item["least"]),
        most=math.inf if item["most"] is None else float(item["most"]),
    )
