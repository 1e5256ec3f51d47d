"""`gaps --simulate`: replays of policies on the votes of a data set, as a table and as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.commands.base import Arguments, say
from backend.commands.dataset import (
    answers_of,
    check_output,
    load,
    reading_arguments,
    sentences,
    write_json,
)
from backend.commands.progress import progress_bar
from backend.errors import ClientError

# What goes with --simulate only. None of these has a default in the parser, so that it shows whether they were given.
OPTIONS = ("policies", "batches", "reference", "seeds", "format", "control", "label_config", "trust_ground_truth")
BATCHES, REFERENCE, SEEDS = 16, 0.5, 5


def refuse(arguments: Arguments, options: Sequence[str], sentence: str) -> None:
    """Options of the other mode would be ignored; `sentence` says what they go with. Raises ClientError."""
    for name in options:
        value = getattr(arguments, name)
        if not (value is None or value is False or value == ""):
            raise ClientError(f"--{name.replace('_', '-')} {sentence}")


def simulation_arguments(parser: argparse.ArgumentParser) -> None:
    """--simulate and what goes with it."""
    add = parser.add_argument_group("simulation on a data set").add_argument
    add("--simulate", metavar="DATASET", type=Path, help="replay policies on the votes of a file or folder: a part of "
        "each task's votes is held out, the others are bought in batches")
    add("--policies", metavar="POLICY", nargs="+", help="which policies; random and uncertainty are always "
        "there to compare with; default: all")
    add("--budget", metavar="N", type=int, help="votes that are bought in all; default: four for each task, or what is "
        "for sale")
    add("--batches", metavar="N", type=int, help="parts in which they are bought; after each all is learned anew; "
        f"default: {BATCHES}")
    add("--reference", metavar="SHARE", type=float, help="share of each task's votes that is held out; their majority "
        f"is what the consensus is scored against; default: {REFERENCE}")
    add("--seeds", metavar="N", type=int, help=f"repetitions with other splits; default: {SEEDS}")
    add("--out", metavar="FILE", type=Path, help="write the results (.json); in a project the labels to ask for (.json "
        "or .csv)")
    reading_arguments(parser)


def run_simulation(arguments: Arguments, console: Console) -> int:
    """Replay, print, write. Raises ClientError."""
    from model.acquisition.registry import POLICIES
    from model.acquisition.simulate import Replay
    from model.acquisition.standing import BASELINES, replay_all, to_json

    check_output(arguments.out, (".json",))
    policies = arguments.policies or list(POLICIES)
    seeds = SEEDS if arguments.seeds is None else arguments.seeds
    unknown = sorted(set(policies) - set(POLICIES))
    if unknown:
        raise ClientError(f"No policy is called {unknown[0]}; there are {', '.join(POLICIES)}.")
    arguments.dataset = arguments.simulate
    with sentences():
        replay = Replay(
            reference=REFERENCE if arguments.reference is None else arguments.reference, budget=arguments.budget,
            batches=BATCHES if arguments.batches is None else arguments.batches)
        dataset = load(arguments)
        answers = answers_of(dataset, dataset.control(arguments.control))
        votes = np.full(answers.shape[:2], -1)
        votes[answers.unit, answers.annotator] = answers.label
        with progress_bar("replaying") as told:
            standing = replay_all(
                votes, len(answers.classes), policies, replay=replay, seeds=seeds, progress=told)
    results = {"tasks": len(answers.units), "annotators": len(answers.annotators), "classes": len(answers.classes),
               "all_votes": len(answers), "reference": replay.reference, **to_json(standing)}
    _show(results, BASELINES, console)
    if arguments.out is not None:
        write_json(arguments.out, results)
        say(console, f"written: {arguments.out}")
    return 0


def _show(results: dict[str, Any], baselines: Sequence[str], console: Console) -> None:
    """A table, best area first."""
    table = Table("policy", "area", *(f"beside {name}" for name in baselines), "at half", "saved", box=None,
                  padding=(0, 1))
    policies, votes = results["policies"], results["votes"]
    middle = len(votes) // 2
    for name in sorted(policies, key=lambda each: -policies[each]["area"][0]):
        row = policies[name]
        beside = ["" if name == other else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row["beside"][other])
                  for other in baselines]
        saved = ("≥ " if row["saved"]["at_least"] else "") + f"{row['saved']['votes'][0]:.0f}"
        table.add_row(*(
            Text(each, no_wrap=True)
            for each in (name, f"{row['area'][0]:.3f}", *beside, f"{row['accuracy'][middle]:.3f}", saved)))
    console.print(table)
    say(console, f"area: mean accuracy from {votes[0]} to {votes[-1]} votes bought; at half: accuracy after "
        f"{votes[middle]}; saved: votes that random needs more for the same; brackets: 95 percent, over tasks")
    say(console, f"tasks={results['tasks']} annotators={results['annotators']} votes={results['all_votes']} "
        f"seeds={results['seeds']}")
