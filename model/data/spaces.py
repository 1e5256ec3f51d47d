"""Spaces: the set of values a control can take, and the typed values themselves.

A `Value` is what one annotator said about one unit with one control. It is typed, so that a new label type needs no
migration of stored votes. A `Space` maps values to arrays that the learners understand and back.

Invariants: `space.decode(space.encode(v)) == v` for every value in the space; the order of `classes` is the order of
the last axis of every array made for that space.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from model.errors import ModelError


class ValueKind(StrEnum):
    """The typed shapes a value can have; stored beside every vote."""

    CLASS = "class"  # data: str
    CLASSES = "classes"  # data: tuple[str, ...], sorted, without repeats; () is a value
    PATHS = "paths"  # data: tuple[tuple[str, ...], ...], a taxonomy answer
    NUMBER = "number"  # data: float
    RANKING = "ranking"  # data: tuple[tuple[str, ...], ...], best bucket first
    TEXT = "text"  # data: str


@dataclass(frozen=True, slots=True)
class Value:
    """One typed answer. `data` has the type that `ValueKind` states; build it with the class methods."""

    kind: ValueKind
    data: str | float | tuple[str, ...] | tuple[tuple[str, ...], ...]

    @classmethod
    def of_class(cls, label: str) -> Value:
        return cls(ValueKind.CLASS, label)

    @classmethod
    def of_classes(cls, labels: Sequence[str]) -> Value:
        return cls(ValueKind.CLASSES, tuple(sorted(set(labels))))

    @classmethod
    def of_number(cls, number: float) -> Value:
        return cls(ValueKind.NUMBER, float(number))

    def to_json(self) -> str:
        """Canonical JSON of the data alone (the kind is kept beside it); equal values give equal strings."""
        return json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, kind: str, text: str) -> Value:
        """Inverse of `to_json`. Raises ModelError when `kind` is unknown or the data does not have its type."""
        try:
            value_kind = ValueKind(kind)
            data = json.loads(text)
        except ValueError as error:
            raise ModelError(f"not a stored value: kind {kind!r}") from error
        match value_kind:
            case ValueKind.CLASS | ValueKind.TEXT if isinstance(data, str):
                return cls(value_kind, data)
            case ValueKind.NUMBER if isinstance(data, (int, float)) and not isinstance(data, bool):
                return cls(value_kind, float(data))
            case ValueKind.CLASSES if isinstance(data, list) and all(isinstance(item, str) for item in data):
                return cls(value_kind, tuple(data))
            case ValueKind.PATHS | ValueKind.RANKING if isinstance(data, list) and all(_is_path(item) for item in data):
                return cls(value_kind, tuple(tuple(path) for path in data))
        raise ModelError(f"a stored value of kind {kind!r} has data of another type")


@dataclass(frozen=True, slots=True)
class SingleChoice:
    """Exactly one of `classes`. Encoded as a class index; predicted as a distribution over classes.

    `kind` says how answers are encoded: numbers (`model.data.numbers`) are classes too, namely bins, and have values of
    their own.
    """

    classes: tuple[str, ...]
    kind: ValueKind = ValueKind.CLASS
    ordered: bool = False  # the classes stand in a meaningful order

    def encode(self, value: Value) -> NDArray[np.float32]:
        """One-hot row, shape (C,). Raises ModelError for a value outside the space."""
        if value.kind is not ValueKind.CLASS or value.data not in self.classes:
            raise ModelError(f"value {value.kind} is not one of the {len(self.classes)} classes of this control")
        row = np.zeros(len(self.classes), dtype=np.float32)
        row[self.classes.index(str(value.data))] = 1.0
        return row

    def decode(self, row: NDArray[np.floating]) -> Value:
        """The most probable class of a row of probabilities, shape (C,); ties go to the first."""
        return Value.of_class(self.classes[int(np.argmax(row))])

    def contains(self, value: Value) -> bool:
        return value.kind is ValueKind.CLASS and value.data in self.classes


@dataclass(frozen=True, slots=True)
class MultipleChoice:
    """Any subset of `classes`, the empty one too. Encoded as a multi-hot row; predicted as one Bernoulli per class."""

    classes: tuple[str, ...]
    kind: ValueKind = ValueKind.CLASSES

    def encode(self, value: Value) -> NDArray[np.float32]:
        """Multi-hot row, shape (C,). Raises ModelError for a value outside the space."""
        if not self.contains(value):
            raise ModelError(f"value {value.kind} is not a subset of the {len(self.classes)} classes of this control")
        chosen = set(value.data) if isinstance(value.data, tuple) else set()
        return np.array([name in chosen for name in self.classes], dtype=np.float32)

    def decode(self, row: NDArray[np.floating]) -> Value:
        """All classes with a probability of at least one half; row has shape (C,)."""
        return Value.of_classes([name for name, p in zip(self.classes, row, strict=True) if p >= 0.5])

    def contains(self, value: Value) -> bool:
        if value.kind is not ValueKind.CLASSES or not isinstance(value.data, tuple):
            return False
        return set(value.data) <= set(self.classes)


Space = SingleChoice | MultipleChoice


def _is_path(item: object) -> bool:
    return isinstance(item, list) and all(isinstance(part, str) for part in item)
