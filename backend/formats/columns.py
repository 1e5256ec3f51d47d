"""Columns of CSV, TSV and Parquet files as dictionary-encoded arrays: codes and the distinct texts, no object per row.

Reads only the columns that are asked for, in batches, in Arrow. When Arrow stumbles, the file is read again slowly to
name the line.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from backend.formats.errors import FormatError, at_line
from backend.ports import Progress

_TEXT = pa.dictionary(pa.int32(), pa.string())
_BLOCK = 1 << 22  # bytes
_WHOLE = 2.0**53  # up to here a float tells all whole numbers apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """`texts[codes]` is the column; -1 where the cell is empty. The texts are sorted and all in use."""

    codes: NDArray[np.int32]  # (N,)
    texts: tuple[str, ...]


def header(path: Path, delimiter: str) -> list[str]:
    """The first row. Raises FormatError for an empty file or one that is no text."""
    for _, row in _rows(path, delimiter):
        return row
    raise FormatError(f"{path.name} is empty.")


def delimiter_of(path: Path) -> str:
    """The delimiter of a text table, judged by its first line."""
    with path.open("rb") as file:
        first = file.readline(1 << 16).decode("utf-8", errors="replace")
    return max("\t,;", key=first.count)


def delimited(path: Path, delimiter: str, names: Sequence[str], progress: Progress) -> dict[str, Column]:
    """Columns of a text table by their names in the header; quoted cells may span lines."""
    if _quotes(path) % 2:  # Arrow would take all the rest of the file for one cell
        for _ in _rows(path, delimiter):
            pass
    source = pa.OSFile(str(path))
    size = max(source.size(), 1)
    batches = []
    try:
        reader = pa_csv.open_csv(
            source,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                include_columns=list(names), column_types=dict.fromkeys(names, _TEXT), strings_can_be_null=True,
                null_values=[""], quoted_strings_can_be_null=True,
            ),
        )
        for batch in reader:
            batches.append(batch)
            progress(min(source.tell() / size, 1.0), path.name)
    except pa.ArrowInvalid as error:
        raise _name_the_line(path, delimiter) from error
    table = pa.Table.from_batches(batches, schema=pa.schema([(name, _TEXT) for name in names]))
    return _encoded(table, names)


def parquet_names(path: Path) -> list[str]:
    """Column names of a Parquet file."""
    return list(_parquet(path).schema_arrow.names)


def parquet(
    path: Path, names: Sequence[str], progress: Progress, *, strict: Sequence[str] = ()
) -> dict[str, Column]:
    """Columns of a Parquet file; numbers become text, whole ones without a point. NaN is an empty cell, except in the
    `strict` columns, where it stays what it is."""
    file = _parquet(path)
    groups = []
    for group in range(file.num_row_groups):
        groups.append(file.read_row_group(group, columns=list(names)))
        progress((group + 1) / file.num_row_groups, path.name)
    table = pa.concat_tables(groups) if groups else file.read(columns=list(names))
    texts = [_as_text(path, name, table.column(name), keep_nan=name in strict) for name in names]
    return _encoded(pa.table(texts, names=list(names)), names)


def numbers(column: Column, parse: Callable[[str], float | None]) -> tuple[NDArray[np.float64], int | None]:
    """(N,) numbers with NaN for empty cells, and the row of the first cell that is no number."""
    try:
        table = np.asarray(pc.cast(pa.array(column.texts, pa.string()), pa.float64()))
    except pa.ArrowInvalid:
        parsed = [parse(text) for text in column.texts]
        bad = np.array([each is None for each in parsed], dtype=np.bool_)
        if bad.any():
            return np.empty(0), int(np.flatnonzero(np.append(bad, False)[column.codes])[0])
        table = np.array([np.nan if each is None else each for each in parsed])
    return np.append(table, np.nan)[column.codes], None


def line_of_row(path: Path, delimiter: str, row: int) -> int:
    """The line on which a row (0 is the first below the header) begins; quoted cells may span lines."""
    for position, (line, _) in enumerate(_rows(path, delimiter)):
        if position == row + 1:
            return line
    return 0


def _encoded(table: pa.Table, names: Sequence[str]) -> dict[str, Column]:
    return {name: _column(table.column(name)) for name in names}


def _column(chunks: pa.ChunkedArray) -> Column:
    if pa.types.is_null(chunks.type):
        return Column(codes=np.full(len(chunks), -1, dtype=np.int32), texts=())
    if not pa.types.is_dictionary(chunks.type):
        chunks = chunks.dictionary_encode()
    whole = chunks.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # older Arrow gives an array only when there is one chunk
        whole = whole.chunk(0) if whole.num_chunks else pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), [])
    words = whole.dictionary.cast(pa.string())
    codes = np.asarray(whole.indices.fill_null(-1)).astype(np.int32, copy=False)
    order = np.asarray(pc.sort_indices(words))
    place = np.empty(len(order) + 1, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    place[-1] = -1
    return Column(codes=place[codes], texts=tuple(words.take(pa.array(order)).to_pylist()))


def _as_text(path: Path, name: str, column: pa.ChunkedArray, *, keep_nan: bool) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        raise FormatError(f"{path.name}: the column {name} holds {kind}, not single values.")
    if pa.types.is_floating(kind):
        if not keep_nan:
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        given = pc.drop_null(column)
        small = pc.less(pc.abs(given), pa.scalar(_WHOLE, kind)) if kind != pa.float16() else pc.is_finite(given)
        if pc.all(pc.and_(small, pc.equal(pc.round(given), given))).as_py() is not False:
            column = column.cast(pa.int64())
    if pa.types.is_timestamp(kind):
        column = pc.divide(column.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
    try:
        text = column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(f"{path.name}: the column {name} holds {kind}, which is no text.") from error
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{path.name} is not a complete Parquet file.") from error


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of every row that is not empty, slowly and strictly."""
    with path.open("rb") as file:
        reader = csv.reader(_lines(path, file), delimiter=delimiter, strict=True)
        begins = 1
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                what = "a quoted cell does not end" if "end of data" in str(error) else "its quotes are wrong"
                raise at_line(path, begins, what) from error
            if row is None:
                return
            if row:
                yield begins, row
            begins = reader.line_num + 1


def _lines(path: Path, file: Iterable[bytes]) -> Iterator[str]:
    for number, raw in enumerate(file, start=1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise at_line(path, number, "it is not UTF-8 text") from error


def _quotes(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b'"') for chunk in iter(lambda: file.read(_BLOCK), b""))


def _name_the_line(path: Path, delimiter: str) -> FormatError:
    width = 0
    for line, row in _rows(path, delimiter):
        width = width or len(row)
        if len(row) != width:
            return at_line(path, line, f"it has {len(row)} cells, the header has {width}")
    return FormatError(f"{path.name} is not a table that can be read.")
