"""`explain`: what each annotator's expected label on a task rests on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.bootstrap import Services, build_services
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.errors import ClientError, NotFound
from backend.ports import utc_now
from backend.records import Project
from backend.services.explanation.documents import TaskExplanation
from backend.settings import Settings

KINDS = (".html", ".htm", ".png", ".json")


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument("--task", metavar="N", type=int, required=True, help="id of a task in Label Studio")
    parser.add_argument("--annotator", metavar="WHO", action="append", default=[],
                        help="number or name of an annotator; may be given several times (those who voted, without)")
    parser.add_argument("--control", metavar="NAME", help="of a picture (.png): the control; the first one without")
    parser.add_argument("--by", choices=("attribution", "attention"), default="attribution",
                        help="of a picture (.png): what matters, or where they look")
    parser.add_argument("--image", metavar="K", type=int, default=0, help="of a picture (.png): which image, from 0")
    parser.add_argument("-o", "--out", metavar="FILE", type=Path,
                        help="the file to write: .html, .png (heat over an image) or .json; a table without")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    out: Path | None = arguments.out
    if out is not None and out.suffix.lower() not in KINDS:
        raise ClientError(f"--out takes a name that ends in {', '.join(KINDS)}.")
    services = build_services(settings)
    try:
        project = find_project(services.store, arguments.project)
        who = _annotators(services, project, arguments.annotator)
        document = services.explanations.task(
            project, arguments.task, annotators=who, within_s=None, encode=True
        )
        if out is None:
            _show(document, console)
        else:
            _write(out, services, project, document, arguments)
            say(console, f"{out} holds the explanation of task {document.task} by version {document.version}.")
        return 0
    finally:
        services.close()


def _annotators(services: Services, project: Project, wanted: list[str]) -> list[str]:
    """The ids that numbers or names stand for. Raises NotFound."""
    known = services.store.votes.activity(project.key)
    ids = {each.annotator for each in known}
    names = {each.name: each.annotator for each in known}
    for each in wanted:
        if each not in ids and each not in names:
            raise NotFound(f"There is no annotator {each} with votes in this project.")
    return [each if each in ids else names[each] for each in wanted]


def _write(
    out: Path, services: Services, project: Project, document: TaskExplanation, arguments: Arguments
) -> None:
    from backend.formats.atomic import whole_file
    from backend.report.explanations.file import as_html, as_picture
    from backend.report.explanations.page import masked
    from backend.report.links import Links
    from backend.report.names import Names
    from backend.report.pages import Look
    from backend.report.texts import texts_of
    from backend.services.overrides import settings_of
    from backend.services.statistics.codec import plain

    people = {each.annotator: each.name for each in services.store.votes.activity(project.key)}
    names = Names(people, mask=settings_of(services.settings, project).mask_names)

    def picture(piece: int) -> bytes:
        return services.explanations.picture(project, document.task, piece)

    match out.suffix.lower():
        case ".json":
            made = json.dumps(plain(masked(document, names)), indent=1, ensure_ascii=False).encode("utf-8", "replace")
        case ".png":
            control = arguments.control or next(iter(document.network_share))
            if control not in document.network_share:
                raise NotFound(f"There is no control {control} in version {document.version}.")
            made = as_picture(document, names, control=control, way=arguments.by, piece=arguments.image,
                              picture=picture)
        case _:
            links = Links(project=project.label_studio_id, label_studio=services.settings.label_studio_url)
            look = Look(project=project, names=names, links=links, texts=texts_of(services.store, project))
            made = as_html(look, document, picture=picture, at=utc_now()).encode("utf-8", "replace")
    with whole_file(out) as aside:
        aside.write_bytes(made)


def _show(document: TaskExplanation, console: Console) -> None:
    from backend.report.explanations.words import strongest

    table = Table("annotator", "control", "vote", "served", "from content alone", "rests on",
                  "better than a random order by",
                  box=None, padding=(0, 2))
    for each in document.annotators:
        for control, answer in each.controls.items():
            top = strongest(document.text, document.places, answer.attribution or ())
            cells = (
                each.name, control, answer.vote or "", f"{answer.served} ({answer.confidence:.2f})",
                f"{answer.answer} ({answer.probability:.2f})", ", ".join(f"{place} {w:+.2f}" for place, w in top),
                "" if answer.faithful is None else f"{answer.faithful.attribution:+.3f}",
            )
            table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


COMMAND = Command(
    name="explain", help="what each annotator's expected label on a task rests on", arguments=_arguments, run=_run,
    description="Explain what the published version expects of annotators on a task: which words, parts of a picture "
    "or moments their answer rests on, where their attention goes, and how far both lead chance. Reads only.",
)
