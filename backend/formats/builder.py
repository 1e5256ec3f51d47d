"""DatasetBuilder: collects votes one by one into integer columns, so that millions of rows are no millions of objects.

For formats that come as JSON; tables go column by column (see `table`).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.formats.dataset import DEFAULT_CONTROL, Dataset
from backend.formats.newest import in_order, question_of
from backend.formats.people import People
from backend.formats.unread import Unread
from model.data.spaces import Value
from model.data.votes import Provenance, Votes

NAN = float("nan")


class DatasetBuilder:
    """Add units and votes in any order, then take the `dataset`."""

    def __init__(self) -> None:
        self._units: dict[str, int] = {}
        self._annotators: dict[str, int] = {}
        self._controls: dict[str, int] = {}
        self._values: dict[Value, int] = {}
        self._unit, self._annotator, self._control, self._value = (array("i") for _ in range(4))
        self._provenance, self._known = array("b"), array("b")
        self._number = array("q")
        self.unread = Unread()
        self.people = People()
        self._time, self._weight, self._lead_time = (array("d") for _ in range(3))
        self._weighted = self._clocked = False
        self.gold: dict[str, dict[str, str]] = {}
        self.content: dict[str, Mapping[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._unit)

    @property
    def controls(self) -> tuple[str, ...]:
        """The controls that votes were added for."""
        return tuple(self._controls)

    def knows(self, unit: str) -> bool:
        """Whether the unit was added."""
        return unit in self._units

    def unit(self, name: str) -> None:
        """Add a unit, with or without votes to come."""
        self._units.setdefault(name, len(self._units))

    def set_gold(self, unit: str, label: str, control: str = DEFAULT_CONTROL) -> bool:
        """Note a gold label; False when another one is known already."""
        self.unit(unit)
        return self.gold.setdefault(control, {}).setdefault(unit, label) == label

    def vote(
        self, unit: str, annotator: str, value: Value, *, control: str = DEFAULT_CONTROL, time: float = 0.0,
        weight: float = 1.0, lead_time_s: float = NAN, provenance: Provenance = Provenance.MANUAL,
        known: bool = True, number: int | None = None,
    ) -> None:
        """Add one vote. `known`: its time could be read; `number`: the id that settles what is newer where times do
        not (the place in the file without one)."""
        self._unit.append(self._units.setdefault(unit, len(self._units)))
        self._annotator.append(self._annotators.setdefault(annotator, len(self._annotators)))
        self._control.append(self._controls.setdefault(control, len(self._controls)))
        self._value.append(self._values.setdefault(value, len(self._values)))
        self._time.append(time)
        self._weight.append(weight)
        self._lead_time.append(lead_time_s)
        self._provenance.append(int(provenance))
        self._known.append(known)
        self._number.append(len(self._number) if number is None else number)
        self._weighted |= weight != 1.0
        self._clocked |= lead_time_s == lead_time_s

    def dataset(
        self, *, name: str = "", classes: Mapping[str, tuple[str, ...]] | None = None, ordinal: bool = False
    ) -> Dataset:
        """Everything that was added."""
        controls = tuple(self._controls) or tuple(classes or ()) or (DEFAULT_CONTROL,)
        unit, control = (np.array(each, np.int32) for each in (self._unit, self._control))
        annotator, annotators = self._by_person()
        time = in_order(
            question_of(unit, annotator, control, len(annotators), len(controls)), np.array(self._time),
            np.array(self._known, np.bool_), np.array(self._number, np.int64),
        )
        votes = Votes.from_columns(
            units=tuple(self._units), annotators=annotators, controls=controls,
            values=tuple(self._values), unit=unit, annotator=annotator, value=np.array(self._value, np.int32),
            control=control if len(controls) > 1 else None, time=time if time.any() else None,
            weight=np.array(self._weight) if self._weighted else None,
            provenance=np.array(self._provenance, np.int8) if any(self._provenance) else None,
        )
        return Dataset(
            votes=votes, name=name, gold=self.gold, classes=classes or {}, ordinal=ordinal, content=self.content,
            unread=self.unread, lead_time_s=np.array(self._lead_time) if self._clocked else None,
        )

    def _by_person(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """The annotators of the votes, and their names; one for each person."""
        codes = np.array(self._annotator, np.int32)
        renamed = self.people.renamed(self._annotators)
        if not renamed:
            return codes, tuple(self._annotators)
        table: dict[str, int] = {}
        place = [table.setdefault(renamed.get(name, name), len(table)) for name in self._annotators]
        return np.array(place, np.int32)[codes], tuple(table)
