"""Writes data sets as CSV, TSV or Parquet tables that `table` reads back to the same votes.

Columns beside task, annotator and label appear only where they say something. Tasks without votes get a row of their
own. How a vote came to be (its provenance) is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from backend.formats.atomic import whole_file
from backend.formats.dataset import DEFAULT_CONTROL, Dataset, WriteOptions
from model.data.spaces import Value, ValueKind

_ROWS = 1 << 17  # rows that are turned into text at a time


def write_csv(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """Comma-separated, UTF-8, quoted where needed."""
    write_delimited(vote_table(dataset), path, ",")


def write_tsv(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """Tab-separated."""
    write_delimited(vote_table(dataset), path, "\t")


def write_parquet(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """Parquet with dictionary-encoded columns."""
    with whole_file(path) as aside:
        pq.write_table(vote_table(dataset), aside)


def write_delimited(table: pa.Table, path: Path, delimiter: str) -> None:
    """Any table as text, whole or not at all."""
    plain = pa.schema([(field.name, _plain(field.type)) for field in table.schema])
    quoting = "needed" if _needs_quotes(table, delimiter) else "none"  # Arrow's "needed" quotes every text
    style = pa_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
    with whole_file(path) as aside, aside.open("wb") as file:
        file.write((delimiter.join(table.column_names) + "\n").encode())
        with pa_csv.CSVWriter(file, plain, write_options=style) as writer:
            for first in range(0, table.num_rows, _ROWS):
                writer.write_table(table.slice(first, _ROWS).cast(plain))


def vote_table(dataset: Dataset) -> pa.Table:
    """The data set as one Arrow table, a vote a row; then a row for each task (and control) that only has gold or
    nothing at all."""
    votes = dataset.votes
    more_units, more_controls = _without_votes(dataset)
    none = np.full(len(more_units), -1, dtype=np.int32)
    unit, control = np.concatenate([votes.unit, more_units]), np.concatenate([votes.control, more_controls])
    value = np.concatenate([votes.value, none])
    columns: dict[str, pa.Array] = {
        "task": encoded(unit, votes.units),
        "annotator": encoded(np.concatenate([votes.annotator, none]), votes.annotators),
        "label": encoded(value, [_text(each) for each in votes.values]),
    }
    if votes.controls not in ((), (DEFAULT_CONTROL,)):
        columns["control"] = encoded(control, votes.controls)
    if any(each.kind is not ValueKind.CLASS for each in votes.values):
        columns["kind"] = encoded(value, [each.kind.value for each in votes.values])
    lead_time = dataset.lead_time_s
    for name, column, usual in (("time", votes.time, 0.0), ("weight", votes.weight, 1.0)):
        if np.any(column != usual):
            columns[name] = _numbers(column, len(none))
    if lead_time is not None:
        columns["lead_time"] = _numbers(lead_time, len(none))
    if dataset.gold:
        columns["gold"] = _gold(dataset, unit, control)
    return pa.table(columns)


def _without_votes(dataset: Dataset) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(unit, control) of the gold labels that no vote's row can carry, and (unit, -1) of units with nothing."""
    votes = dataset.votes
    carried = np.zeros((len(votes.units), len(votes.controls)), dtype=np.bool_)
    carried[votes.unit, votes.control] = True
    golden = np.zeros_like(carried)
    for position, name in enumerate(votes.controls):
        gold = dataset.gold.get(name, {})
        golden[:, position] = [unit in gold for unit in votes.units]
    units, controls = np.nonzero(golden & ~carried)
    silent = np.flatnonzero(~(carried | golden).any(axis=1))
    return (
        np.concatenate([units, silent]).astype(np.int32),
        np.concatenate([controls, np.full(len(silent), -1)]).astype(np.int32),
    )


def encoded(codes: NDArray[np.int32], table: Sequence[str]) -> pa.DictionaryArray:
    """Codes (-1: empty) into a table of texts."""
    indices = pa.array(codes, pa.int32(), mask=codes < 0)
    positions: dict[str, int] = {}
    for text in table:
        positions.setdefault(text, len(positions))
    if len(positions) < len(table):  # a dictionary may not hold a text twice: kinds do
        place = np.array([positions[text] for text in table], dtype=np.int32)
        indices = pa.array(np.append(place, 0)[codes], pa.int32(), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(positions), pa.string()))


def _text(value: Value) -> str:
    return str(value.data) if value.kind is ValueKind.CLASS else value.to_json()


def _numbers(column: NDArray[np.floating], more: int) -> pa.Array:
    whole = np.concatenate([column.astype(np.float64), np.full(more, np.nan)])
    return pa.array(whole, mask=np.isnan(whole))


def _gold(dataset: Dataset, unit: NDArray[np.int32], control: NDArray[np.int32]) -> pa.DictionaryArray:
    """Gold label of each row's task and control."""
    votes = dataset.votes
    labels = sorted({label for gold in dataset.gold.values() for label in gold.values()})
    code_of = {label: code for code, label in enumerate(labels)}
    codes = np.full(len(unit), -1, dtype=np.int32)
    for position, name in enumerate(votes.controls):
        gold = dataset.gold.get(name, {})
        table = np.array([code_of[gold[each]] if each in gold else -1 for each in votes.units], dtype=np.int32)
        rows = control == position
        codes[rows] = table[unit[rows]]
    return encoded(codes, labels)


def _needs_quotes(table: pa.Table, delimiter: str) -> bool:
    """Whether a text holds the delimiter, a quote, a line end, or spaces that a reader may cut off."""
    pattern = f'[{delimiter}"\r\n]|^\\s|\\s$|^$'
    for column in table.columns:
        for chunk in column.chunks:
            texts = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
            if pa.types.is_string(texts.type) and pc.any(pc.match_substring_regex(texts, pattern)).as_py():
                return True
    return False


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
