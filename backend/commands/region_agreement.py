"""Agreement on regions of a Label Studio export, for `agreement --regions`: F1 and IoU, by control and by pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from backend.commands.base import Arguments, say
from backend.commands.dataset import show_table, write_columns, write_json
from backend.commands.progress import progress_bar
from backend.errors import ClientError, NoVotes
from backend.formats.json_stream import elements
from backend.formats.label_studio import authors, with_ids
from backend.formats.people import People
from backend.labeling import LabelConfig, read_task
from backend.labeling.regions import KINDS, Drawn, read_regions
from model.regions import Region, RegionsAgreement, regions_agreement

Columns = dict[str, list[Any]]
_NO_CONFIG = LabelConfig(controls=(), unmodelled=(), objects=(), unread=())
Units = dict[str, dict[str, Drawn]]  # task -> annotator -> what they drew


class _Given(NamedTuple):
    """The regions of an annotation, and what says how new it is."""

    annotator: str
    number: int
    time: float
    timed: bool
    drawn: Drawn


def run(arguments: Arguments, console: Console) -> int:
    """Read, compare, show, and write with --out. Raises ClientError where there are no regions."""
    drawn = _read(arguments.dataset)
    seen = {name for people in drawn.values() for each in people.values() for name in each.of_control}
    controls = sorted(seen & {arguments.control} if arguments.control else seen)
    if not controls:
        what = f"regions of {', '.join(KINDS.values())}"
        if arguments.control and seen:
            raise ClientError(f"No annotation of {arguments.dataset.name} has {what} with the control "
                              f"{arguments.control}.")
        raise NoVotes(f"{arguments.dataset.name} has no annotations." if not any(drawn.values()) else
                      f"{arguments.dataset.name} has annotations, and none of them has {what}.")
    found = {name: _agreement(drawn, name, arguments) for name in controls}
    overall, pairs = _overall(found), _pairs(found)
    show_table(console, "Agreement on regions", overall, range(len(controls)))
    console.print()
    show_table(console, f"Pairs of annotators, least agreeing first ({len(pairs['control'])})", pairs,
               range(min(len(pairs["control"]), max(arguments.top, 0))))
    unreadable = sum(each.unreadable for people in drawn.values() for each in people.values())
    if unreadable:
        say(console, f"Regions that say no place: {unreadable}; they are left out.")
    if arguments.out is not None:
        _write(arguments.out, overall, pairs)
        say(console, f"written to {arguments.out}")
    return 0


def _read(path: Path) -> Units:
    """The newest annotation of each annotator on each task; skipped ones are none."""
    listed: dict[str, list[_Given]] = {}
    people = People()
    if not path.is_file():
        raise ClientError("Regions are read from Label Studio's JSON export, which is one file.")
    with progress_bar() as progress:
        for line, task in elements(path, progress):
            if not isinstance(task, dict):
                raise ClientError(f"{path.name}, line {line}: a task was expected.")
            for author in authors(task):
                people.note(author)
            snapshot = read_task(_NO_CONFIG, with_ids(task), project_id=0, control_arm_percent=0, shown_since=None,
                                 known_annotators={})
            listed.setdefault(str(snapshot.task.id), []).extend(
                _Given(each.annotator, each.id, each.updated_at.timestamp(), each.timed, read_regions(each.result))
                for each in snapshot.annotations if not each.was_cancelled)
    renamed = people.renamed(dict.fromkeys(each.annotator for mine in listed.values() for each in mine))
    return {unit: _newest(mine, renamed) for unit, mine in listed.items()}


def _newest(given: list[_Given], renamed: Mapping[str, str]) -> dict[str, Drawn]:
    """annotator -> the newest; the one with the higher id where times are equal, or one of them cannot be read."""
    mine = [(renamed.get(each.annotator, each.annotator), each) for each in sorted(given, key=lambda each: each.number)]
    unsure = {name for name, each in mine if not each.timed}
    return {name: each.drawn for name, each in sorted(
        mine, key=lambda entry: 0.0 if entry[0] in unsure else entry[1].time)}


def _agreement(drawn: Units, control: str, arguments: Arguments) -> RegionsAgreement:
    of_unit: dict[str, dict[str, list[Region]]] = defaultdict(dict)
    for unit, people in drawn.items():
        for annotator, each in people.items():
            of_unit[unit][annotator] = list(each.of_control.get(control, ()))
    return regions_agreement(of_unit, draws=max(arguments.draws, 1), seed=max(arguments.seed, 0))


def _overall(found: dict[str, RegionsAgreement]) -> Columns:
    rows = found.values()
    return {
        "control": list(found), "tasks": [each.units for each in rows], "F1": [each.f1 for each in rows],
        "low": [each.low for each in rows], "high": [each.high for each in rows],
        "exact F1": [each.exact for each in rows], "IoU": [each.iou for each in rows],
    }


def _pairs(found: dict[str, RegionsAgreement]) -> Columns:
    rows = sorted(((name, pair) for name, each in found.items() for pair in each.pairs), key=lambda row: row[1].f1)
    return {
        "control": [name for name, _ in rows], "annotator": [pair.one for _, pair in rows],
        "other": [pair.other for _, pair in rows], "common": [pair.units for _, pair in rows],
        "F1": [pair.f1 for _, pair in rows], "exact F1": [pair.exact for _, pair in rows],
        "IoU": [pair.iou for _, pair in rows],
    }


def _write(path: Path, overall: Columns, pairs: Columns) -> None:
    if path.suffix.lower() != ".json":
        write_columns(path, pairs)
        return
    write_json(path, {name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
                      for name, table in (("overall", overall), ("pairs", pairs))})
