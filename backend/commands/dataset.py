"""What the commands on data sets share: the arguments that say where the votes are, reading with progress, results.

Data sets are files and folders, not projects of the live service; nothing here touches its database.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.commands.base import Arguments, say
from backend.commands.progress import progress_bar
from backend.errors import ClientError, NoVotes
from backend.formats import WHAT, Dataset, ReadOptions, open_dataset
from backend.formats.unread import check_votes
from backend.labeling import LabelConfig, parse_config
from model.errors import ModelError

if TYPE_CHECKING:
    import pyarrow as pa

    from model.crowd import AnswerMatrix

SUFFIXES = (".csv", ".tsv", ".parquet", ".json")


def dataset_arguments(parser: argparse.ArgumentParser) -> None:
    """The positional DATASET and how to read it."""
    parser.add_argument("dataset", metavar="DATASET", type=Path, help="file or folder with the votes; its format is "
                        "found by its content: " + "; ".join(f"{name} ({what})" for name, what in WHAT.items()))
    reading_arguments(parser)


def reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for reading; `convert` has its own names for the paths."""
    parser.add_argument("--format", metavar="FORMAT", choices=tuple(WHAT), help="the format, where it is known better")
    parser.add_argument("--control", metavar="NAME", default="",
                        help="the control whose answers are meant, where there are several")
    parser.add_argument("--label-config", metavar="FILE", type=Path,
                        help="labeling configuration (XML) of a Label Studio export; without it choices are read as "
                        "they stand there")
    parser.add_argument("--trust-ground-truth", action="store_true",
                        help="take Label Studio's ground-truth annotations for gold labels, not for votes (it marks "
                        "imported annotations so, whether or not they are)")


def load(arguments: Arguments) -> Dataset:
    """The data set that the arguments name; what of it could not be read is told on stderr.

    Raises FormatError with a sentence, NoVotes where there is nothing to work on.
    """
    with progress_bar() as progress:
        options = ReadOptions(
            label_config=label_config(arguments), control=arguments.control,
            trust_ground_truth=arguments.trust_ground_truth, progress=progress,
        )
        dataset = open_dataset(arguments.dataset, arguments.format, options)
    weightless = int((dataset.votes.weight <= 0).sum())
    if weightless == len(dataset.votes) > 0:
        dataset.unread.because("of weight 0", weightless)
    check_votes(arguments.dataset.name, len(dataset.votes) - weightless, dataset.unread)
    for sentence in told(dataset):
        print(f"polyvox: {sentence}", file=sys.stderr)
    return dataset


def told(dataset: Dataset) -> list[str]:
    """Sentences on what was changed in reading, and on what is no vote."""
    unread, spaces = dataset.unread.said(), dataset.spaces
    outside = []
    for control, space in spaces.items():
        mine = dataset.votes.of_control(control)
        inside = np.array([space.contains(value) for value in mine.values], np.bool_)
        if len(mine) and not (left := inside[mine.value]).all():
            outside.append(f"{int((~left).sum())} votes with {control} are outside of what the labeling configuration "
                           "offers; they are not compared.")
    return [*dataset.unread.notes, *([f"No vote: {unread}."] if unread else []), *outside]


def label_config(arguments: Arguments) -> LabelConfig | None:
    """The labeling configuration of --label-config."""
    path: Path | None = arguments.label_config
    if path is None:
        return None
    try:
        return parse_config(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ClientError(f"{path.name} is not UTF-8 text.") from error


def answers_of(dataset: Dataset, control: str, *, times: bool = False) -> AnswerMatrix:
    """The single-class votes of a control. Raises NoVotes where the control has other answers."""
    from model.crowd import AnswerMatrix
    from model.data.numbers import NumberBins
    from model.data.spaces import ValueKind

    space = dataset.spaces.get(control)
    fits = space is not None and space.kind is ValueKind.CLASS and not isinstance(space, NumberBins)
    strange = set() if fits else dataset.kinds(control) - {ValueKind.CLASS}
    if strange:
        raise NoVotes(f"The control {control} has answers of kind {min(strange).value}; this needs single classes.")
    classes = space.classes if fits and space is not None else dataset.classes_of(control)
    return AnswerMatrix.from_votes(dataset.votes, control, classes=classes, keep_time=times and dataset.timed)


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr; what the model cannot use becomes a sentence."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext(), sentences():
        yield


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """ModelError -> ClientError with a sentence."""
    try:
        yield
    except ModelError as error:
        text = str(error)
        raise ClientError(f"{text[:1].upper()}{text[1:]}.") from error


def show_table(console: Console, title: str, columns: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> None:
    """Some rows of a table of columns; numbers are rounded, what is unknown is empty."""
    say(console, title, "bold")
    table = Table(*columns, box=None, padding=(0, 1))
    for row in rows:
        table.add_row(*(Text(cell(column[row])) for column in columns.values()))
    console.print(table)


def cell(item: Any) -> str:
    """A table cell."""
    if item is None or (isinstance(item, float) and item != item):
        return ""
    return f"{item:.3f}" if isinstance(item, float) else str(item)


def check_output(path: Path | None, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Refuse an --out that cannot be written before any work is done."""
    if path is not None and path.suffix.lower() not in suffixes:
        raise ClientError(f"--out takes a name that ends in {', '.join(suffixes)}.")


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """A table by the suffix of its path."""
    import pyarrow as pa

    write_table(path, pa.table(dict(columns)))


def write_table(path: Path, table: pa.Table) -> None:
    """An Arrow table as CSV, TSV, Parquet or JSON (a list of rows), whole or not at all."""
    import pyarrow.parquet as pq

    from backend.formats.atomic import whole_file
    from backend.formats.table_writer import write_delimited

    match path.suffix.lower():
        case ".csv":
            write_delimited(table, path, ",")
        case ".tsv":
            write_delimited(table, path, "\t")
        case ".parquet":
            with whole_file(path) as aside:
                pq.write_table(table, aside)
        case _:
            write_json(path, table.to_pylist())


def write_json(path: Path, item: Any) -> None:
    """JSON with null for what is not known."""
    from backend.formats.atomic import whole_file

    with whole_file(path) as aside:
        aside.write_text(json.dumps(_without_nan(item), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _without_nan(item: Any) -> Any:
    if isinstance(item, float) and item != item:
        return None
    if isinstance(item, Mapping):
        return {key: _without_nan(each) for key, each in item.items()}
    return [_without_nan(each) for each in item] if isinstance(item, list | tuple) else item


