"""What a table shows of its rows: order, filters and the page of it. Everything is checked against what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from backend.errors import ClientError
from backend.report.names import Names
from backend.report.table import Column, ordered

R = TypeVar("R")
PAGE_ROWS = 25
ROWS_AT_ONCE = 100_000
DIRECTIONS = ("asc", "desc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Generic[R]):
    """A part of a table."""

    rows: Sequence[R]
    total: int  # rows that pass the filters
    offset: int
    limit: int
    sort: str  # "" for the document's own order
    descending: bool

    @property
    def page(self) -> int:
        """From 1."""
        return self.offset // self.limit + 1

    @property
    def pages(self) -> int:
        """At least one."""
        return max(1, -(-self.total // self.limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The query string of a table, read and checked by `of`."""

    sort: str = ""
    order: str = ""
    offset: int = 0
    limit: int = PAGE_ROWS

    @classmethod
    def of(cls, query: Mapping[str, str], *, limit: int = PAGE_ROWS, paged: bool = False) -> Asked:
        """From ?sort=&order=&limit=&offset=, or with `paged` from ?sort=&order=&page=. Raises ClientError."""
        order = choice(query, "order", DIRECTIONS)
        if paged:
            page = whole(query, "page", 1, low=1, high=1_000_000)
            return cls(sort=query.get("sort", ""), order=order, limit=limit, offset=(page - 1) * limit)
        limit = whole(query, "limit", limit, low=1, high=ROWS_AT_ONCE)
        return cls(sort=query.get("sort", ""), order=order, limit=limit,
                   offset=whole(query, "offset", 0, low=0, high=10**12))

    def of_rows(self, rows: Sequence[R], columns: Sequence[Column[R]], names: Names) -> Shown[R]:
        """The part of these rows. Raises ClientError for a column that rows cannot be ordered by."""
        descending = self.order == "desc"
        if self.sort:
            column = next((each for each in columns if each.name == self.sort and each.sorts), None)
            if column is None:
                can = ", ".join(each.name for each in columns if each.sorts)
                raise ClientError(f"sort takes one of {can}.")
            descending = self.order == "desc" if self.order else not column.low_first
            rows = ordered(rows, column, names, descending=descending)
        part = rows[self.offset : self.offset + self.limit]
        return Shown(rows=part, total=len(rows), offset=self.offset, limit=self.limit, sort=self.sort,
                     descending=descending)


def choice(query: Mapping[str, str], name: str, choices: Sequence[str], default: str = "") -> str:
    """A parameter that takes one of some words. Raises ClientError with them."""
    given = query.get(name, "")
    if given and given not in choices:
        raise ClientError(f"{name} takes {' or '.join(choices) if choices else 'nothing here'}.")
    return given or default


def whole(query: Mapping[str, str], name: str, default: int, *, low: int, high: int) -> int:
    """A parameter that takes a whole number. Raises ClientError with its bounds."""
    given = query.get(name, "")
    if not given:
        return default
    value = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else -1
    if not low <= value <= high:
        raise ClientError(f"{name} takes a whole number from {low} to {high}.")
    return value
