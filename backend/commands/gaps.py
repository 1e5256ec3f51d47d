"""`gaps`: which labels to ask for next in a project, and the replay of policies on a data set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.bootstrap import build_services
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.commands.dataset import check_output, write_json
from backend.commands.gaps_simulation import OPTIONS, refuse, run_simulation, simulation_arguments
from backend.errors import ClientError
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.report.names import Names
    from backend.services.gaps.asking import Wishes
    from backend.services.gaps.documents import Gaps

SHOWN = 20


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser, optional=True)
    add = parser.add_argument_group("asking in a project").add_argument
    add("--policy", metavar="POLICY", help="by what labels are chosen; default: the setting gap_policy")
    add("--per-task", metavar="N", type=int, help="new labels of one task at most; default: the setting gap_per_task")
    add("--mask-names", action="store_true",
        help="call annotators \"annotator-1\" and so on, whatever the setting mask_names says")
    simulation_arguments(parser)


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    if (arguments.project is None) == (arguments.simulate is None):
        raise ClientError("Say which project is meant, gaps PROJECT, or which data set, gaps --simulate DATASET.")
    if arguments.simulate is not None:
        refuse(arguments, ("policy", "per_task", "mask_names"), "goes with a project: gaps PROJECT.")
        return run_simulation(arguments, console)
    refuse(arguments, OPTIONS, "goes with a data set: gaps --simulate DATASET.")
    check_output(arguments.out, (".json", ".csv"))
    services = build_services(settings)
    try:
        from backend.labeling import parse_config
        from backend.report.names import names_of
        from backend.services.overrides import settings_of

        project = find_project(services.store, arguments.project)
        chosen = settings_of(settings, project)
        wishes = _wishes(arguments, chosen)
        document = services.gaps.document(
            project, parse_config(project.label_config), lambda fraction, note: None, wishes=wishes)
        people = dict.fromkeys(row.annotator for found in document.controls.values() for row in found.rows)
        names = names_of(services.statistics, services.store, project.key, list(people),
                         mask=arguments.mask_names or chosen.mask_names)
    finally:
        services.close()
    _show(document, names, console)
    if arguments.out is not None:
        _write(document, names, arguments.out)
        say(console, f"written: {arguments.out}")
    return 0


def _wishes(arguments: Arguments, settings: Settings) -> Wishes:
    """Those of the settings, but for what was said here. Raises ClientError."""
    from dataclasses import replace

    from backend.services.gaps.asking import Wishes
    from model.acquisition.registry import POLICIES

    if arguments.policy is not None and arguments.policy not in POLICIES:
        raise ClientError(f"No policy is called {arguments.policy}; there are {', '.join(POLICIES)}.")
    if arguments.budget is not None and arguments.budget < 0:
        raise ClientError("--budget takes a whole number from 0 on.")
    if arguments.per_task is not None and arguments.per_task < 1:
        raise ClientError("--per-task takes a whole number of at least 1.")
    wishes = Wishes.of(settings)
    return replace(
        wishes, policy=arguments.policy or wishes.policy,
        budget=wishes.budget if arguments.budget is None else float(arguments.budget),
        per_task=wishes.per_task if arguments.per_task is None else arguments.per_task,
    )


def _show(document: Gaps, names: Names, console: Console) -> None:
    for control, found in document.controls.items():
        given, predicted, missing = (sum(getattr(row, name) for row in found.rows)
                                     for name in ("given", "predicted", "missing"))
        say(console, f"{control}: {given} labels given, {predicted} predicted, {missing} missing; {found.done} of "
            f"{found.judged} tasks are done, which saves {found.saved} labels")
        if not found.asks:
            say(console, "no label is worth asking for" if not found.waiting else
                f"nothing to ask: {found.waiting} tasks wait to be encoded, or for a first version")
            continue
        table = Table("task", "whom", "gain", "seconds", "why", box=None, padding=(0, 1))
        for each in found.asks[:SHOWN]:
            cost = "" if each.cost is None else f"{each.cost:.1f}"
            row = (str(each.task), names.name(each.annotator), f"{each.gain:.4f}", cost, each.sentence)
            table.add_row(*map(Text, row))
        console.print(table)
        if len(found.asks) > SHOWN:
            say(console, f"and {len(found.asks) - SHOWN} more, by {found.policy}; --out writes all of them")
    if not document.controls:
        say(console, "This project has no control that Polyvox models.")


def _records(document: Gaps, names: Names) -> Iterator[dict[str, Any]]:
    for control, found in document.controls.items():
        for each in found.asks:
            yield {"control": control, "task": each.task, "annotator": names.slug(each.annotator),
                   "name": names.name(each.annotator), "gain": each.gain, "cost": each.cost, "why": each.sentence}


def _write(document: Gaps, names: Names, path: Path) -> None:
    from backend.formats.atomic import whole_file
    from backend.report.filled import delimited

    if path.suffix.lower() == ".json":
        write_json(path, {
            "version": document.header.model_version, "asks": list(_records(document, names)),
            "controls": {name: {"policy": each.policy, "done": each.done, "saved": each.saved, "judged": each.judged,
                                "tasks": each.tasks} for name, each in document.controls.items()}})
        return
    columns = ("control", "task", "annotator", "name", "gain", "cost", "why")
    with whole_file(path) as aside, aside.open("w", encoding="utf-8", errors="replace", newline="") as file:
        file.writelines(delimited(columns, _records(document, names)))


COMMAND = Command(
    name="gaps", help="which votes to ask for next, and how well policies do", arguments=_arguments, run=_run,
    description="For a project: print which labels to ask for next, of whom and why, and how many are saved by tasks "
    "that are done. With --simulate: replay policies of asking for votes on a data set; a part of each task's votes is "
    "held out, the others are bought in batches, and the consensus of what is bought so far is scored against the "
    "majority of those held out. See docs/gaps.md and docs/acquisition.md.",
)
