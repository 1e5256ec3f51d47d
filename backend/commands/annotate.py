"""`annotate`: consensus labels as annotations of a service account."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console

from backend.bootstrap import build_services, desk_opener
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.commands.dataset import sentences
from backend.commands.fill import board_of
from backend.commands.progress import progress_bar
from backend.errors import ClientError
from backend.services.gaps.annotate import annotate
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    add = parser.add_argument
    add("--at-least", metavar="CONFIDENCE", type=float, default=0.9,
        help="write only what is at least so sure, from 0 to 1 (default: 0.9)")
    add("--token-file", metavar="FILE", type=Path,
        help="a file with the access token of the account that signs; by default LABEL_STUDIO_API_KEY is used")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    if not 0.0 <= arguments.at_least <= 1.0:
        raise ClientError("--at-least is a confidence from 0 to 1.")
    token = _token(arguments.token_file) if arguments.token_file else settings.label_studio_api_key
    if not token:
        raise ClientError("Say whose annotations these are: --token-file FILE, or set LABEL_STUDIO_API_KEY.")
    services = build_services(settings)
    try:
        project = find_project(services.store, arguments.project)
        with progress_bar("writing") as progress, sentences():
            found = annotate(
                board_of(services, project), desk_opener(settings)(token), services.label_studio,
                at_least=arguments.at_least, progress=progress,
            )
    finally:
        services.close()
    say(console, f"{found.written} annotations were written by {found.account or 'the account of the token'}; "
        f"{found.there} tasks had one of it before, {found.unsure} are not sure enough.")
    return 0


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{os.fspath(path)} cannot be read as a file with a token.") from error


COMMAND = Command(
    name="annotate", help="consensus labels as annotations of a service account", arguments=_arguments, run=_run,
    description="Write the predicted consensus of every task that is sure enough into Label Studio as an annotation, "
    "signed by the account whose token is used: one that nobody labels with. Each says in its meta that it is "
    "predicted, Polyvox never reads it as a vote, and a task counts as labelled by it. Can be repeated: tasks that "
    "the account has annotated are left alone.",
)
