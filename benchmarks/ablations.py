"""The paper's ablations (its table 5) on our sets, and their table with paired intervals.

    full               the network as it is
    no-self-attention  queries do not read each other (w/o S-Attn)
    u-cls              one classifier for all annotators, who differ by query and bias only (w/ U-cls)
    base               a classifier for each annotator on the encoder's mean token: the baseline head-per-annotator
    pre-mv             one query, trained on the majority of the training votes
    post-mv            the majority of the full network's predictions for the task's annotators

    python -m benchmarks.evaluation run --ablations --data FOLDER --out CELLS [--device cuda]
    python -m benchmarks.ablations --data FOLDER --cells CELLS [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation_sets import DEVELOPMENT, without_content
from model.config import LadderConfig
from model.data.spaces import Value
from model.data.votes import Votes
from model.evaluate.baselines import BASELINES
from model.evaluate.baselines.base import Fold
from model.evaluate.baselines.naive import training_targets
from model.evaluate.bootstrap import interval
from model.evaluate.cells import CellStore
from model.evaluate.contenders import Answers, Contender, FromBaseline, Ready
from model.evaluate.ours import Ours
from model.evaluate.report import cell, gap, table
from model.evaluate.summary import Standings, standings

SETS = (*DEVELOPMENT, "annotation_paradigms", "paraphrase_par")
SETTING = "unseen"
FOLDS = 5
_BASE = "head-per-annotator"
_PRE = "pre-mv"


@dataclass(frozen=True, kw_only=True)
class _ReadyPre:
    ready: Ready
    annotators: int

    @property
    def notes(self) -> Mapping[str, Any]:
        return self.ready.notes

    def answer(self, units: Sequence[str], visible: Votes | None) -> Answers:
        own = self.ready.answer(units, None).p["network"]  # (B, 1, C)
        return Answers(p={_PRE: np.repeat(own, self.annotators, 1)}, consensus=own[:, 0])


@dataclass(frozen=True, kw_only=True)
class PreMajority:
    """Pre-mv: the votes of a unit are replaced by their majority before anything is learned."""

    models: tuple[str, ...] = (_PRE,)
    uses_visible: bool = False
    needs_visible: bool = False

    def fit(self, fold: Fold) -> Ready:
        targets = training_targets(fold)
        count = np.zeros((len(fold.units), targets.y.shape[1]))
        np.add.at(count, targets.unit, targets.y)
        voted = np.flatnonzero(count.sum(1) > 0)
        label = count[voted].argmax(1)
        votes = Votes.from_columns(
            units=fold.units, annotators=["everybody"], values=[Value.of_class(name) for name in fold.space.classes],
            unit=voted, annotator=np.zeros(len(voted), np.int64), value=label, controls=fold.votes.controls,
        )
        alone = replace(fold, votes=votes, annotators=("everybody",))
        return _ReadyPre(ready=Ours().fit(alone), annotators=len(fold.annotators))


def variants() -> list[Contender]:
    """The full network and what is left of it."""
    full = LadderConfig()

    def without(label: str, **changes: Any) -> Contender:
        return Ours(config=replace(full, network=replace(full.network, **changes)), label=label)

    return [
        Ours(), without("no-self-attention", self_attention=False), without("u-cls", head="shared"), PreMajority(),
        *(FromBaseline(baseline=baseline) for name, baseline in BASELINES.items() if name == _BASE),
    ]


def ablation_rows(name: str, found: Standings) -> list[list[str]]:
    """The rows of one set: accuracy and log-loss of votes, and of the consensus, with differences to the full one."""
    rows = []
    for title, model in (
        ("full", "network"), ("no-self-attention", "network@no-self-attention"), ("u-cls", "network@u-cls"),
        ("base", _BASE),
    ):
        if model in found.models(SETTING):
            rows.append([name, title, *_compared(found, model, "accuracy"), *_compared(found, model, "log_loss"), ""])
    for title, model, metric in (("post-mv", "network", "copr"), ("pre-mv", _PRE, "copr")):
        if model in found.models(SETTING):
            figure, difference = _compared(found, model, metric)
            rows.append([name, title, "", "", "", "", f"{figure} ({difference})" if difference else figure])
    return rows


def _compared(found: Standings, model: str, metric: str) -> tuple[str, str]:
    draws: NDArray[np.float64] = found.figures(model, SETTING, found.seeds(model, SETTING))[metric]
    own = interval(draws)
    figure = cell({"mean": own.mean, "low": own.low, "high": own.high}, interval=True)
    difference = found.difference(model, "network", SETTING, metric) if model != "network" else None
    if difference is None:
        return figure, ""
    other, points = interval(difference), metric != "log_loss"
    row = {"mean": other.mean, "low": other.low, "high": other.high}
    return figure, gap(row, scale=100.0 if points else 1.0, digits=1 if points else 3)


def write(data: Path, cells: Path, out: Path) -> None:
    """benchmarks/results/ablations.md from cells."""
    rows = []
    for name in SETS:
        if (cells / name).is_dir():
            problem = without_content(data, name)
            store = CellStore(cells / name, fingerprint=problem.fingerprint, folds=FOLDS)
            rows += ablation_rows(name, standings(problem, store, FOLDS))
    titles = [
        "set", "variant", "accuracy", "− full, points", "log-loss", "− full, nats", "consensus accuracy (− post-mv)",
    ]
    text = [
        "# Ablations of the query network", "",
        "On unseen tasks, five folds; the network alone, without the other base models. Intervals are 95 %, by a "
        "bootstrap over tasks; differences are paired. Made by `python -m benchmarks.ablations`, whose text says what "
        "the variants are.",
        "", *table(titles, rows),
    ]
    out.mkdir(parents=True, exist_ok=True)
    (out / "ablations.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cells", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    write(options.data, options.cells, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
