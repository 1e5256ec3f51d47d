"""`restore`: an archive of `backup` into the data folder, as a whole or not at all."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, say
from backend.commands.progress import progress_bar
from backend.records import JobKind
from backend.services.backup import RESTORE, restore_backup
from backend.services.identity import ADOPT
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", metavar="IN", type=Path, help="an archive that `backup` wrote")
    parser.add_argument("--replace", action="store_true",
                        help="although the data folder is not empty; what is there is put aside")
    parser.add_argument("--adopt", action="store_true",
                        help="the Polyvox that was backed up is gone: deliver and register webhooks at once")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    with progress_bar("restore:") as progress:
        done = restore_backup(settings, arguments.archive, progress, replace=arguments.replace)
    if not done.made_at:
        say(console, f"A restore into {settings.data_dir} had been broken off and is finished now; {arguments.archive} "
                     f"was not read. Run `{RESTORE}` again if you want another archive.")
    else:
        say(console, f"Restored {done.files} files of {done.made_at} into {settings.data_dir}.")
    if done.before is not None:
        say(console, f"What was there before is in {done.before}; delete it when you need it no more.")
    store = open_store(settings)  # migrates; what is wrong is said now and not at the next start
    for project in store.projects.all():
        store.jobs.enqueue(JobKind.ENCODE, project.key)  # the cache of features is not in the archive
    if arguments.adopt:
        store.instance.adopt()
    else:
        say(console, "Before it registers webhooks or delivers, this Polyvox asks: when the one that was backed up is "
                     f"gone, run `{ADOPT}`.")
    store.close()
    return 0


COMMAND = Command(
    name="restore", help="put an archive of `backup` into the data folder", arguments=_arguments, run=_run,
    description="Check an archive, write it beside what is there and change the names at the end: broken off before "
    "that, nothing has changed; after it, the same command finishes. The data folder (POLYVOX_DATA_DIR) must be empty "
    "unless --replace is given, and no Polyvox may run on it.",
)
