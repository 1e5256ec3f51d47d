"""`export-blind`: the tasks that annotators are divided on, as a Label Studio import file without names or labels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.errors import ClientError, NotFound
from backend.settings import Settings

MOST = 50


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="the file to write (.json)")
    parser.add_argument("--control", metavar="NAME", default="", help="the control whose divided tasks are meant")
    parser.add_argument("--tasks", metavar="N", type=int, default=MOST,
                        help=f"at most this many, the most divided ones ({MOST} by default)")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from backend.formats.atomic import whole_file
    from backend.report.blind import blind_tasks
    from backend.report.pages import chosen_control
    from backend.report.standalone import NOTHING_YET
    from backend.services.statistics.reading import Reader

    out: Path = arguments.out
    if out.suffix.lower() != ".json":
        raise ClientError("--out takes a name that ends in .json.")
    if arguments.tasks < 1:
        raise ClientError("--tasks takes a whole number of at least 1.")
    store = open_store(settings)
    try:
        project = find_project(store, arguments.project)
        document = Reader(store).tasks(project.key)
        if document is None:
            raise NotFound(NOTHING_YET)
        control = chosen_control({"control": arguments.control}, tuple(document.controls))
        tasks = blind_tasks(store, project, document, control=control, most=arguments.tasks)
    finally:
        store.close()
    if not tasks:
        raise NotFound("No task of this project is divided, so there is nothing to rate again.")
    with whole_file(out) as aside:
        aside.write_text(json.dumps(tasks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", errors="replace")
    say(console, f"{out} holds {len(tasks)} task(s) without names and labels. In Label Studio make a new project with "
        "the same labeling configuration and import it; `meta.polyvox.task` names the original task.")
    return 0


COMMAND = Command(
    name="export-blind", help="divided tasks for a blind rating project", arguments=_arguments, run=_run,
    description="Write the tasks that two camps of annotators are divided on as a file that Label Studio imports: "
    "their content only, in an order that tells nothing, so that others can rate them without knowing who said what.",
)
