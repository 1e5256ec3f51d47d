"""`report`: a project's figures as one HTML file that needs no server."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.errors import ClientError
from backend.ports import utc_now
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="the file to write (.html)")
    parser.add_argument("--mask-names", action="store_true",
                        help="call annotators \"Annotator 1\" and so on, whatever the setting mask_names says")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from backend.formats.atomic import whole_file
    from backend.report.standalone import report
    from backend.services.overrides import settings_of
    from backend.services.statistics.reading import Reader

    out: Path = arguments.out
    if out.suffix.lower() not in (".html", ".htm"):
        raise ClientError("--out takes a name that ends in .html.")
    store = open_store(settings)
    try:
        project = find_project(store, arguments.project)
        mask = arguments.mask_names or settings_of(settings, project).mask_names
        text = report(Reader(store), store, project, mask=mask, label_studio=settings.label_studio_url, at=utc_now())
    finally:
        store.close()
    with whole_file(out) as aside:
        aside.write_text(text, encoding="utf-8", errors="replace")
    say(console, f"{out} holds the report ({out.stat().st_size / 1e6:.1f} MB); any browser opens it.")
    return 0


COMMAND = Command(
    name="report", help="figures of a project as one HTML file", arguments=_arguments, run=_run,
    description="Write what the QA site shows of a project into one HTML file: coverage, agreement, annotators with "
    "profiles, tasks, flags and gaps. The file needs no server and no network and holds no script.",
)
