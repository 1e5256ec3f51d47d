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

    def decide(
        self, p: NDArray[np.floating], offered: NDArray[np.bool_], *, complete: bool = True
    ) -> tuple[list[Value | None], NDArray[np.float64]]:
        """What to say of each row, and how sure that is: (R) values and (R,) probabilities; p and offered are (R, C).

        A value is made of offered classes alone; None, with any probability, where nothing is offered. `complete`: the
        offered classes are all there are, so that the probability of the others is theirs.
        """
        kept = np.where(offered, p, 0.0).astype(np.float64)
        values, said = self._said(kept, np.where(offered, p, -1.0).argmax(1))
        share = kept.sum(1) if complete else np.ones(len(kept))
        sure = kept[np.arange(len(kept)), said] / np.maximum(share, 1e-12)
        some = np.count_nonzero(offered, axis=1).tolist()
        return [value if any_ else None for value, any_ in zip(values, some, strict=True)], sure

    def _said(self, kept: NDArray[np.float64], best: NDArray[np.intp]) -> tuple[list[Value], NDArray[np.intp]]:
        """(R) values and (R,) the class whose probability is that of the value; `best` is the likeliest one."""
        one_of = [Value.of_class(label) for label in self.classes]
        return [one_of[at] for at in best.tolist()], best


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

    def decide(
        self, p: NDArray[np.floating], offered: NDArray[np.bool_], *, complete: bool = True
    ) -> tuple[list[Value | None], NDArray[np.float64]]:
        """What to say of each row, and how sure all of it is together; see `SingleChoice.decide`."""
        chosen, which = np.unique(offered & (p >= 0.5), axis=0, return_inverse=True)
        sets = [self.decode(row.astype(np.float64)) for row in chosen]
        some = np.count_nonzero(offered, axis=1).tolist()
        values = [sets[at] if any_ else None for at, any_ in zip(which.ravel().tolist(), some, strict=True)]
        return values, np.asarray(np.where(offered, np.maximum(p, 1.0 - p), 1.0).prod(1), np.float64)


Space = SingleChoice | MultipleChoice


def _is_path(item: object) -> bool:
    return isinstance(item, list) and all(isinstance(part, str) for part in item)
