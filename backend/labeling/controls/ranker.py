"""`<Ranker>`: an order of the items of a `<List>`, with or without buckets.

A region is {"type": "ranker", "value": {"ranker": {"rank": ["i2", "i1"]}}}: without buckets the one list stands under
the name of the control; with buckets each under its own, and "_" is for items in no bucket.
Where a bucket is filled, the buckets are the ranking, in their order, and what is left comes last; otherwise every item
is a bucket of its own. A ranking that lacks items or has one twice is kept as it stands.

The network does not learn orders: those without buckets have a learner of their own (`model.learners.rankings`). With
buckets a vote does not say which of them was left empty, so they are only compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.controls.base import NO_DATA, Control, Place, Region
from backend.labeling.markup import walk
from backend.labeling.task_data import resolve
from model.data.spaces import Space, Value, ValueKind
from model.errors import ModelError
from model.learners.registry import RANKINGS

_LEFT = "_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker(Control):
    """A `<Ranker>` tag."""

    buckets: tuple[str, ...]  # in their order; () for one list
    listed: str = ""  # what the `<List>` reads its items from

    @classmethod
    def read(cls, place: Place) -> Ranker:
        """The control of a tag."""
        buckets = tuple(child.get("name") for child in place.tag.children if child.kind == "bucket")
        root = place.ancestors[0] if place.ancestors else place.tag
        lists = {tag.get("name"): tag.get("value") for tag, _ in walk(root) if tag.kind == "list"}
        listed = next((lists[name] for name in place.to_names if name in lists), "")
        return cls(name=place.name, tag="Ranker", to_names=place.to_names, buckets=buckets, listed=listed)

    @property
    def learner(self) -> str:
        """That of orders, where it is one list; with buckets there is none."""
        return "" if self.buckets else RANKINGS

    def signature(self) -> list[Any]:
        """See `Control`."""
        return [self.tag, list(self.buckets)]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space | None:
        """See `Control`. None: the network does not learn orders."""
        return None

    def items(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """The ids of the items that a task lists, in their order, without repeats."""
        found = resolve(data, self.listed)
        ids = [each.get("id") for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
        named = [str(one) for one in ids if isinstance(one, (str, int)) and not isinstance(one, bool)]
        return tuple(dict.fromkeys(named))

    def problems(self, data: Mapping[str, Any]) -> list[str]:
        """Sentences on what keeps the items of a task from being put in order; they carry no item and no text."""
        found = resolve(data, self.listed)
        if not isinstance(found, list):
            return [f"Ranker '{self.name}' gets no order: the task has no list of items in '{self.listed}'."]
        items = self.items(data)
        ids = [each.get("id") for each in found if isinstance(each, Mapping)]
        nameless = len(found) - sum(isinstance(one, (str, int)) and not isinstance(one, bool) for one in ids)
        said = []
        if nameless:
            said.append(f"Ranker '{self.name}' leaves out {nameless} of the task's items, which have no id.")
        if len(found) - nameless > len(items):
            said.append(f"Ranker '{self.name}' takes items of the same id for one; give each item an id of its own.")
        if len(items) < 2:
            said.append(f"Ranker '{self.name}' gets no order: the task has fewer than two items.")
        return said

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
        """See `Control`. Items of the task that the value leaves out come last: Label Studio shows no others.

        Items of one bucket stand in their order, since the list of Label Studio knows no ties."""
        offered = self.offered(value, data)
        if offered is None or not isinstance(offered.data, tuple):
            raise ModelError(f"Ranker {self.name!r} cannot show this value of kind {value.kind.value!r}")
        order = [item for bucket in offered.data for item in bucket]
        order += [item for item in self.items(data) if item not in order]
        return [self.region("ranker", {"ranker": {self.name: order}}, score)]

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`. None with buckets."""
        if self.buckets or value.kind is not ValueKind.RANKING or not isinstance(value.data, tuple):
            return None
        there, used = set(self.items(data)), set[str]()
        kept = []
        for bucket in value.data:
            mine = tuple(item for item in bucket if item in there and item not in used)
            used.update(mine)
            kept.append(mine)
        ranking = tuple(bucket for bucket in kept if bucket)
        return Value(ValueKind.RANKING, ranking) if ranking else None
