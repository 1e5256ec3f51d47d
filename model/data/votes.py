"""Votes: the one data shape that every learner, aggregator and metric takes.

Columnar and dictionary-encoded: five equally long integer columns point into small id tables, so that five million
votes are five arrays, not five million objects.

Shape legend: N votes, U units, A annotators, K controls, V distinct values.
Invariant: rows may stand in any order; nothing may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Value
from model.errors import ModelError


class Provenance(IntEnum):
    """How a vote came to be; an accepted suggestion is the model's word, not evidence."""

    MANUAL = 0  # given by hand
    ACCEPTED = 1  # a pre-annotation submitted unchanged
    CHANGED = 2  # began as a pre-annotation, then edited
    IMPORTED = 3  # came with a task import; nobody knows how it was made


@dataclass(frozen=True, slots=True)
class Vote:
    """One row of `Votes`, for code that handles a few votes at a time."""

    unit: str
    annotator: str
    control: str
    value: Value
    time: float = 0.0  # seconds since the epoch
    weight: float = 1.0
    provenance: Provenance = Provenance.MANUAL
    scored: bool = True  # False: the annotator saw a pre-annotation first, so the vote must not score or calibrate


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """N votes over id tables. Build it with `from_votes`, or from columns as they are."""

    units: tuple[str, ...]  # U ids
    annotators: tuple[str, ...]  # A ids
    controls: tuple[str, ...]  # K names
    values: tuple[Value, ...]  # V distinct values
    unit: NDArray[np.int32]  # (N,) index into units
    annotator: NDArray[np.int32]  # (N,) index into annotators
    control: NDArray[np.int32]  # (N,) index into controls
    value: NDArray[np.int32]  # (N,) index into values
    time: NDArray[np.float64]  # (N,) seconds since the epoch
    weight: NDArray[np.float32]  # (N,)
    provenance: NDArray[np.int8]  # (N,) Provenance
    scored: NDArray[np.bool_]  # (N,) may be used to score and calibrate

    def __post_init__(self) -> None:
        keys = (self.unit, self.annotator, self.control, self.value)
        facts = (self.time, self.weight, self.provenance, self.scored)
        if len({len(column) for column in (*keys, *facts)}) != 1:
            raise ModelError("the columns of Votes differ in length")

    def __len__(self) -> int:
        return len(self.unit)

    @classmethod
    def from_votes(cls, votes: Iterable[Vote]) -> Votes:
        """Build from single votes; id tables are sorted, so that the result does not depend on the order of rows."""
        rows = list(votes)
        units = tuple(sorted({row.unit for row in rows}))
        annotators = tuple(sorted({row.annotator for row in rows}))
        controls = tuple(sorted({row.control for row in rows}))
        values = tuple(sorted({row.value for row in rows}, key=lambda value: (value.kind, value.to_json())))
        unit_of, annotator_of = _positions(units), _positions(annotators)
        control_of = _positions(controls)
        value_of = {value: index for index, value in enumerate(values)}
        return cls(
            units=units,
            annotators=annotators,
            controls=controls,
            values=values,
            unit=np.fromiter((unit_of[row.unit] for row in rows), np.int32, len(rows)),
            annotator=np.fromiter((annotator_of[row.annotator] for row in rows), np.int32, len(rows)),
            control=np.fromiter((control_of[row.control] for row in rows), np.int32, len(rows)),
            value=np.fromiter((value_of[row.value] for row in rows), np.int32, len(rows)),
            time=np.fromiter((row.time for row in rows), np.float64, len(rows)),
            weight=np.fromiter((row.weight for row in rows), np.float32, len(rows)),
            provenance=np.fromiter((row.provenance for row in rows), np.int8, len(rows)),
            scored=np.fromiter((row.scored for row in rows), np.bool_, len(rows)),
        )

    @classmethod
    def from_columns(
        cls, *, units: Sequence[str], annotators: Sequence[str], values: Sequence[Value], unit: NDArray[np.integer],
        annotator: NDArray[np.integer], value: NDArray[np.integer], controls: Sequence[str] = ("label",),
        control: NDArray[np.integer] | None = None, time: NDArray[np.floating] | None = None,
        weight: NDArray[np.floating] | None = None, provenance: NDArray[np.integer] | None = None,
    ) -> Votes:
        """Build from codes into id tables, without an object per row; ids without votes stay in their tables.

        The tables may stand in any order and come out sorted, so that the result is the same as that of `from_votes`.
        A column that is left out holds one constant (the first control, time 0, weight 1, made by hand) and takes no
        memory. Raises ModelError for a table with repeats and for codes outside their table.
        """
        unit_ids, units_at = _sorted_table("unit", units, unit)
        annotator_ids, annotators_at = _sorted_table("annotator", annotators, annotator)
        control_ids, controls_at = _sorted_table("control", controls, np.zeros(0) if control is None else control)
        texts = [f"{each.kind}\x00{each.to_json()}" for each in values]
        _, values_at = _sorted_table("value", texts, value)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        n = len(units_at)
        return cls(
            units=unit_ids, annotators=annotator_ids, controls=control_ids, values=tuple(values[i] for i in order),
            unit=units_at, annotator=annotators_at, value=values_at,
            control=np.broadcast_to(np.int32(control_ids.index(controls[0])), n) if control is None else controls_at,
            time=np.broadcast_to(np.float64(0.0), n) if time is None else np.asarray(time, dtype=np.float64),
            weight=np.broadcast_to(np.float32(1.0), n) if weight is None else np.asarray(weight, dtype=np.float32),
            provenance=np.broadcast_to(np.int8(Provenance.MANUAL), n) if provenance is None
            else np.asarray(provenance, dtype=np.int8),
            scored=np.broadcast_to(np.bool_(True), n),
        )

    def select(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> Votes:
        """The chosen rows over the same id tables."""
        return Votes(
            units=self.units, annotators=self.annotators, controls=self.controls, values=self.values,
            unit=self.unit[rows], annotator=self.annotator[rows], control=self.control[rows], value=self.value[rows],
            time=self.time[rows], weight=self.weight[rows], provenance=self.provenance[rows], scored=self.scored[rows],
        )

    def of_control(self, name: str) -> Votes:
        """The votes of one control; empty when nobody used it."""
        if name not in self.controls:
            return self.select(np.zeros(len(self), dtype=np.bool_))
        return self.select(self.control == self.controls.index(name))


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


def _sorted_table(
    name: str, table: Sequence[str], codes: NDArray[Any]
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The ids in order and the codes (N,) that point into them."""
    column = np.asarray(codes).astype(np.int32, copy=False)
    if len(column) and (int(column.min()) < 0 or int(column.max()) >= len(table)):
        raise ModelError(f"the {name} column points outside its table of {len(table)}")
    if all(before < after for before, after in pairwise(table)):
        return tuple(table), column
    order = sorted(range(len(table)), key=table.__getitem__)
    ids = tuple(table[i] for i in order)
    if not all(before < after for before, after in pairwise(ids)):
        raise ModelError(f"the {name} table has the same entry twice")
    place = np.empty(len(table), dtype=np.int32)
    place[order] = np.arange(len(table), dtype=np.int32)
    return ids, place[column]
