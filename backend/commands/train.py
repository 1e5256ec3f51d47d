"""`train`: one training now."""

from __future__ import annotations

import argparse

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, find_project, project_argument
from backend.commands.follow import follow
from backend.ports import utc_now
from backend.services.triggers import Triggers
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument("--full", action="store_true", help="start from scratch, not from the published version")
    parser.add_argument("--no-wait", action="store_true", help="queue the training and return at once")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    store = open_store(settings)
    try:
        project = find_project(store, arguments.project)
        job = Triggers(store=store, settings=settings, clock=utc_now).train_now(
            project.key, full=arguments.full)
        if arguments.no_wait:
            console.print("The training is queued; `status` shows how it goes.")
            return 0
        job = follow(store, settings, job, console)
        console.print("{version} is {verdict}: {reason}".format(**job.figures), soft_wrap=True)
        return 0
    finally:
        store.close()


COMMAND = Command(
    name="train", help="train a project now", arguments=_arguments, run=_run,
    description="Train a new version from the votes that Polyvox has, without waiting for the usual trigger. The "
    "version is published unless the gate finds it noticeably worse than the present one; the verdict is printed "
    "either way.",
)
