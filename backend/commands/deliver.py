"""`deliver`: write the published version's predictions into Label Studio now."""

from __future__ import annotations

import argparse

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, find_project, project_argument
from backend.commands.follow import follow
from backend.errors import ClientError
from backend.ports import utc_now
from backend.services.identity import held
from backend.services.triggers import Triggers
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument("--no-wait", action="store_true", help="queue the delivery and return at once")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    store = open_store(settings)
    try:
        project = find_project(store, arguments.project)
        triggers = Triggers(store=store, settings=settings, clock=utc_now)
        if not triggers.connected:
            raise ClientError("Label Studio is not connected: set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY.")
        if not triggers.delivers(project):
            raise ClientError("Delivery is switched off for this project (POLYVOX_DELIVER, POLYVOX_SHADOW_MODE).")
        if reason := held(store.instance):
            raise ClientError(reason)
        if project.version is None:
            raise ClientError(f"Project {project.label_studio_id} has no published version yet.")
        job = triggers.deliver_now(project.key, force=True)
        if arguments.no_wait:
            console.print("The delivery is queued; `status` shows how it goes.")
            return 0
        job = follow(store, settings, job, console)
        console.print(", ".join(f"{name}: {figure}" for name, figure in job.figures.items()))
        return 0
    finally:
        store.close()


COMMAND = Command(
    name="deliver", help="write predictions into Label Studio now", arguments=_arguments, run=_run,
    description="Deliver the published version now: the consensus for every open task and each annotator's own "
    "predictions, without waiting for the rate limit.",
)
