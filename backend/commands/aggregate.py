"""`aggregate`: one label with a confidence for every task of a data set."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import (
    answers_of,
    check_output,
    dataset_arguments,
    load,
    sentences,
    show_table,
    working,
    write_columns,
)
from backend.commands.methods import METHODS, make_method
from backend.errors import ClientError
from backend.formats import Dataset
from backend.formats.dataset import reading_order
from backend.settings import Settings
from model.data.spaces import ValueKind

SHOWN = 20
DIGITS = 6  # of a confidence
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a method found, ready to be written."""

    method: str
    tasks: tuple[str, ...]
    labels: list[str | None]  # a set of classes as a JSON list
    confidence: Floats  # NaN where there is no label
    confidence_name: str
    annotators: int
    votes: int
    iterations: int | None  # None: the method has several fits, or does not count
    converged: bool
    seconds: float


def _arguments(parser: argparse.ArgumentParser) -> None:
    dataset_arguments(parser)
    parser.add_argument("-s", "-m", "--method", metavar="METHOD", default="",
                        help=f"{', '.join(METHODS)}; peerannot's names are understood as well (MV, NaiveSoft, DS, WDS, "
                        "DSWC[L=5] ...); default: dawid-skene, for numbers robust-numbers")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[],
                        help="a setting of the method, such as max_iter=50; may be given several times")
    parser.add_argument("--use-gold", action="store_true",
                        help="let the method learn from the gold labels of the data set; otherwise they measure it")
    parser.add_argument("--probabilities", metavar="FILE", type=Path,
                        help="out-of-sample probabilities of a model, for crowdlab: a table with a column task and one "
                        "for each class")
    parser.add_argument("--out", metavar="FILE", type=Path,
                        help="write task,label,confidence here (.csv, .tsv, .parquet or .json)")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    check_output(arguments.out)
    dataset = load(arguments)
    control = dataset.control(arguments.control)
    kinds = dataset.kinds(control)
    if kinds == {ValueKind.CLASSES}:
        outcome = _aggregate_sets(dataset, control, arguments)
    elif kinds == {ValueKind.NUMBER}:
        outcome = _aggregate_numbers(dataset, control, arguments)
    else:
        outcome = _aggregate_classes(dataset, control, arguments)
    _report(outcome, dataset, control, arguments, console)
    return 0


def _aggregate_classes(dataset: Dataset, control: str, arguments: Arguments) -> Outcome:
    answers = answers_of(dataset, control)
    method = make_method(arguments.method or "dawid-skene", arguments.set)
    gold = dataset.gold.get(control) if arguments.use_gold else None
    probabilities = None
    if arguments.probabilities is not None:
        probabilities = read_probabilities(arguments.probabilities, answers.units, answers.classes)
    elif method.needs_probabilities:
        raise ClientError(f"{method.name} needs the probabilities of a model: give them with --probabilities.")
    with working(f"{method.name} on {len(answers)} votes"):
        start = time.perf_counter()
        fitted = method.fit(answers, gold=gold, probabilities=probabilities)
        seconds = time.perf_counter() - start
    names = [*answers.classes, None]  # code -1 is the last
    return Outcome(
        method=fitted.method, tasks=fitted.units, labels=[names[code] for code in fitted.label.tolist()],
        confidence=fitted.confidence, confidence_name="confidence", annotators=len(answers.annotators),
        votes=len(answers), iterations=fitted.iterations, converged=fitted.converged, seconds=seconds,
    )


def _aggregate_sets(dataset: Dataset, control: str, arguments: Arguments) -> Outcome:
    """One two-class problem for each class; the confidence is that of the whole set."""
    from model.crowd.multi_label import MultiLabel, SetAnswers

    with sentences():
        sets = SetAnswers.from_votes(dataset.votes, control, classes=dataset.classes_of(control))
    named = arguments.method or arguments.set
    method = MultiLabel(base=make_method(arguments.method or "dawid-skene", arguments.set)) if named else MultiLabel()
    with working(f"{method.base.name} for each of {len(sets.classes)} classes"):
        start = time.perf_counter()
        fitted = method.fit(sets)
        seconds = time.perf_counter() - start
    labels = [
        None if silent else json.dumps([name for name, there in zip(fitted.classes, row, strict=True) if there],
                                       ensure_ascii=False)
        for row, silent in zip(fitted.present, fitted.unlabelled, strict=True)
    ]
    sure = np.where(fitted.present, fitted.posterior, 1.0 - fitted.posterior).prod(axis=1)
    return Outcome(
        method=f"multi-label {method.base.name}".replace(" ", "-"), tasks=fitted.units, labels=labels,
        confidence=np.where(fitted.unlabelled, np.nan, sure), confidence_name="confidence",
        annotators=len(fitted.annotators), votes=len(sets.answers), iterations=None, converged=fitted.converged,
        seconds=seconds,
    )


def _aggregate_numbers(dataset: Dataset, control: str, arguments: Arguments) -> Outcome:
    from model.crowd.numeric import NumberAnswers, RobustNumbers

    if arguments.method not in ("", "robust-numbers") or arguments.set:
        raise ClientError(f"The control {control} has numbers; the only method for them is robust-numbers.")
    with sentences():
        numbers = NumberAnswers.from_votes(dataset.votes, control)
    with working("robust-numbers"):
        start = time.perf_counter()
        fitted = RobustNumbers().fit(numbers)
        seconds = time.perf_counter() - start
    return Outcome(
        method="robust-numbers", tasks=fitted.units, confidence=fitted.sd, confidence_name="sd",
        labels=[None if value != value else f"{value:.6g}" for value in fitted.value.tolist()],
        annotators=len(fitted.annotators), votes=len(numbers.answers), iterations=len(fitted.objective),
        converged=fitted.converged, seconds=seconds,
    )


def read_probabilities(path: Path, units: tuple[str, ...], classes: tuple[str, ...]) -> Floats:
    """(U, C) from a table with a column task and one for each class. Raises FormatError, ClientError."""
    from backend.formats import columns
    from backend.formats.dataset import quiet
    from backend.formats.scalars import as_seconds

    delimiter = columns.delimiter_of(path)
    there = columns.header(path, delimiter)
    missing = [name for name in ("task", *classes) if name not in there]
    if missing:
        raise ClientError(f"{path.name} has no column {', '.join(missing)}; it has {', '.join(there)}.")
    read = columns.delimited(path, delimiter, ["task", *classes], quiet)
    rows = {read["task"].texts[code]: row for row, code in enumerate(read["task"].codes.tolist()) if code >= 0}
    lacking = [unit for unit in units if unit not in rows]
    if lacking:
        raise ClientError(f"{path.name} has no row for {len(lacking)} of the tasks, {lacking[0]} for one.")
    table = np.empty((len(units), len(classes)))
    order = [rows[unit] for unit in units]
    for position, name in enumerate(classes):
        numbers, bad = columns.numbers(read[name], as_seconds)
        if bad is not None:
            raise ClientError(f"{path.name}, line {columns.line_of_row(path, delimiter, bad)}: not a number.")
        table[:, position] = numbers[order]
    return table


def _report(outcome: Outcome, dataset: Dataset, control: str, arguments: Arguments, console: Console) -> None:
    place = {task: row for row, task in enumerate(outcome.tasks)}
    order = [place[task] for task in reading_order(outcome.tasks)]
    columns: dict[str, Any] = {
        "task": [outcome.tasks[row] for row in order], "label": [outcome.labels[row] for row in order],
        outcome.confidence_name: _rounded(outcome.confidence[order]),
    }
    if arguments.out is not None:
        write_columns(arguments.out, columns)
        say(console, f"{len(order)} tasks written to {arguments.out}")
    else:
        show_table(console, f"{control} by {outcome.method}", columns, range(min(SHOWN, len(order))))
        if len(order) > SHOWN:
            say(console, f"{len(order) - SHOWN} more tasks; --out FILE writes them all")
    gold = dataset.gold.get(control, {})
    if gold and not arguments.use_gold:
        judged = [(outcome.labels[place[task]], label) for task, label in gold.items()]
        labelled = [(found, label) for found, label in judged if found is not None]
        right = sum(found == label for found, label in labelled)
        share = right / len(labelled) if labelled else float("nan")
        say(console, f"accuracy against gold {share:.4f} ({right} of {len(labelled)} labelled tasks; "
            f"{len(judged)} tasks have gold)")
    iterations = "-" if outcome.iterations is None else outcome.iterations
    say(console, f"method={outcome.method} tasks={len(order)} annotators={outcome.annotators} votes={outcome.votes} "
        f"iterations={iterations} converged={str(outcome.converged).lower()} seconds={outcome.seconds:.3f}")


def _rounded(column: Floats) -> list[float | None]:
    return [None if value != value else round(value, DIGITS) for value in column.tolist()]


COMMAND = Command(
    name="aggregate", help="one label with a confidence for every task of a data set", arguments=_arguments, run=_run,
    description="Aggregate the votes of a data set into one label for each task. Tasks without votes and tasks on "
    "which the method does not decide stay without a label. The last line of the output sums up the fit; its seconds "
    "are those of the fit alone, without reading and writing.",
)
