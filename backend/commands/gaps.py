"""`gaps`: which votes to ask for next; so far the replay of policies on a data set."""

from __future__ import annotations

import argparse

from rich.console import Console

from backend.commands.base import Arguments, Command
from backend.commands.gaps_simulation import run_simulation, simulation_arguments
from backend.errors import ClientError
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    simulation_arguments(parser)


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    if arguments.simulate is None:
        raise ClientError("Say which data set is to be replayed: gaps --simulate DATASET.")
    return run_simulation(arguments, console)


COMMAND = Command(
    name="gaps", help="which votes to ask for next, and how well policies do", arguments=_arguments, run=_run,
    description="Replay policies of asking for votes on a data set: a part of each task's votes is held out, the "
    "others are bought in batches, and the consensus of what is bought so far is scored against the majority of those "
    "held out. See docs/acquisition.md.",
)
