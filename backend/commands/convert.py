"""`convert`: a data set of votes from one format into another."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import label_config, load, reading_arguments
from backend.errors import ClientError
from backend.formats import WHAT, WriteOptions, save_dataset
from backend.settings import Settings

_BY_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="IN", type=Path, help="file or folder with the votes")
    parser.add_argument("out", metavar="OUT", type=Path, help="file or folder to write")
    parser.add_argument("--to", metavar="FORMAT", choices=tuple(WHAT),
                        help=f"{', '.join(WHAT)}; default: what the ending of OUT says (.csv, .tsv, .parquet)")
    reading_arguments(parser)


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    target = arguments.to or _BY_SUFFIX.get(arguments.out.suffix.lower())
    if target is None:
        raise ClientError(f"Say with --to what {arguments.out.name} shall be: {', '.join(WHAT)}.")
    dataset = load(arguments)
    save_dataset(dataset, arguments.out, target, WriteOptions(
        label_config=label_config(arguments), control=arguments.control))
    votes = dataset.votes
    say(console, f"format={target} tasks={len(votes.units)} annotators={len(votes.annotators)} votes={len(votes)}")
    return 0


COMMAND = Command(
    name="convert", help="a data set of votes from one format into another", arguments=_arguments, run=_run,
    description="Convert a data set of votes. Ids, classes, gold labels, times and weights are kept where the target "
    "has a place for them; peerannot has numbered ids only, so the real ones are kept in its metadata.json.",
)
