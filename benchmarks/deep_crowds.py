"""Classifiers learned from crowds, against gold labels on tasks that they never saw.

    python -m benchmarks.deep_crowds --data FOLDER [--sets product_match] [--seeds 5] [--out benchmarks/results]

FOLDER holds data sets with texts and gold labels, which are not part of the project. Features are the mean tokens of
the default text encoder. Four fifths of the tasks are learned from by their votes alone, the rest is judged by gold.
Beside the methods stand the majority class, which learns nothing, and the same classifier trained on gold labels, which
no crowd can give. Intervals are 95 %, by a bootstrap over the judged tasks of all seeds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.formats.dataset import ReadOptions
from backend.formats.folder import read
from backend.formats.problems import texts_of
from benchmarks.evaluation_sets import text_encoder
from benchmarks.measure import machine
from model.crowd import AnswerMatrix
from model.crowd_networks import METHODS, TrainingConfig, learn
from model.data.splits import fold_of
from model.evaluate.token_file import tokens_of

DRAWS, BINS, FOLDS = 1000, 10, 5
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """A data set with gold."""

    name: str
    features: NDArray[np.float32]  # (U, D)
    answers: AnswerMatrix
    gold: NDArray[np.int64]  # (U,) -1 where unknown
    part: NDArray[np.int64]  # (U,) which fifth


def load(folder: Path, name: str, tokens: Path) -> Set:
    """Read a set and encode its texts, once for all runs that share the folder of tokens."""
    dataset = read(folder / name, ReadOptions())
    control = dataset.control("")
    answers = AnswerMatrix.from_votes(dataset.votes, control, classes=dataset.classes_of(control))
    encoder = text_encoder("minilm", "cpu")
    of = tokens_of(
        texts_of(dataset), encoder_id=encoder.id, encoder=lambda: encoder, folder=tokens,
        progress=lambda done: print(f"\r{name}: encoded {done:4.0%}", end="", flush=True),
    )
    features = np.stack([np.asarray(one, np.float32).mean(0) for one in of(answers.units)])
    return Set(
        name=name, features=features, answers=answers, gold=answers.gold_codes(dataset.gold.get(control)).astype(int),
        part=np.array([fold_of(unit, FOLDS) for unit in answers.units]),
    )


def predict(method: str, data: Set, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Probabilities (B, C) and gold (B,) of the tasks that seed `seed` judges."""
    judged = (data.part == seed % FOLDS) & (data.gold >= 0)
    learned = data.part != seed % FOLDS
    classes, gold = len(data.answers.classes), data.gold[judged]
    answers = data.answers.take_units(learned)
    if method == "majority class":
        share = np.bincount(answers.label, minlength=classes) / len(answers)
        return np.repeat(share[None], len(gold), 0), gold
    if method == "trained on gold":
        known = learned & (data.gold >= 0)
        answers = AnswerMatrix.from_codes(
            units=tuple(np.array(data.answers.units)[known]), annotators=("gold",), classes=data.answers.classes,
            unit=np.arange(int(known.sum())), annotator=np.zeros(int(known.sum()), np.int64), label=data.gold[known],
        )
        fitted = learn("train-mv", data.features[known], answers, TrainingConfig(seed=seed))
    else:
        fitted = learn(method, data.features[learned], answers, TrainingConfig(seed=seed))
    return fitted.classify(data.features[judged]), gold


def calibration(p: Floats, gold: NDArray[np.int64]) -> float:
    """Expected calibration error of the most probable class."""
    sure, right = p.max(1), p.argmax(1) == gold
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    n = np.bincount(bins, minlength=BINS)
    gap = np.abs(np.bincount(bins, sure, BINS) - np.bincount(bins, right, BINS))
    return float(gap.sum() / max(n.sum(), 1))


def interval(figure: Callable[[NDArray[np.int64]], float], n: int) -> str:
    """A figure of rows with its bootstrap interval."""
    rng = np.random.default_rng(0)
    drawn = [figure(rng.integers(n, size=n)) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{figure(np.arange(n)):.3f} ({low:.3f} to {high:.3f})"


def table(data: Set, seeds: int) -> list[str]:
    """Rows of the report, printed as they come."""
    lines = ["| method | accuracy | calibration error | seconds a fit |", "| --- | --- | --- | --- |"]
    for method in ("majority class", *METHODS, "trained on gold"):
        start = time.perf_counter()
        parts = [predict(method, data, seed) for seed in range(seeds)]
        seconds = (time.perf_counter() - start) / seeds
        p, gold = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        right = p.argmax(1) == gold
        accuracy = interval(lambda rows, right=right: float(right[rows].mean()), len(gold))
        error = interval(lambda rows, p=p, gold=gold: calibration(p[rows], gold[rows]), len(gold))
        lines.append(f"| {method} | {accuracy} | {error} | {seconds:.1f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["product_match"])
    parser.add_argument("--seeds", type=int, default=FOLDS)
    parser.add_argument("--tokens", type=Path, help="keep the encoded texts here")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        made = [load(arguments.data, name, arguments.tokens or Path(scratch)) for name in arguments.sets]
        pages = [[f"## {data.name}", "", *table(data, arguments.seeds), ""] for data in made]
    about = machine()
    head = [
        "# Classifiers learned from crowds", "",
        f"Made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `python -m benchmarks.deep_crowds --data FOLDER` on"
        f" {about['cores']} cores, load {about['load'][0]:.1f}; {arguments.seeds} seeds, each with another fifth of the"
        " tasks held out. Accuracy and calibration error are against gold, with 95 % intervals by a bootstrap over"
        " tasks. No method sees a gold label but the last.", "",
    ]
    (arguments.out / "deep_crowds.md").write_text("\n".join([*head, *(line for page in pages for line in page)]))


if __name__ == "__main__":
    main()
