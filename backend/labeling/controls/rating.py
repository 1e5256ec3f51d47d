"""`<Rating>`: a number of stars, 1 to `maxRating`, for the whole task.

A region is {"type": "rating", "value": {"rating": 4}}. The stars are learned as classes in their order; a value above
`maxRating`, which a change of the configuration leaves behind, is kept as it stands and not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.controls.base import NO_DATA, Control, Place, Region, Unmodelled
from backend.labeling.written import finite
from model.data.spaces import SingleChoice, Space, Value, ValueKind
from model.errors import ModelError

MAX_STARS = 100  # more of them are a number, not a rating


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(Control):
    """A `<Rating>` tag."""

    stars: int

    @classmethod
    def read(cls, place: Place) -> Rating | Unmodelled:
        """The control of a tag, or why it is not modelled."""
        written = place.tag.get("maxrating").strip() or "5"
        if not written.isdecimal() or not 1 <= int(written) <= MAX_STARS:
            reason = f"Rating '{place.name}' is not modelled: maxRating is no whole number from 1 to {MAX_STARS}."
            return Unmodelled(name=place.name, tag="Rating", reason=reason)
        return cls(name=place.name, tag="Rating", to_names=place.to_names, stars=int(written))

    def signature(self) -> list[Any]:
        """See `Control`."""
        return [self.tag, self.stars]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space:
        """See `Control`."""
        return SingleChoice(tuple(str(star) for star in range(1, self.stars + 1)), ordered=self.stars > 2)

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        for region in self.own_regions(regions):
            stars = finite(region["value"].get("rating"))
            if stars is not None and stars.is_integer() and stars >= 1:
                return Value.of_class(str(int(stars)))
        return None

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`."""
        if self.offered(value, data) is None:
            raise ModelError(f"Rating {self.name!r} does not offer this value of kind {value.kind.value!r}")
        return [self.region("rating", {"rating": int(str(value.data))}, score)]

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        stars = str(value.data) if value.kind is ValueKind.CLASS else ""
        return value if stars.isdecimal() and 1 <= int(stars) <= self.stars else None
