"""`agreement`: how far the annotators of a data set agree, corrected for chance, with intervals."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import (
    check_output,
    dataset_arguments,
    load,
    sentences,
    show_table,
    working,
    write_columns,
    write_json,
)
from backend.errors import ClientError, NoVotes
from backend.formats import Dataset
from backend.labeling.written import scale_number
from backend.settings import Settings
from model.data.numbers import NumberBins
from model.data.spaces import SingleChoice, Space, ValueKind
from model.data.votes import Votes

if TYPE_CHECKING:
    from model.crowd import AnswerMatrix
    from model.quality.agreement import Level

MOST_ANNOTATORS = 2000  # of a pairwise table
Columns = dict[str, list[Any]]


def _arguments(parser: argparse.ArgumentParser) -> None:
    dataset_arguments(parser)
    add = parser.add_argument
    add("--regions", action="store_true",
        help="compare regions (Labels, RectangleLabels, PolygonLabels) of a Label Studio JSON export instead of votes: "
        "F1 of regions with the same labels that lie on each other (IoU of a half or more), and of exactly equal ones")
    add("--level", metavar="LEVEL", choices=("nominal", "ordinal", "interval"),
        help="what the classes are, for Krippendorff's alpha: nominal, ordinal (in the order that --order states, else "
        "that of the labeling configuration, the data set or their numbers) or interval (classes are numbers); "
        "default: what the labeling configuration or the data set says, else nominal")
    add("--order", metavar="A,B,C", default="",
        help="the classes from the lowest to the highest, for --level ordinal and for --weights linear or "
        "quadratic; names with commas as a JSON list")
    add("--weights", metavar="WEIGHTS", choices=("none", "linear", "quadratic"), default="none",
        help="none, linear or quadratic weights of Cohen's kappa")
    add("--draws", metavar="N", type=int, default=500, help="bootstrap draws of tasks for the 95 %% intervals")
    add("--seed", metavar="N", type=int, default=0, help="of the bootstrap")
    add("--top", metavar="N", type=int, default=20, help="pairs of annotators that are shown, least agreeing first")
    add("--out", metavar="FILE", type=Path,
        help="write everything as .json, or the table of pairs as .csv, .tsv or .parquet")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    check_output(arguments.out)
    if arguments.regions:
        from backend.commands import region_agreement

        return region_agreement.run(arguments, console)
    dataset = load(arguments)
    control = dataset.control(arguments.control)
    if dataset.kinds(control) == {ValueKind.RANKING}:
        return _rankings(dataset, control, arguments, console)
    with sentences():
        asked = _asked(dataset, control, arguments)
    answers = asked.answers
    with working(f"agreement of {len(answers.annotators)} annotators"):
        overall = _overall(asked, max(arguments.draws, 1), max(arguments.seed, 0))
        by_class = _by_class(asked)
        pairs = _pairs(answers, arguments.weights)
    show_table(console, f"Agreement of {asked.votes} votes", overall, range(len(overall["measure"])))
    console.print()
    show_table(console, "By class", by_class, range(len(by_class["class"])))
    if pairs:
        console.print()
        order = sorted(range(len(pairs["common"])), key=lambda row: (pairs["kappa"][row], -pairs["common"][row]))
        show_table(console, f"Pairs of annotators, least agreeing first ({len(order)})", pairs,
                   order[: max(arguments.top, 0)])
    else:
        say(console, f"No table of pairs for more than {MOST_ANNOTATORS} annotators.")
    if arguments.out is not None:
        _write(arguments.out, overall, by_class, pairs)
        say(console, f"written to {arguments.out}")
    return 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """The votes of a control, ready to be compared as the page of a live project compares them."""

    space: Space
    given: Votes  # (V,) the newest of each annotator on each task
    answers: AnswerMatrix  # the questions; see `model.quality.questions`
    level: Level
    values: np.ndarray[Any, np.dtype[np.float64]] | None  # of the classes, for the interval level

    @property
    def votes(self) -> int:
        """How many were compared."""
        return len(self.given)


def _asked(dataset: Dataset, control: str, arguments: Arguments) -> _Asked:
    from model.quality.questions import level_of, newest, questions, usable

    space = dataset.space(control)
    level, values = level_of(space)
    level = arguments.level or level
    if space.kind is ValueKind.CLASSES:
        if arguments.level not in (None, "nominal") or arguments.weights != "none" or arguments.order:
            raise ClientError(f"The answers of {control} are sets of classes, which have no order; they are compared "
                              "class by class.")
    elif isinstance(space, SingleChoice) and not isinstance(space, NumberBins):
        order = _order(dataset, control, arguments)
        if arguments.order and arguments.level is None:
            level = "ordinal"
        if not (arguments.order or control in dataset.spaces or dataset.classes.get(control)):
            given = dataset.votes.of_control(control)  # a class that only replaced votes have is none that is known
            rows = newest(given, usable(given, space))
            last = {str(given.values[code].data) for code in given.value[rows].tolist()}
            order = tuple(name for name in order if name in last)
        space = SingleChoice(order, ordered=space.ordered)
        values = _numbers(order) if level == "interval" else None
    votes = dataset.votes.of_control(control)
    votes = votes.select(newest(votes, usable(votes, space)))
    if not len(votes) or not space.classes:
        why = "are empty sets" if len(votes) else "weigh nothing or are no choice of the labeling configuration"
        raise NoVotes(f"No vote with {control} can be compared: all of them {why}.")
    answers, _ = questions(votes, space)
    return _Asked(space=space, given=votes, answers=answers, level=level, values=values)


def _order(dataset: Dataset, control: str, arguments: Arguments) -> tuple[str, ...]:
    """The classes in the order that counts. Raises ClientError where an order is needed and none is known."""
    classes = dataset.space(control).classes
    if arguments.order:
        told = tuple(split_order(arguments.order))
        if len(set(told)) < len(told):
            raise ClientError("--order names a class twice.")
        lacking = [name for name in dataset.classes_of(control) if name not in told]
        if lacking:
            raise ClientError(f"--order lacks {len(lacking)} classes of {control}: {', '.join(lacking[:5])}.")
        return told
    stated = dataset.stated_order(control)
    if stated is None and (arguments.level == "ordinal" or arguments.weights != "none") and len(classes) > 1:
        raise ClientError(f"The classes of {control} are words in no stated order; say it, from the lowest up: "
                          f"--order {','.join(classes[:4])}{',...' if len(classes) > 4 else ''}")
    return classes if stated is None else stated


def split_order(text: str) -> list[str]:
    """The classes of --order: a JSON list, or names between commas."""
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    if isinstance(listed, list):
        return [str(each) for each in listed]
    return [name.strip() for name in text.split(",") if name.strip()]


def _overall(asked: _Asked, draws: int, seed: int) -> Columns:
    from model.quality.agreement import fleiss_kappa, gwet_ac1, percent_agreement
    from model.quality.intervals import alpha_interval, percent_interval

    answers, level = asked.answers, asked.level
    rows: list[tuple[str, float, float, float]] = []
    percent = percent_interval(answers, draws=draws, seed=seed)
    rows.append(("percent agreement", percent_agreement(answers), percent.low, percent.high))
    nominal = alpha_interval(answers, "nominal", draws=draws, seed=seed)
    rows.append(("Krippendorff alpha (nominal)", nominal.value, nominal.low, nominal.high))
    if level != "nominal":
        alpha = alpha_interval(answers, level, values=asked.values, draws=draws, seed=seed)
        rows.append((f"Krippendorff alpha ({level})", alpha.value, alpha.low, alpha.high))
    nan = float("nan")
    rows += [("Fleiss kappa", fleiss_kappa(answers), nan, nan), ("Gwet AC1", gwet_ac1(answers), nan, nan)]
    return {name: list(column) for name, column in zip(
        ("measure", "value", "low", "high"), zip(*rows, strict=True), strict=True)}


def _by_class(asked: _Asked) -> Columns:
    from model.quality.agreement import class_agreement, class_alpha, why_no_alpha
    from model.quality.questions import encoded, set_agreement

    if not asked.votes:
        return {"class": [], "votes": [], "agreement": [], "alpha": []}
    several = asked.space.kind is ValueKind.CLASSES
    same, alpha = set_agreement(asked.given, asked.space) if several else (
        class_agreement(asked.answers), class_alpha(asked.answers))
    given = encoded(asked.given, asked.space).sum(axis=0).astype(int).tolist()
    notes = [why_no_alpha(n, each) for n, each in zip(given, alpha.tolist(), strict=True)]
    found: Columns = {
        "class": list(asked.space.classes), "votes": given, "agreement": same.tolist(), "alpha": alpha.tolist()}
    return {**found, "note": notes} if any(notes) else found


def _rankings(dataset: Dataset, control: str, arguments: Arguments, console: Console) -> int:
    """Orders are compared by Kendall's tau alone."""
    from model.crowd.rankings import ranking_agreement

    votes = dataset.votes.of_control(control)
    found = ranking_agreement(votes)
    overall: Columns = {
        "measure": ["Kendall tau-b"], "value": [found.tau], "tasks": [found.units], "named twice": [found.doubled],
        "other items": [found.incomplete],
    }
    show_table(console, f"Agreement of {len(votes)} votes", overall, range(1))
    if arguments.out is not None:
        _write(arguments.out, overall, {"class": []}, {"annotator": []})
        say(console, f"written to {arguments.out}")
    return 0


def _pairs(answers: AnswerMatrix, weights: Literal["none", "linear", "quadratic"]) -> Columns:
    """Pairs with common tasks; empty when there are too many annotators."""
    from model.quality.agreement import pairwise_agreement

    if len(answers.annotators) > MOST_ANNOTATORS:
        return {}
    table = pairwise_agreement(answers, weights)
    one, other = np.nonzero(np.triu(table.common, k=1))
    return {
        "annotator": [answers.annotators[i] for i in one], "other": [answers.annotators[i] for i in other],
        "common": table.common[one, other].tolist(), "percent": table.percent[one, other].tolist(),
        "kappa": table.kappa[one, other].tolist(),
    }


def _numbers(classes: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = [scale_number(name) for name in classes]
    if None in found:
        raise ClientError("--level interval needs classes that are numbers.")
    return np.array(found, dtype=np.float64)


def _write(path: Path, overall: Columns, by_class: Columns, pairs: Columns) -> None:
    if path.suffix.lower() != ".json":
        write_columns(path, pairs)
        return
    write_json(path, {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in (("overall", overall), ("classes", by_class), ("pairs", pairs))
    })


COMMAND = Command(
    name="agreement", help="how far the annotators of a data set agree", arguments=_arguments, run=_run,
    description="Agreement of annotators: percent, Fleiss' and Cohen's kappa, Krippendorff's alpha, Gwet's AC1; over "
    "all votes, by class, and for each pair of annotators. Intervals are bootstrapped over tasks.",
)
