"""A control with `perRegion="true"`: each answer is on a region (a span of a text, a part of a picture), not on a task.

Label Studio stores the answer as a region of the control's type with the geometry of the region that it judges. Answers
on the same geometry (to a tenth of a percent or of a second) are answers on one unit, whoever drew it; so annotators
are compared where regions come with the task or are taken over. Answers are learned and predicted for regions, by the
control `inner`; about the whole task this control says nothing, so it has no space there (`LabelConfig.region_spaces`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.controls.base import NO_DATA, PARTS, Control, Place, Region
from model.data.spaces import Space, Value
from model.errors import ModelError

GEOMETRY = PARTS | {"end", "endOffset", "y", "width", "height", "rotation", "radiusX", "radiusY", "closed", "channel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PerRegion(Control):
    """Any control, answered for each region."""

    inner: Control  # the same control, as if it stood for the whole task

    @property
    def learner(self) -> str:
        """That of the same control on whole tasks."""
        return self.inner.learner

    @classmethod
    def around(cls, inner: Control, place: Place) -> PerRegion:
        """The control of a tag that `inner` was read from."""
        return cls(name=inner.name, tag=inner.tag, to_names=place.to_names, inner=inner)

    def signature(self) -> list[Any]:
        """See `Control`."""
        return ["perRegion", *self.inner.signature()]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space | None:
        """See `Control`. None: it is not asked of whole tasks."""
        return None

    def parts(self, result: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
        """See `Control`."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for region in result:
            value = region.get("value")
            if region.get("from_name") == self.name and isinstance(value, Mapping) and PARTS & set(value):
                found.setdefault(place_of(region, value), []).append(region)
        yield from found.items()

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """The answer on one region."""
        plain = [
            {**region, "item_index": None,
             "value": {key: each for key, each in region["value"].items() if key not in GEOMETRY}}
            for region in regions if isinstance(region.get("value"), Mapping)
        ]
        return self.inner.decode(plain, data)

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`. Raises ModelError: an answer needs its region (`services.region_answers`)."""
        raise ModelError(f"{self.tag} {self.name!r} is answered for each region, not for a whole task")

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        return None


def place_of(region: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """What regions of the same object and geometry have in common, short enough for an id."""
    where = {key: _rounded(each) for key, each in value.items() if key in GEOMETRY}
    said = json.dumps([region.get("to_name"), region.get("item_index"), where], sort_keys=True, default=str)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):  # JSON writes 10 and 10.0 alike
        return round(float(value), 1) + 0.0 if abs(value) < 1e12 else str(value)
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value
