"""`<Number>`: a number from `min` to `max` in steps of `step`, for the whole task.

A region is {"type": "number", "value": {"number": 42}}. What the tag does not limit is learned from the numbers given
so far (see `model.data.numbers`). A number out of range, which a change of the limits leaves behind, is kept as it
stands and not trained on. A prediction is the median of what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.controls.base import NO_DATA, Control, Place, Region, Unmodelled
from backend.labeling.written import finite
from model.data.numbers import number_bins
from model.data.spaces import Space, Value, ValueKind
from model.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Control):
    """A `<Number>` tag."""

    least: float
    most: float
    step: float  # 0: none

    @classmethod
    def read(cls, place: Place) -> Number | Unmodelled:
        """The control of a tag, or why it is not modelled."""
        limits = {}
        for name, otherwise in (("min", -math.inf), ("max", math.inf), ("step", 0.0)):
            limits[name] = _limit(place.tag.get(name).strip(), otherwise)
        why = next((f"its {name} is no number" for name, limit in limits.items() if limit is None), "")
        least, most, step = (limit or 0.0 for limit in limits.values())
        if not why and least >= most:
            why = "its min is not below its max"
        if not why and (step < 0.0 or step > most - least):
            why = "its step is below 0 or above its range"
        if why:
            reason = f"Number '{place.name}' is not modelled: {why}."
            return Unmodelled(name=place.name, tag="Number", reason=reason)
        return cls(name=place.name, tag="Number", to_names=place.to_names, least=least, most=most, step=step)

    def signature(self) -> list[Any]:
        """See `Control`."""
        return [self.tag, *(repr(limit) for limit in (self.least, self.most, self.step))]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space | None:
        """See `Control`. Without votes there is one only where min, max and step make few numbers."""
        return number_bins(observed or {}, least=self.least, most=self.most, step=self.step)

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        for region in self.own_regions(regions):
            number = finite(region["value"].get("number"))
            if number is not None and abs(number) <= _LARGEST:
                return Value.of_number(number)
        return None

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`."""
        if self.offered(value, data) is None or not isinstance(value.data, float):
            raise ModelError(f"Number {self.name!r} does not offer this value of kind {value.kind.value!r}")
        number = int(value.data) if value.data.is_integer() else value.data
        return [self.region("number", {"number": number}, score)]

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        number = value.data
        if value.kind is not ValueKind.NUMBER or not isinstance(number, float) or not math.isfinite(number):
            return None
        return value if self.least <= number <= self.most else None


_LARGEST = 1e15  # beyond, a float does not tell whole numbers apart


def _limit(written: str, otherwise: float) -> float | None:
    """A limit as written in the tag, `otherwise` where none is; None for what is no number."""
    if not written:
        return otherwise
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
