"""`backup`: one archive of the database and all that it names, while Polyvox runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.progress import progress_bar
from backend.services.backup import make_backup
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", type=Path, help="the archive to write, or a folder for it")
    parser.add_argument("--without-key", action="store_true",
                        help="leave out secret.key, without which annotators' tokens cannot be read")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    with progress_bar("backup:") as progress:
        made = make_backup(settings, arguments.out, progress, key=not arguments.without_key)
    say(console, f"Wrote {made.path}: {made.files} files, {made.size / 1e6:.1f} MB. Caches of features and media are "
                 "left out; they are made again.")
    for path in made.missing:
        say(console, f"! The files of {path}, which answers, are missing here and so in the archive.", "yellow")
    return 0


COMMAND = Command(
    name="backup", help="write everything into one archive, while Polyvox runs", arguments=_arguments, run=_run,
    description="Write the database, at one state, the checkpoints that it names and the key of annotators' tokens "
    "into one archive (a tar; only you may read it). `serve` and `worker` may go on. Caches are left out. The archive "
    "holds labels, texts, names and tokens: keep it as safe as the data folder.",
)
