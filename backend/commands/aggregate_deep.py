"""`aggregate-deep`: a classifier learned from votes and texts, and its label for every task."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
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
from backend.commands.progress import progress_bar
from backend.errors import ClientError
from backend.formats.dataset import reading_order
from backend.formats.problems import texts_of
from backend.settings import Settings

SHOWN, DIGITS = 20, 6
DEFAULT = "crowd-layer"
_BATCH = 64  # texts between two steps of the bar


def _arguments(parser: argparse.ArgumentParser) -> None:
    dataset_arguments(parser)
    parser.add_argument("-s", "-m", "--method", metavar="METHOD", default=DEFAULT,
                        help="crowd-layer, conal, train-mv, train-soft, train-ds or train-glad")
    parser.add_argument("--text", metavar="FIELD", default="", help="the field of the task data that holds the text")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the classifier's start and batches")
    parser.add_argument("--out", metavar="FILE", type=Path,
                        help="write task,label,confidence here (.csv, .tsv, .parquet or .json)")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from model.crowd_networks import TrainingConfig, learn

    check_output(arguments.out)
    dataset = load(arguments)
    control = dataset.control(arguments.control)
    answers = answers_of(dataset, control)
    texts = texts_of(dataset, arguments.text)
    if not texts:
        raise ClientError("This data set has no texts, which a classifier learns from; `aggregate` needs votes alone.")
    units = [unit for unit in answers.units if unit in texts]
    if len(units) < len(answers.units):
        answers = answers.take_units(np.array([unit in texts for unit in answers.units]))
    features = _features([texts[unit] for unit in answers.units], settings)
    with working(f"{arguments.method} on {len(answers)} votes"):
        start = time.perf_counter()
        fitted = learn(arguments.method, features, answers, TrainingConfig(seed=arguments.seed))
        seconds = time.perf_counter() - start
    p = fitted.classify(features)
    order = _order(answers.units)
    columns: dict[str, Any] = {
        "task": [answers.units[row] for row in order],
        "label": [fitted.classes[code] for code in p[order].argmax(1)],
        "confidence": [round(float(sure), DIGITS) for sure in p[order].max(1)],
    }
    if arguments.out is not None:
        write_columns(arguments.out, columns)
        say(console, f"{len(order)} tasks written to {arguments.out}")
    else:
        show_table(console, f"{control} by {arguments.method}", columns, range(min(SHOWN, len(order))))
    gold = dataset.gold.get(control, {})
    pairs = zip(columns["task"], columns["label"], strict=True)
    judged = [(label, gold[task]) for task, label in pairs if task in gold]
    if judged:
        right = sum(found == label for found, label in judged)
        say(console, f"accuracy against gold {right / len(judged):.4f} ({right} of {len(judged)} tasks; it learned from"
            " their votes, so this says nothing of new tasks)")
    say(console, f"method={arguments.method} tasks={len(order)} annotators={len(answers.annotators)} "
        f"votes={len(answers)} seconds={seconds:.3f}")
    return 0


def _features(texts: list[str], settings: Settings) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(U, D) mean tokens of the text encoder of the settings."""
    from model.encoders.text import TextEncoder

    rows = []
    with sentences(), progress_bar() as progress:
        encoder = TextEncoder.load(settings.encoder, max_tokens=settings.encoder_max_tokens)
        for start in range(0, len(texts), _BATCH):
            progress(start / len(texts), "texts")
            rows += [tokens.astype(np.float32).mean(0) for tokens in encoder.encode(texts[start : start + _BATCH])]
    return np.stack(rows)


def _order(units: tuple[str, ...]) -> list[int]:
    place = {unit: row for row, unit in enumerate(units)}
    return [place[unit] for unit in reading_order(units)]


COMMAND = Command(
    name="aggregate-deep", help="learn a classifier from votes and texts, and label every task by it",
    arguments=_arguments, run=_run,
    description="Learn a classifier from the votes and texts of a data set, without any gold label, and give its label "
    "for every task. crowd-layer and conal learn the annotators beside it; train-mv, train-soft, train-ds and "
    "train-glad learn from votes that were aggregated first.",
)
