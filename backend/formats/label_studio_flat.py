"""Label Studio's flat exports, one annotation a row: JSON-MIN, CSV and TSV.

A choice stands there as plain text, several as {"choices": [...]}, everything else as a list of what the JSON export
has as values: [{"rating": 4}]. Which columns hold answers is told, in this order, by the labeling configuration, by an
option, or by the file (see `Columns`). Where a control has the name of a field of the task data its answers stand in
that field's place; where it has the name of a column that Label Studio writes itself, the export has lost them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.errors import NoVotes
from backend.formats import columns
from backend.formats.answers import KIND_OF, answer_of, flat_regions, is_structured, parsed, varies
from backend.formats.builder import NAN, DatasetBuilder
from backend.formats.dataset import Dataset, ReadOptions
from backend.formats.errors import FormatError, at_line
from backend.formats.json_stream import elements
from backend.formats.label_studio import Kinds, finished, why_unread
from backend.formats.scalars import as_id, as_seconds, as_weight
from backend.formats.table import ROLES
from backend.labeling import Control, LabelConfig
from backend.labeling.controls.base import PARTS
from backend.labeling.controls.per_region import PerRegion
from backend.labeling.written import finite_text, person
from model.data.spaces import Value

RESERVED = ("annotation_id", "annotator", "created_at", "id", "lead_time", "updated_at")
ALSO_THEIRS = ("agreement",)  # newer versions write it as well: a number for all annotations of a task
_LOOKED_AT = 5000  # rows by which columns are judged
Row = Mapping[str, Any]


def read_min(path: Path, options: ReadOptions) -> Dataset:
    """A JSON-MIN file. Raises FormatError naming the line."""
    rows: list[tuple[int, Row]] = []
    for line, row in elements(path, options.progress):
        if not isinstance(row, dict) or as_id(row.get("id")) is None:
            raise at_line(path, line, "a row with the id of a task was expected")
        rows.append((line, row))
    there = list(dict.fromkeys(key for _, row in rows for key in row))
    between = {key for _, row in rows[:_LOOKED_AT] for key in _between(row)}
    names = _answer_columns(path, there, [row for _, row in rows[:_LOOKED_AT]], between, options)
    return _read(path.stem, iter(rows), names, options)


def read_csv(path: Path, options: ReadOptions) -> Dataset:
    """A CSV or TSV export. Raises FormatError naming the line."""
    delimiter = columns.delimiter_of(path)
    there = columns.header(path, delimiter)
    read = columns.delimited(path, delimiter, list(dict.fromkeys(there)), options.progress)
    if "id" in read and (read["id"].codes < 0).any():
        row = int((read["id"].codes < 0).argmax())
        raise at_line(path, columns.line_of_row(path, delimiter, row), "it has no task")
    texts = {name: [*column.texts, None] for name, column in read.items()}
    codes = {name: column.codes.tolist() for name, column in read.items()}
    size = len(next(iter(codes.values()), []))

    def rows() -> Iterator[tuple[int, Row]]:
        for at in range(size):
            yield at + 1, {name: texts[name][codes[name][at]] for name in texts}

    first = [row for (_, row), _ in zip(rows(), range(_LOOKED_AT), strict=False)]
    names = _answer_columns(path, there, first, set(), options)
    return _read(path.stem, rows(), names, options, content=False)


def _read(
    name: str, rows: Iterator[tuple[int, Row]], names: Sequence[str], options: ReadOptions, *, content: bool = True
) -> Dataset:
    config = options.label_config
    controls = {} if config is None else {control.name: control for control in config.controls}
    builder = DatasetBuilder()
    kinds: Kinds = {}
    decode = _Decoder(controls, kinds)
    for line, row in rows:
        unit = as_id(row.get("id"))
        assert unit is not None
        builder.unit(unit)
        if content and unit not in builder.content:
            data = {key: each for key, each in row.items() if key not in names and key not in RESERVED}
            if data:
                builder.content[unit] = data
        builder.people.note(parsed(row.get("annotator")))
        number = finite_text(row.get("annotation_id"))
        annotator = _annotator(row.get("annotator")) or f"deleted:{as_id(row.get('annotation_id')) or line}"
        time = as_seconds(row.get("updated_at"))
        time = as_seconds(row.get("created_at")) if time is None else time
        lead = finite_text(row.get("lead_time"))
        lead_time = None if lead is None else as_weight(lead)
        builder.unread.annotations += 1
        for column in names:
            value, why = decode(column, row.get(column), row)
            if why:
                builder.unread.because(why_unread(column, why, config) if config is not None else
                                       f"in {column} that cannot be read")
            if value is not None:
                builder.vote(
                    unit, annotator, value, control=column, time=time or 0.0, known=time is not None,
                    number=None if number is None or not number.is_integer() else int(number),
                    lead_time_s=NAN if lead_time is None else lead_time,
                )
        if all(row.get(column) in (None, "") for column in names):
            builder.unread.because("empty")
    return finished(builder.dataset(name=name), config, kinds)


class _Decoder:
    """Cells -> values; equal texts in one column are decoded once."""

    def __init__(self, controls: Mapping[str, Control], kinds: Kinds) -> None:
        self._controls, self._kinds = controls, kinds
        self._known: dict[tuple[str, str], tuple[Value | None, str]] = {}

    def __call__(self, column: str, cell: object, row: Row) -> tuple[Value | None, str]:
        """The value, and the type of a region that was there and could not be read ("" otherwise)."""
        control = self._controls.get(column)
        own = isinstance(cell, str) and not getattr(control, "source", "")  # choices from task data: by the row
        if own and (column, cell) in self._known:
            return self._known[column, str(cell)]
        found = self._decoded(column, cell, control, row)
        if own:
            self._known[column, str(cell)] = found
        return found

    def _decoded(self, column: str, cell: object, control: Control | None, row: Row) -> tuple[Value | None, str]:
        regions = flat_regions(column, cell, control)
        if not regions:
            return None, ""
        whole = [region for region in regions if not PARTS & set(region["value"])]
        if not whole or isinstance(control, PerRegion):
            return None, "region"
        if control is None:
            value, kind = answer_of(whole)
            if value is not None:
                self._kinds.setdefault(column, set()).add(kind)
        else:
            value, kind = control.decode(whole, row), KIND_OF.get(control.tag, control.tag)
        return value, "" if value is not None else kind


def _answer_columns(
    path: Path, there: Sequence[str], rows: Sequence[Row], between: set[str], options: ReadOptions
) -> list[str]:
    """The columns that hold answers. Raises FormatError when they cannot be told, or were written over.

    Without a configuration or an option those are answers that are written like none but an answer, or differ within a
    task; in JSON-MIN also those that stand where answers do (`between` the id of the task and the annotator). Where
    there are none: a column with a usual name, or the only one.
    """
    candidates = [name for name in there if name not in RESERVED and not (
        name in ALSO_THEIRS and all(_is_share(row.get(name)) for row in rows))]
    listed = ", ".join(candidates) or "none"
    config = options.label_config
    if not rows:
        return []
    if config is not None:
        return _configured(path, config, candidates, options.control)
    if options.control:
        if options.control in RESERVED:
            raise _written_over(path, options.control)
        if options.control not in candidates:
            raise FormatError(f"{path.name} has no column {options.control}; it has {listed}.")
        return [options.control]
    units = [as_id(row.get("id")) for row in rows]
    telling = [
        name for name in candidates
        if any(is_structured(row.get(name)) for row in rows) or varies(units, [row.get(name) for row in rows])
    ]
    placed = [name for name in candidates if name in between]
    if placed and telling and next(iter(rows[0])) == "id":  # task data may have had an id: then all of it stands there
        placed = [name for name in placed if not _is_data(units, [row.get(name) for row in rows])]
    found = [name for name in candidates if name in telling or name in placed]
    if found:
        return found
    usual = [name for name in candidates if name.lower() in ROLES["label"]]
    chosen = candidates if len(candidates) == 1 else usual
    if not candidates:
        raise NoVotes(f"{path.name} has annotations, and no column with answers, so there are no votes.")
    if len(chosen) != 1:
        raise FormatError(f"Which column of {path.name} holds the answers? Say it with --control: {listed}.")
    return chosen


def _configured(path: Path, config: LabelConfig, candidates: Sequence[str], chosen: str) -> list[str]:
    known = [control.name for control in config.controls]
    lost = [name for name in known if name in RESERVED]
    found = [name for name in known if name in candidates]
    if chosen in lost or (lost and not found):
        raise _written_over(path, chosen or lost[0])
    if not found:
        raise NoVotes(f"{path.name} has no column of the controls {', '.join(known)}, so there are no votes; "
                      f"it has {', '.join(candidates) or 'none'}.")
    return found


def _written_over(path: Path, name: str) -> FormatError:
    return FormatError(f"The control {name} has the name of a column that Label Studio writes itself, so {path.name} "
                       "has lost its answers; use the JSON export.")


def _is_share(cell: object) -> bool:
    """Whether a cell is empty or a bare number, as Label Studio writes agreement."""
    return cell is None or cell == "" or finite_text(cell) is not None


def _is_data(units: Sequence[object], cells: Sequence[object]) -> bool:
    """Whether a column looks like task data: it is the same within every task, and another in most tasks."""
    if varies(units, cells):
        return False
    tasks = len(set(units))
    return tasks > 2 and len({str(cell) for cell in cells}) > tasks / 2 and not any(map(is_structured, cells))


def _between(row: Row) -> list[str]:
    keys = list(row)
    end = keys.index("annotator") if "annotator" in keys else len(keys)
    return keys[keys.index("id") + 1:end]


def _annotator(who: object) -> str:
    """An id, an e-mail address or an object with either, also as the text of a cell."""
    return person(parsed(who))
