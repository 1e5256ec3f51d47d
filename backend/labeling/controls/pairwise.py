"""`<Pairwise>`: which of two objects, left or right.

A region is {"type": "pairwise", "from_name": "pw", "to_name": "pw", "value": {"selected": "left"}}: in annotations,
unlike everywhere else, `to_name` is the control itself. A prediction names the left object there, since Label Studio's
import (1.23.2) drops predictions whose `to_name` is no object, without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.controls.base import NO_DATA, Control, Place, Region, Unmodelled
from model.data.spaces import SingleChoice, Space, Value, ValueKind
from model.errors import ModelError

SIDES = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise(Control):
    """A `<Pairwise>` tag."""

    @classmethod
    def read(cls, place: Place) -> Pairwise | Unmodelled:
        """The control of a tag, or why it is not modelled."""
        if len(place.to_names) != 2:
            reason = f"Pairwise '{place.name}' is not modelled: toName does not name two objects."
            return Unmodelled(name=place.name, tag="Pairwise", reason=reason)
        return cls(name=place.name, tag="Pairwise", to_names=place.to_names)

    def signature(self) -> list[Any]:
        """See `Control`."""
        return [self.tag, list(self.to_names)]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space:
        """See `Control`."""
        return SingleChoice(SIDES)

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        for region in self.own_regions(regions):
            side = region["value"].get("selected")
            if isinstance(side, str) and side in SIDES:
                return Value.of_class(side)
        return None

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`."""
        if self.offered(value, data) is None:
            raise ModelError(f"Pairwise {self.name!r} does not offer this value of kind {value.kind.value!r}")
        return [self.region("pairwise", {"selected": str(value.data)}, score)]

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        return value if value.kind is ValueKind.CLASS and value.data in SIDES else None
