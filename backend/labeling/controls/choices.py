"""`<Choices>`: one of several labels (`single`, `single-radio`) or any number of them (`multiple`), for the whole task.

A region is {"type": "choices", "value": {"choices": [...]}} with one entry per chosen choice (see `options` for what an
entry is). Label Studio makes no region where nothing is chosen.

The classes of a single choice are ordered where `ordered="true"` says so, in the order in which they are written, or
where each of at least three is a number, by its value or its alias; then they stand by that number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.labeling.controls.base import NO_DATA, Control, Place, Region, Unmodelled
from backend.labeling.controls.options import Option, OptionTable, from_data, options_of_data, options_of_tag
from backend.labeling.task_data import resolve
from model.data.spaces import MultipleChoice, SingleChoice, Space, Value, ValueKind
from model.errors import ModelError

MAX_DYNAMIC_CLASSES = 256  # options that are new with every task are no classes that could be learned

_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(\.[0-9]{1,12})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(Control):
    """A `<Choices>` tag."""

    multiple: bool
    nested: bool  # stored as paths
    options: tuple[Option, ...]  # those written in the config
    ordered: bool
    source: str  # template of the options that a task brings along, "" where there are none
    table: OptionTable = field(compare=False, repr=False)  # of `options`

    @classmethod
    def read(cls, place: Place) -> Choices | Unmodelled:
        """The control of a tag, or why it is not modelled yet."""
        tag = place.tag
        options = options_of_tag(tag)
        nested = tag.is_true("allownested")
        table = OptionTable(options, nested=nested)
        source = tag.get("value").strip() if "$" in tag.get("value") else ""
        reason = _why_not(tag.get("name"), options, source, table)
        if reason:
            return Unmodelled(name=place.name, tag="Choices", reason=reason)
        return cls(
            name=place.name, tag="Choices", to_names=place.to_names, nested=nested, options=options, source=source,
            multiple=tag.get("choice").strip().lower() == "multiple", table=table, ordered=tag.is_true("ordered"),
        )

    def signature(self) -> list[Any]:
        """See `Control`."""
        stored = [list(option.stored) for option in self.options]
        said = [self.tag, self.multiple, self.nested, list(self._static_classes()), stored, self.source]
        return [*said, "ordered"] if self.ordered else said

    def space(self, observed: Mapping[Value, int] | None = None) -> Space | None:
        """See `Control`. Of the classes that only `observed` knows, the MAX_DYNAMIC_CLASSES most frequent are taken."""
        classes = self._static_classes()
        if self.source and observed:
            given: Counter[str] = Counter()
            for value, times in observed.items():
                given.update(dict.fromkeys(self._labels(value), times))
            new = [label for label in given if label not in classes]
            frequent = sorted(new, key=lambda label: (-given[label], label))[:MAX_DYNAMIC_CLASSES]
            classes += tuple(sorted(frequent))
        if not classes:
            return None
        return MultipleChoice(classes) if self.multiple else self._single(classes)

    def _single(self, classes: tuple[str, ...]) -> SingleChoice:
        """In their order, where they have one."""
        if self.ordered:
            return SingleChoice(classes, ordered=len(classes) > 2)
        alias = {option.path[-1]: option.stored[-1] for option in self.options}
        numbers = [_number(alias.get(name, name), name) for name in classes]
        if len(classes) < 3 or self.nested or None in numbers or len(set(numbers)) < len(numbers):
            return SingleChoice(classes)
        if numbers == sorted(numbers, key=lambda number: -(number or 0.0)):
            return SingleChoice(classes, ordered=True)  # from the largest down is an order too
        by_number = sorted(zip(numbers, classes, strict=True), key=lambda pair: pair[0] or 0.0)
        return SingleChoice(tuple(name for _, name in by_number), ordered=True)

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        entries: list[Any] = []
        answered = False
        for region in self.own_regions(regions):
            chosen = region["value"].get("choices")
            if chosen is not None:
                answered = True
                entries += chosen if isinstance(chosen, list) else [chosen]
        table = self._table_for(data)
        if not all(map(table.readable, entries)):
            return None  # an answer of which a part cannot be read is not known
        labels = list(dict.fromkeys(table.decode(entries, multiple=self.multiple)))
        if self.multiple and answered:
            return Value.of_classes(labels)
        if not self.multiple and len(labels) == 1:
            return Value.of_class(labels[0])
        # Several answers to a question that takes one: kept for what it is; no single-choice space contains it.
        return Value.of_classes(labels) if labels else None

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`."""
        if self.offered(value, data) != value:
            raise ModelError(f"{self.tag} {self.name!r} does not offer this value of kind {value.kind.value!r}")
        table = self._table_for(data)
        entries = [entry for label in self._labels(value) for entry in table.encode(label)]
        return [self.region("choices", {"choices": entries}, score)] if entries else []

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        table = self._table_for(data)
        if not self.multiple:
            return value if value.kind is ValueKind.CLASS and value.data in table.classes else None
        if value.kind is not ValueKind.CLASSES:
            return None
        labels = self._labels(value)
        left = [label for label in labels if label in table.leaf_classes]
        return Value.of_classes(left) if left or not labels else None

    def _static_classes(self) -> tuple[str, ...]:
        return self.table.leaf_classes if self.multiple else self.table.classes

    def _table_for(self, data: Mapping[str, Any]) -> OptionTable:
        if not self.source:
            return self.table
        return OptionTable((*self.options, *options_of_data(resolve(data, self.source))), nested=self.nested)

    def _labels(self, value: Value) -> tuple[str, ...]:
        if value.kind is ValueKind.CLASS and isinstance(value.data, str):
            return (value.data,)
        if value.kind is ValueKind.CLASSES and isinstance(value.data, tuple):
            return tuple(label for label in value.data if isinstance(label, str))
        return ()


def _number(*texts: str) -> float | None:
    """The first of the texts that is a number."""
    for text in texts:
        if _NUMBER.fullmatch(text.strip()):
            return float(text)
    return None


def _why_not(name: str, options: Sequence[Option], source: str, table: OptionTable) -> str:
    """A sentence that says why such choices cannot be modelled; "" when they can."""
    if any(map(from_data, options)):
        return f"Choices '{name}' is not modelled yet: the text of its choices comes from task data one by one."
    if table.clash:
        return f"Choices '{name}' is not modelled: {table.clash}, so the answers cannot be told apart."
    if not options and not source:
        return f"Choices '{name}' is not modelled: it offers no choices."
    return ""


