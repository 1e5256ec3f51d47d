"""`adopt`: make a copied or restored database an instance of its own, which delivers."""

from __future__ import annotations

import argparse

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, say
from backend.ports import utc_now
from backend.records import JobKind
from backend.services.identity import held
from backend.services.triggers import Triggers
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    """None: it is about the one database of the settings."""


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    store = open_store(settings)
    try:
        if not held(store.instance):
            say(console, "This Polyvox is no copy and delivers already; nothing was changed.")
            return 0
        store.instance.adopt()
        triggers = Triggers(store=store, settings=settings, clock=utc_now)
        for project in store.projects.all() if triggers.connected else []:
            store.jobs.enqueue(JobKind.RECONCILE, project.key)  # registers the webhook
            if project.version is not None and triggers.delivers(project):
                triggers.deliver_now(project.key)
        say(console, "This Polyvox is an instance of its own now: it registers its webhooks and delivers. If the one "
                     "that it was copied from still works for the same Label Studio, stop one of the two.")
        return 0
    finally:
        store.close()


COMMAND = Command(
    name="adopt", help="let a copied or restored Polyvox deliver", arguments=_arguments, run=_run,
    description="A database that was copied or restored registers no webhook and delivers nothing, since the Polyvox "
    "that it was copied from may still be at work. This makes it an instance of its own, which does both. Run it when "
    "the other one is gone, or when this one is to work for another Label Studio.",
)
