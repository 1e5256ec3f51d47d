"""Tables as data: what a column is called, what it means, and how its value is read off a row.

The same columns head the tables of the pages, name the fields of the API, order rows and fill CSV files. A value is a
number, a text, or None where it is not known; None comes last in either order.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from backend.report.names import Names

Cell = float | int | str | None
R = TypeVar("R")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet takes a cell that begins so for a formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[R]):
    """One column of rows R."""

    name: str  # of the field in the API
    title: str
    help: str
    read: Callable[[R, Names], Cell]
    kind: str = "decimal"  # or percent, seconds, whole, id, text, time
    sorts: bool = True
    low_first: bool = False  # which end is looked at first


def records(columns: Sequence[Column[R]], rows: Iterable[R], names: Names) -> Iterator[dict[str, Cell]]:
    """Each row as column name -> value."""
    for row in rows:
        yield {column.name: column.read(row, names) for column in columns}


def ordered(rows: Sequence[R], column: Column[R], names: Names, *, descending: bool) -> list[R]:
    """Rows by one column; those without a value are last either way, equal ones stay in their order."""
    keyed = [(column.read(row, names), row) for row in rows]
    known = [each for each in keyed if each[0] is not None]
    known.sort(key=lambda each: _key(each[0]), reverse=descending)
    return [row for _, row in known] + [row for value, row in keyed if value is None]


def column_of(columns: Sequence[Column[R]], name: str) -> Column[R] | None:
    """The column of this name that rows can be ordered by."""
    return next((each for each in columns if each.name == name and each.sorts), None)


def as_csv(names: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> str:
    """A CSV text with a header. Text that a spreadsheet would calculate gets an apostrophe in front."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([safe(row[name]) for name in names])
    return file.getvalue()


def safe(value: Cell) -> Any:
    """A cell of a CSV file."""
    if isinstance(value, str) and value.startswith(FORMULA) and not _is_number(value):
        return "'" + value
    return "" if value is None else value


def _is_number(text: str) -> bool:
    """Of a label such as "-3.5": it calculates nothing, and with an apostrophe it would be another label."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _key(value: Cell) -> Any:
    return value.casefold() if isinstance(value, str) else value
