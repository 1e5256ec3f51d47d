"""What every control tag offers to the rest of Polyvox, and how one that is not modelled says so.

A control turns the regions of its answers in a Label Studio `result` into one typed `Value` and back. For every value
v of its space: `decode(encode(v)) == v` (an empty set of classes is encoded as no region at all).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.controls.visibility import Condition
from backend.labeling.markup import Tag
from model.data.spaces import Space, Value
from model.learners.registry import CLASSES

Region = dict[str, Any]
NO_DATA: Mapping[str, Any] = {}

# A region with one of these in its value, or with an item index, judges a part of the task and not the task.
PARTS = frozenset({"start", "startOffset", "x", "points", "vertices", "rle", "sequence", "ranges"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmodelled:
    """A control that Polyvox recognises but does not learn. `reason` is a sentence for the person who set it up."""

    name: str  # "" where Label Studio needs none (relations)
    tag: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(ABC):
    """A control tag whose votes Polyvox keeps, and learns where it has a `learner`."""

    name: str
    tag: str  # as Label Studio spells it
    to_names: tuple[str, ...]
    shown_when: tuple[Condition, ...] = ()  # all of them must hold

    @property
    def learner(self) -> str:
        """By which learner its votes are learned (`model.learners.registry`); "" where they are only kept and
        compared."""
        return CLASSES

    @abstractmethod
    def signature(self) -> list[Any]:
        """JSON of all that decides which votes are read and what is learned from them; hints, styles and the like
        stay out. The alias is in: it says what stored answers mean."""

    @abstractmethod
    def space(self, observed: Mapping[Value, int] | None = None) -> Space | None:
        """The space of this control; one that takes its classes from task data collects them from `observed` values
        (with how often each was given). None as long as no class is known."""

    @abstractmethod
    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """The value that these regions of this control stand for; None when they say nothing about the task.

        Labels that the config does not know (any more) are decoded as they stand: the space does not contain them."""

    @abstractmethod
    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """Regions that Label Studio accepts as a prediction. Raises ModelError for a value that cannot be shown."""

    @abstractmethod
    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """The part of the value that this task lets an annotator choose; None when nothing of it."""

    def own_regions(self, result: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The regions of a `result` that carry this control's answer on the whole task."""
        return [
            region
            for region in result
            if region.get("from_name") == self.name
            and isinstance(region.get("value"), Mapping)
            and region.get("item_index") is None
            and not PARTS & set(region["value"])
        ]

    def parts(self, result: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
        """What is judged, and the regions of a `result` that judge it: the whole task as "", or each of its regions."""
        yield "", self.own_regions(result)

    def region(self, kind: str, value: Mapping[str, Any], score: float | None) -> Region:
        """A region of a prediction; its id is the same for the same control at all times."""
        identifier = hashlib.sha256(f"{self.name}\n{self.to_names[0]}".encode()).hexdigest()[:10]
        region: Region = {
            "id": identifier,
            "from_name": self.name,
            "to_name": self.to_names[0],
            "type": kind,
            "value": dict(value),
            "origin": "prediction",
        }
        if score is not None:
            region["score"] = round(min(max(float(score), 0.0), 1.0), 4)
        return region


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a control stands in the config: its tag and the tags around it."""

    tag: Tag
    ancestors: tuple[Tag, ...]

    @property
    def name(self) -> str:
        """The control's name, by which regions refer to it."""
        return self.tag.get("name")

    @property
    def to_names(self) -> tuple[str, ...]:
        """Names of the objects that the control labels."""
        return tuple(name.strip() for name in self.tag.get("toname").split(",") if name.strip())
