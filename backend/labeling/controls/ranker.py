"""`<Ranker>`: an order of the items of a `<List>`, with or without buckets. Votes are kept; it is not predicted yet.

A region is {"type": "ranker", "value": {"ranker": {"_": ["i2", "i1"], "best": ["i3"]}}}: "_" is for items in no bucket.
Where a bucket is filled, the buckets are the ranking, in their order, and what is left comes last; otherwise every item
is a bucket of its own. A ranking that lacks items or has one twice is kept as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from backend.labeling.controls.base import NO_DATA, Control, Place, Region
from model.errors import ModelError
from model.spaces import Space, Value, ValueKind

_LEFT = "_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker(Control):
    """A `<Ranker>` tag."""

    predicted: ClassVar[bool] = False
    buckets: tuple[str, ...]  # in their order; () for one list

    @classmethod
    def read(cls, place: Place) -> Ranker:
        """The control of a tag."""
        buckets = tuple(child.get("name") for child in place.tag.children if child.kind == "bucket")
        return cls(name=place.name, tag="Ranker", to_names=place.to_names, buckets=buckets)

    def signature(self) -> list[Any]:
        """See `Control`."""
        return [self.tag, list(self.buckets)]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space | None:
        """See `Control`. None: orders are not predicted yet."""
        return None

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        for region in self.own_regions(regions):
            stored = region["value"].get("ranker")
            lists = {_LEFT: stored} if isinstance(stored, list) else stored
            if not isinstance(lists, Mapping):
                continue
            items = {name: tuple(each for each in listed if isinstance(each, str)) for name, listed in lists.items()
                     if isinstance(listed, list)}
            named = [items.get(name, ()) for name in self.buckets]
            left = [each for name, listed in items.items() if name not in self.buckets for each in listed]
            order = [*named, tuple(left)] if any(named) else [(each,) for each in left]
            ranking = tuple(bucket for bucket in order if bucket)
            if ranking:
                return Value(ValueKind.RANKING, ranking)
        return None

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`. Raises ModelError: nothing is predicted."""
        raise ModelError(f"Ranker {self.name!r} is not predicted yet")

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        return None
