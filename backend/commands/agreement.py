"""`agreement`: how far the annotators of a data set agree, corrected for chance, with intervals."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import (
    answers_of,
    check_output,
    dataset_arguments,
    load,
    show_table,
    working,
    write_columns,
    write_json,
)
from backend.errors import ClientError
from backend.settings import Settings

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
        help="what the classes are, for Krippendorff's alpha: nominal, ordinal (in the order of the data set) or "
        "interval (classes are numbers); default: ordinal where the data set says so, else nominal")
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
    answers = answers_of(dataset, dataset.control(arguments.control))
    level: Level = arguments.level or ("ordinal" if dataset.ordinal else "nominal")
    numbers = _numbers(answers) if level == "interval" else None
    with working(f"agreement of {len(answers.annotators)} annotators"):
        overall = _overall(answers, level, numbers, max(arguments.draws, 1), max(arguments.seed, 0))
        by_class = _by_class(answers)
        pairs = _pairs(answers, arguments.weights)
    show_table(console, f"Agreement of {len(answers)} votes", overall, range(len(overall["measure"])))
    console.print()
    show_table(console, "By class", by_class, range(len(answers.classes)))
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


def _overall(
    answers: AnswerMatrix, level: Level, numbers: np.ndarray[Any, np.dtype[np.float64]] | None, draws: int, seed: int
) -> Columns:
    from model.quality.agreement import fleiss_kappa, gwet_ac1, krippendorff_alpha, percent_agreement
    from model.quality.intervals import alpha_interval, percent_interval

    rows: list[tuple[str, float, float, float]] = []
    percent = percent_interval(answers, draws=draws, seed=seed)
    rows.append(("percent agreement", percent_agreement(answers), percent.low, percent.high))
    nominal = alpha_interval(answers, "nominal", draws=draws, seed=seed)
    rows.append(("Krippendorff alpha (nominal)", nominal.value, nominal.low, nominal.high))
    if level == "ordinal":
        ordinal = alpha_interval(answers, "ordinal", draws=draws, seed=seed)
        rows.append(("Krippendorff alpha (ordinal)", ordinal.value, ordinal.low, ordinal.high))
    if level == "interval":
        alpha = krippendorff_alpha(answers, "interval", numbers)
        rows.append(("Krippendorff alpha (interval)", alpha, float("nan"), float("nan")))
    nan = float("nan")
    rows += [("Fleiss kappa", fleiss_kappa(answers), nan, nan), ("Gwet AC1", gwet_ac1(answers), nan, nan)]
    return {name: list(column) for name, column in zip(
        ("measure", "value", "low", "high"), zip(*rows, strict=True), strict=True)}


def _by_class(answers: AnswerMatrix) -> Columns:
    from model.quality.agreement import class_agreement, class_alpha

    if not len(answers):
        return {"class": [], "votes": [], "agreement": [], "alpha": []}
    return {
        "class": list(answers.classes), "votes": np.bincount(answers.label, minlength=len(answers.classes)).tolist(),
        "agreement": class_agreement(answers).tolist(), "alpha": class_alpha(answers).tolist(),
    }


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


def _numbers(answers: AnswerMatrix) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.array([float(name) for name in answers.classes])
    except ValueError as error:
        raise ClientError("--level interval needs classes that are numbers.") from error


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
