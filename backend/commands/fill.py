"""`fill`: the filled matrix of a project as a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from backend.bootstrap import Services, build_services
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.commands.dataset import check_output
from backend.errors import ClientError
from backend.labeling import parse_config
from backend.records import Project
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.report.table import Cell
    from backend.services.gaps.answers import Board

ENDINGS = (".csv", ".tsv", ".json", ".parquet")
_CELLS = 1_000_000  # in a group of rows of a Parquet file


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    add = parser.add_argument
    add("-o", "--out", metavar="FILE", type=Path, help="the file to write (.csv, .tsv, .json or .parquet)")
    add("--control", metavar="NAME", default="", help="the control that is meant; the first one by default")
    add("--only-gaps", action="store_true", help="leave out the labels that annotators gave")
    add("--wide", action="store_true", help="one row for each task, with columns for each annotator and the consensus")
    add("--mask-names", action="store_true",
        help="call annotators \"annotator-1\" and so on, whatever the setting mask_names says")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    if arguments.out is None:
        raise ClientError("Say where to write the filled matrix: fill PROJECT -o FILE.")
    check_output(arguments.out, ENDINGS)
    services = build_services(settings)
    try:
        project = find_project(services.store, arguments.project)
        board = board_of(services, project)
        rows = _write(services, project, board, arguments)
    finally:
        services.close()
    by = f"version {board.version}" if board.version else "votes alone, since there is no version yet"
    say(console, f"{arguments.out} holds {rows} rows; where the source is \"predicted\", nobody has given the label: "
        f"it is what {by} expects.")
    return 0


def board_of(services: Services, project: Project) -> Board:
    """Raises LabelConfigError where the configuration cannot be read."""
    return services.gaps.board(project, parse_config(project.label_config))


def _write(services: Services, project: Project, board: Board, arguments: Arguments) -> int:
    """Returns the rows written."""
    from backend.formats.atomic import whole_file
    from backend.report.filled import LONG, as_json, delimited, long_records, wide_columns, wide_records
    from backend.report.names import names_of
    from backend.services.gaps.fill import control_of, filled, people_of
    from backend.services.overrides import settings_of

    mask = arguments.mask_names or settings_of(services.settings, project).mask_names
    people, control = people_of(board), control_of(board, arguments.control)
    names = names_of(services.statistics, services.store, project.key, people, mask=mask)
    tasks = filled(board, control, people, only_gaps=arguments.only_gaps)
    counted = Counted(
        wide_records(tasks, people, names, version=board.version) if arguments.wide
        else long_records(tasks, names, control=control, version=board.version))
    columns = wide_columns(people, names) if arguments.wide else list(LONG)
    ending = arguments.out.suffix.lower()
    with whole_file(arguments.out) as aside:
        if ending == ".parquet":
            write_parquet(columns, counted, aside)
            return counted.rows
        about: Mapping[str, Cell] = {"project": project.label_studio_id, "control": control, "version": board.version}
        pieces = as_json(about, columns, counted) if ending == ".json" else delimited(
            columns, counted, "\t" if ending == ".tsv" else ",")
        with aside.open("w", encoding="utf-8", errors="replace", newline="") as file:
            file.writelines(pieces)
    return counted.rows


class Counted:
    """An iterator that knows how many went through."""

    def __init__(self, rows: Iterator[Mapping[str, Cell]]) -> None:
        self._all = rows
        self.rows = 0

    def __iter__(self) -> Iterator[Mapping[str, Cell]]:
        for row in self._all:
            self.rows += 1
            yield row


def write_parquet(columns: Sequence[str], rows: Counted, path: Path) -> None:
    """In groups of rows, so that memory stays small."""
    from itertools import islice

    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(_clean(name), _parquet_type(name)) for name in columns])
    every, size = iter(rows), max(1, _CELLS // len(columns))
    with pq.ParquetWriter(path, schema) as writer:
        while part := list(islice(every, size)):
            arrays = [pa.array([_clean(row[name]) for row in part], _parquet_type(name)) for name in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _clean(item: Any) -> Any:
    """Half a surrogate pair, which JSON can hold and UTF-8 cannot, becomes a question mark as in the other files."""
    return item.encode("utf-8", "replace").decode("utf-8") if isinstance(item, str) else item


def _parquet_type(column: str) -> Any:
    import pyarrow as pa

    if column == "task":
        return pa.int64()
    return pa.float64() if column.endswith("probability") else pa.string()


COMMAND = Command(
    name="fill", help="the filled annotation matrix as a file", arguments=_arguments, run=_run,
    description="Write a label for every task and annotator: the ones that were given, and for every gap what the "
    "published version (before the first one, votes alone) expects, with its probability. The column `source` tells "
    "the two apart. Gaps of tasks that are not encoded yet are left out.",
)
