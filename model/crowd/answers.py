"""AnswerMatrix: the nominal votes of one control as three sorted integer columns, the input of every aggregator.

Built from `Votes` or from plain columns with any hashable ids (numbers with gaps, e-mail addresses). One vote per
(unit, annotator): the latest one; missing labels (None, NaN, a value of another type) are dropped and counted, and a
unit that keeps no vote stays in the table, unlabelled.

Shape legend: U units, A annotators, C classes, N votes.
Invariant: rows are sorted by (unit, annotator), so results do not depend on the order of the input rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from model.data.spaces import ValueKind
from model.data.votes import Votes
from model.errors import ModelError

Gold = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerMatrix:
    """N votes of A annotators on U units among C classes."""

    units: tuple[str, ...]  # U ids
    annotators: tuple[str, ...]  # A ids
    classes: tuple[str, ...]  # C names, the order of every class axis
    unit: NDArray[np.int32]  # (N,) ascending
    annotator: NDArray[np.int32]  # (N,) ascending within a unit
    label: NDArray[np.int32]  # (N,)
    weight: NDArray[np.float64] | None  # (N,) positive; None when every vote weighs one
    indptr: NDArray[np.int32]  # (U + 1,) votes of unit u are rows indptr[u]:indptr[u + 1]
    time: NDArray[np.float64] | None = None  # (N,) seconds; None when unknown or not asked for
    dropped: int = 0  # input rows without a usable label or weight

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(U, A, C)."""
        return len(self.units), len(self.annotators), len(self.classes)

    @property
    def voted(self) -> NDArray[np.bool_]:
        """(U,) whether the unit has a vote."""
        return np.diff(self.indptr) > 0

    @property
    def weights(self) -> NDArray[np.float64]:
        """(N,) the weights, ones where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def cell(self) -> NDArray[np.int64]:
        """(N,) position of each vote in a flattened (U, C) table."""
        return self.unit.astype(np.int64) * len(self.classes) + self.label

    @property
    def key(self) -> NDArray[np.int32]:
        """(N,) position of each vote in a flattened (A, C) table of what each annotator answered."""
        if len(self.annotators) * len(self.classes) > np.iinfo(np.int32).max:
            raise ModelError("annotators times classes exceeds 2^31")
        key: NDArray[np.int32] = self.annotator * np.int32(len(self.classes)) + self.label
        return key

    @classmethod
    def from_codes(
        cls, *, units: Sequence[str], annotators: Sequence[str], classes: Sequence[str], unit: ArrayLike,
        annotator: ArrayLike, label: ArrayLike, weight: ArrayLike | None = None, time: ArrayLike | None = None,
        keep_time: bool = False,
    ) -> AnswerMatrix:
        """From integer columns into id tables; a label of -1 is missing. Raises ModelError for codes out of range.

        `time` picks the latest of an annotator's votes on a unit; it stays in the result when `keep_time` is set.
        """
        unit_codes = _codes("unit", unit, len(units), lowest=0)
        annotator_codes = _codes("annotator", annotator, len(annotators), lowest=0)
        label_codes = _codes("label", label, len(classes), lowest=-1)
        weights = None if weight is None else np.asarray(weight, dtype=np.float64)
        times = None if time is None else np.asarray(time, dtype=np.float64)
        if len({len(unit_codes), len(annotator_codes), len(label_codes)}) != 1:
            raise ModelError("the columns of answers differ in length")
        if weights is not None and (len(weights) != len(unit_codes) or not np.all((weights >= 0) & (weights < np.inf))):
            raise ModelError("weights must be finite, not negative, and one for each vote")
        n_input = len(unit_codes)
        keep = label_codes >= 0
        if weights is not None:
            keep &= weights > 0
        if not keep.all():
            unit_codes, annotator_codes, label_codes = unit_codes[keep], annotator_codes[keep], label_codes[keep]
            weights = None if weights is None else weights[keep]
            times = None if times is None else times[keep]
        dropped = n_input - len(unit_codes)
        order = _order(unit_codes, annotator_codes, label_codes, times, len(units), len(annotators))
        if order is not None:
            unit_codes, annotator_codes, label_codes = unit_codes[order], annotator_codes[order], label_codes[order]
            weights = None if weights is None else weights[order]
            times = None if times is None else times[order]
        if weights is not None and np.all(weights == 1.0):
            weights = None
        indptr = np.zeros(len(units) + 1, dtype=np.int32)
        np.cumsum(np.bincount(unit_codes, minlength=len(units)), out=indptr[1:])
        return cls(
            units=tuple(units), annotators=tuple(annotators), classes=tuple(classes), unit=unit_codes,
            annotator=annotator_codes, label=label_codes, weight=weights, indptr=indptr,
            time=times if keep_time else None, dropped=dropped,
        )

    @classmethod
    def from_votes(
        cls, votes: Votes, control: str | None = None, *, classes: Sequence[str] | None = None, keep_time: bool = False
    ) -> AnswerMatrix:
        """The single-class votes of one control (all rows when None). Units of `votes` without one stay unlabelled.

        `classes` fixes names and order (votes outside are dropped); by default the classes that were given, sorted.
        """
        chosen = votes if control is None else votes.of_control(control)
        nominal = np.array([v.kind is ValueKind.CLASS for v in votes.values], dtype=np.bool_)
        if classes is None:
            used = np.zeros(len(votes.values), dtype=np.bool_)
            used[chosen.value] = True
            classes = sorted({str(votes.values[i].data) for i in np.flatnonzero(used & nominal)})
        code_of = {name: code for code, name in enumerate(classes)}
        codes = np.array(
            [code_of.get(str(v.data), -1) if ok else -1 for v, ok in zip(votes.values, nominal, strict=True)], np.int32
        )
        label = codes[chosen.value] if len(codes) else np.empty(0, np.int32)
        return cls.from_codes(
            units=votes.units, annotators=votes.annotators, classes=classes, unit=chosen.unit,
            annotator=chosen.annotator, label=label, weight=chosen.weight, time=chosen.time,
            keep_time=keep_time,
        )

    @classmethod
    def from_columns(
        cls, units: Sequence[Hashable], annotators: Sequence[Hashable], labels: Sequence[Hashable | None], *,
        weights: ArrayLike | None = None, times: ArrayLike | None = None, classes: Sequence[Hashable] | None = None,
        all_units: Sequence[Hashable] = (), all_annotators: Sequence[Hashable] = (),
    ) -> AnswerMatrix:
        """From three equally long columns of any ids; ids and classes are kept as strings, sorted.

        `all_units` / `all_annotators` add ids without votes; `classes` fixes names and order (labels outside are
        dropped). None and NaN labels are missing.
        """
        names = [None if is_missing(label) else str(label) for label in labels]
        class_table = sorted({n for n in names if n is not None}) if classes is None else [str(c) for c in classes]
        class_of = {name: code for code, name in enumerate(class_table)}
        unit_table, unit_codes = encode_ids(units, all_units)
        annotator_table, annotator_codes = encode_ids(annotators, all_annotators)
        label_codes = np.fromiter((-1 if n is None else class_of.get(n, -1) for n in names), np.int32, len(names))
        return cls.from_codes(
            units=unit_table, annotators=annotator_table, classes=class_table, unit=unit_codes,
            annotator=annotator_codes, label=label_codes, weight=weights, time=times, keep_time=times is not None,
        )

    def select(self, rows: NDArray[np.bool_]) -> AnswerMatrix:
        """The chosen votes over the same id tables; `rows` has shape (N,)."""
        indptr = np.zeros(len(self.units) + 1, dtype=np.int32)
        np.cumsum(np.bincount(self.unit[rows], minlength=len(self.units)), out=indptr[1:])
        return AnswerMatrix(
            units=self.units, annotators=self.annotators, classes=self.classes, unit=self.unit[rows],
            annotator=self.annotator[rows], label=self.label[rows],
            weight=None if self.weight is None else self.weight[rows], indptr=indptr,
            time=None if self.time is None else self.time[rows],
        )

    def take_units(self, chosen: NDArray[np.bool_]) -> AnswerMatrix:
        """The chosen units (U,) with all their votes; the other id tables stay."""
        rows = chosen[self.unit]
        position = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
        part = self.select(rows)
        return replace(
            part, units=tuple(name for name, taken in zip(self.units, chosen, strict=True) if taken),
            unit=position[part.unit], indptr=np.append(part.indptr[:-1][chosen], part.indptr[-1]).astype(np.int32),
        )

    def gold_codes(self, gold: Gold | None) -> NDArray[np.int32]:
        """(U,) class code of the gold label, -1 where none is known.

        Gold for units outside the table is ignored. Raises ModelError for a class outside `classes` and for two
        different gold labels on one unit.
        """
        codes = np.full(len(self.units), -1, dtype=np.int32)
        if gold is None:
            return codes
        pairs = list(gold.items() if isinstance(gold, Mapping) else gold)
        if not pairs:
            return codes
        unit_of = {name: i for i, name in enumerate(self.units)}
        class_of = {name: i for i, name in enumerate(self.classes)}
        for unit, name in pairs:
            if name not in class_of:
                raise ModelError(f"a gold label is not one of the {len(self.classes)} classes")
            position = unit_of.get(unit)
            if position is None:
                continue
            if codes[position] not in (-1, class_of[name]):
                raise ModelError(f"unit {unit!r} has two different gold labels")
            codes[position] = class_of[name]
        return codes


def group_order(codes: NDArray[np.int32], n_groups: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Stable counting sort, linear in N: (order (N,), indptr (n_groups + 1,))."""
    n = len(codes)
    one_each = np.arange(n + 1, dtype=np.int32)
    table = sparse.csr_array((np.zeros(n, np.int8), codes, one_each), shape=(n, max(n_groups, 1)))
    by_group = table.tocsc()
    return by_group.indices.astype(np.int32, copy=False), by_group.indptr.astype(np.int32, copy=False)


def _order(
    unit: NDArray[np.int32], annotator: NDArray[np.int32], label: NDArray[np.int32], time: NDArray[np.float64] | None,
    n_units: int, n_annotators: int,
) -> NDArray[np.int32] | None:
    """Rows sorted by (unit, annotator), the latest of each pair only; None when they are so already."""
    step = np.diff(unit)
    if np.all((step > 0) | ((step == 0) & (np.diff(annotator) > 0))):
        return None
    order, _ = group_order(annotator, n_annotators)
    order = order[group_order(unit[order], n_units)[0]]
    same = (np.diff(unit[order]) == 0) & (np.diff(annotator[order]) == 0)
    if not same.any():
        return order
    # Only rows of pairs that repeat are sorted again; equal times are settled by the label, not by the row order.
    repeated = np.zeros(len(order), dtype=np.bool_)
    repeated[:-1] |= same
    repeated[1:] |= same
    at = np.flatnonzero(repeated)
    rows = order[at]
    when = np.zeros(len(rows)) if time is None else np.nan_to_num(time[rows], nan=-np.inf)
    order[at] = rows[np.lexsort((label[rows], when, annotator[rows], unit[rows]))]
    latest: NDArray[np.int32] = order[np.append(~same, True)]
    return latest


def _codes(name: str, column: ArrayLike, n: int, *, lowest: int) -> NDArray[np.int32]:
    codes = np.asarray(column)
    if codes.size == 0:
        return np.empty(0, dtype=np.int32)
    if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
        raise ModelError(f"the {name} column must hold integer codes")
    if codes.min() < lowest or codes.max() >= n:
        raise ModelError(f"the {name} column points outside its table of {n}")
    return codes.astype(np.int32, copy=False)


def is_missing(label: object) -> bool:
    """None and NaN, whatever made them."""
    return label is None or (isinstance(label, float) and math.isnan(label))


def encode_ids(column: Sequence[Hashable], extra: Sequence[Hashable]) -> tuple[list[str], NDArray[np.int32]]:
    """Sorted id table (as strings, with those of `extra`) and the column's codes."""
    names = [str(item) for item in column]
    table = sorted(set(names) | {str(item) for item in extra})
    position = {name: i for i, name in enumerate(table)}
    return table, np.fromiter((position[name] for name in names), np.int32, len(names))
