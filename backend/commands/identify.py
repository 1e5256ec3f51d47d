"""`identify`: who is reliable, which tasks are hard, and what leaving the worst annotators out does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import (
    answers_of,
    cell,
    check_output,
    dataset_arguments,
    load,
    show_table,
    working,
    write_columns,
    write_json,
)
from backend.commands.findings import Columns, annotator_columns, find, read_logits, task_columns
from backend.commands.methods import make_method
from backend.errors import ClientError, NoVotes
from backend.settings import Settings

if TYPE_CHECKING:
    from model.crowd.base import Aggregate
    from model.quality.prune import PruneRule

OF_PEOPLE = ("annotator", "votes", "common_tasks", "accuracy", "low", "high", "kappa", "gold_accuracy", "fault")
OF_TASKS = ("task", "votes", "label", "confidence", "surprise", "cause", "whose", "gold")
PRUNE_BELOW = 0.1  # kappa: hardly better than the annotator's own habits would reach by chance


def _arguments(parser: argparse.ArgumentParser) -> None:
    dataset_arguments(parser)
    add = parser.add_argument
    add("-s", "--method", metavar="METHOD", default="dawid-skene",
        help="the aggregator whose posteriors the annotators are measured against (one with a likelihood)")
    add("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of the method")
    add("--top", metavar="N", type=int, default=20, help="rows of each table that are shown")
    add("--glad", action="store_true", help="GLAD's abilities and difficulties also for more than 200,000 votes")
    add("--logits", metavar="FILE", type=Path,
        help="a classifier's training, for AUM and WAUM: NumPy .npz with logits (epochs, tasks, classes), tasks and "
        "classes (their names)")
    add("--prune", action="store_true", help="leave out the worst annotators and show the labels before and after")
    add("--below", metavar="X", type=float,
        help=f"prune those whose kappa against the others is below X; default: {PRUNE_BELOW}")
    add("--share", metavar="X", type=float, help="prune this share of the annotators instead, the worst by kappa")
    add("--min-votes", metavar="N", type=int, default=10,
        help="never prune annotators with fewer votes on tasks that others labelled too")
    add("--out", metavar="FILE", type=Path,
        help="write all rows: one .json, or two tables NAME-annotators and NAME-tasks (.csv, .tsv, .parquet)")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    check_output(arguments.out)
    rule = _rule(arguments)
    dataset = load(arguments)
    control = dataset.control(arguments.control)
    answers = answers_of(dataset, control, times=True)
    if not len(answers):
        raise NoVotes(f"{arguments.dataset.name} has no votes with {control} that can be judged.")
    method = make_method(arguments.method, arguments.set)
    logits = read_logits(arguments.logits, answers) if arguments.logits is not None else None
    with working(f"judging {len(answers.annotators)} annotators and {len(answers.units)} tasks"):
        findings = find(dataset, control, answers, method, logits=logits, glad=arguments.glad)
        annotators, tasks = annotator_columns(findings), task_columns(findings)
    top = max(arguments.top, 0)
    worst = sorted(range(len(answers.annotators)), key=lambda row: _low_first(annotators["kappa"][row]))
    hardest = sorted(range(len(answers.units)), key=lambda row: -_low_first(tasks["surprise"][row], np.inf))
    show_table(console, f"Annotators, lowest kappa first ({len(worst)})", _narrow(annotators, OF_PEOPLE), worst[:top])
    console.print()
    show_table(console, f"Tasks, most surprising votes first ({len(hardest)})", _narrow(tasks, OF_TASKS), hardest[:top])
    if arguments.out is None:
        say(console, f"{len(annotators) + len(tasks)} columns in all: --out FILE writes them.")
    _say_findings(annotators, worst[:top], console)
    pruning: dict[str, Any] = {}
    if rule is not None:
        from model.quality.prune import prune

        with working("pruning"):
            pruned = prune(answers, findings.against.kappa, rule, method, votes=findings.judged.faults.grounds.common)
        gold = dataset.gold.get(control, {})
        pruning = {
            "rule": f"kappa against the others: {pruned.rule}", "dropped": list(pruned.dropped),
            "dropped_votes": pruned.dropped_votes, "relabelled": int(pruned.changed.sum()),
            "unlabelled_now": int(pruned.lost.sum()),
            "before": _summary(pruned.before, pruned.alpha_before, gold),
            "after": _summary(pruned.after, pruned.alpha_after, gold),
        }
        _show_pruning(pruning, console)
    if arguments.out is not None:
        _write(arguments.out, annotators, tasks, pruning, console)
    return 0


def _narrow(columns: Columns, wanted: Sequence[str]) -> Columns:
    """The columns that a terminal has room for. Of several people whose habits explain a task it holds one."""
    shown = {name: columns[name] for name in wanted if name in columns}
    if "whose" in shown:
        shown["whose"] = [_first(whose) for whose in shown["whose"]]
    return shown


def _first(whose: str | None) -> str | None:
    first, _, others = (whose or "").partition("; ")
    return f"{first}, {others.count('; ') + 1} more" if others else whose


def _say_findings(annotators: Columns, rows: Sequence[int], console: Console) -> None:
    """What there is to say of the annotators that are shown, and of whom everything is said who has a finding."""
    from backend.report.people_sentences import WORDS

    console.print()
    told = set(rows) | {row for row, fault in enumerate(annotators["fault"]) if fault}
    for row in sorted(told):
        if annotators["says"][row]:
            say(console, f"{annotators['annotator'][row]}: {annotators['says'][row]}")
    named = [f"{name} ({fault}: {WORDS[fault]})" for name, fault in
             zip(annotators["annotator"], annotators["fault"], strict=True) if fault]
    say(console, "faults: " + ("; ".join(named) or "none"))


def _rule(arguments: Arguments) -> PruneRule | None:
    if not arguments.prune:
        if arguments.below is not None or arguments.share is not None:
            raise ClientError("--below and --share belong to --prune.")
        return None
    if arguments.below is not None and arguments.share is not None:
        raise ClientError("Give either --below or --share.")
    from backend.commands.dataset import sentences
    from model.quality.prune import PruneRule

    with sentences():
        if arguments.share is not None:
            return PruneRule(share=arguments.share, min_votes=arguments.min_votes)
        below = PRUNE_BELOW if arguments.below is None else arguments.below
        return PruneRule(below=below, min_votes=arguments.min_votes)


def _summary(fitted: Aggregate, alpha: float, gold: dict[str, str] | Any) -> dict[str, Any]:
    labels = {unit: label for unit, label, _ in fitted.rows() if label is not None}
    confidence = fitted.confidence[fitted.label >= 0]
    judged = [labels[unit] == label for unit, label in gold.items() if unit in labels]
    return {
        "labelled": len(labels), "mean_confidence": float(confidence.mean()) if len(confidence) else float("nan"),
        "krippendorff_alpha": alpha, **({"accuracy": float(np.mean(judged))} if judged else {}),
    }


def _show_pruning(pruning: dict[str, Any], console: Console) -> None:
    console.print()
    dropped = pruning["dropped"]
    say(console, f"prune rule: {pruning['rule']}")
    say(console, "That is no finding: who reads the tasks in another way than the others has a low kappa as well.")
    say(console, f"dropped {len(dropped)} annotators with {pruning['dropped_votes']} votes: "
        f"{', '.join(dropped) or 'none'}")
    before, after = pruning["before"], pruning["after"]
    columns = {"": list(before), "before": list(before.values()), "after": [after.get(key) for key in before]}
    show_table(console, "Aggregation before and after", columns, range(len(before)))
    say(console, f"{pruning['relabelled']} tasks got another label, {pruning['unlabelled_now']} lost theirs")


def _write(path: Path, annotators: Columns, tasks: Columns, pruning: dict[str, Any], console: Console) -> None:
    if path.suffix.lower() == ".json":
        rows = {
            name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
            for name, table in (("annotators", annotators), ("tasks", tasks))
        }
        write_json(path, {**rows, **({"prune": pruning} if pruning else {})})
        say(console, f"written to {path}")
        return
    for name, table in (("annotators", annotators), ("tasks", tasks)):
        one = path.with_name(f"{path.stem}-{name}{path.suffix}")
        write_columns(one, {key: [None if cell(each) == "" else each for each in column]
                            for key, column in table.items()})
        say(console, f"written to {one}")


def _low_first(value: float | None, otherwise: float = np.inf) -> float:
    """A sort key; what is unknown comes last."""
    if value is None or value != value:
        return otherwise if otherwise < 0 else float(np.copysign(np.inf, otherwise))
    return value


COMMAND = Command(
    name="identify", help="who is reliable and which tasks are hard, in a data set", arguments=_arguments, run=_run,
    description="Judge annotators and tasks from the votes alone. Annotators are measured against what the others say "
    "(never against a consensus that contains their own vote) and, where there is gold, against gold; what is "
    "regular in their labels is described, and faults (constant answers, swapped classes, a change for the worse) are "
    "named only where labelling sensibly in a way of one's own is ruled out. Tasks are ranked by how much their votes "
    "surprise after "
    "each annotator's habits are allowed for.",
)
