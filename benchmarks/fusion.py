"""What given votes are worth, on the development sets: base models and fusion, unseen and with half of the votes shown.

    python -m benchmarks.fusion --data FOLDER --tokens FOLDER [--sets affective_text ...] [--folds 3] [--seed 0]

A ladder is fitted on the training tasks of each fold, once with networks that read votes and once without (`plain`).
Printed are accuracy and log-loss over the votes of the test tasks: all of them for `unseen`, the hidden half for
`half-visible`; `content` is what is served when the visible votes are not handed in.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.evaluation_sets import DEVELOPMENT, Source, text_encoder
from model.config import LadderConfig
from model.data.metrics import summarise
from model.ensemble.ladder import TrainingSet, fit
from model.evaluate.design import fold_of_votes, shown
from model.evaluate.problem import Problem

Floats = NDArray[np.float64]
Scores = dict[str, list[tuple[Floats, NDArray[np.bool_]]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokens", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=DEVELOPMENT)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--configs", nargs="+", choices=["plain", "reading"], default=["plain", "reading"])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    source = Source(
        data=asked.data, tokens=asked.tokens, encoder="minilm", encoder_id=text_encoder("minilm", "cpu").id,
        device="cpu",
    )
    for name in asked.sets:
        problem = source.problem(name)
        for kind in asked.configs:
            _compare(name, problem, kind, asked.folds, asked.seed)


def _compare(name: str, problem: Problem, kind: str, folds: int, seed: int) -> None:
    base = LadderConfig(seed=seed)
    config = replace(base, network=replace(base.network, labels=kind == "reading"))
    fold_of, found, started = fold_of_votes(problem, folds, seed), Scores(), time.monotonic()
    for fold in range(folds):
        test = fold_of == fold
        weights = _fold(problem, test, shown(problem, test, 0.5, seed=seed, fold=fold), config, found)
        print(f"{name} {kind} fold {fold}: {weights}", flush=True)
    for way, parts in found.items():
        p, rows = np.concatenate([p for p, _ in parts]), np.concatenate([np.flatnonzero(mask) for _, mask in parts])
        figures = summarise(problem.space, p, problem.y[rows], problem.votes.annotator[rows])
        print(f"{name} {kind:8s} {way:26s} {figures['accuracy']:.4f} {figures['log_loss']:.4f}", flush=True)
    print(f"{name} {kind}: {time.monotonic() - started:.0f} s", flush=True)


def _fold(
    problem: Problem, test: NDArray[np.bool_], visible: NDArray[np.bool_], config: LadderConfig, found: Scores
) -> Mapping[str, Any]:
    """Fit on all but the test votes, and keep what is said of these; returns the weights."""
    votes = problem.votes
    control = votes.controls[0]
    fitted = fit(
        TrainingSet(
            votes=votes.select(~test), spaces={control: problem.space}, tokens=problem.tokens,
            texts=problem.texts, heldout=lambda unit: False,
        ),
        config,
    )
    units = [votes.units[u] for u in np.unique(votes.unit[test])]
    ladder, tokens, texts = fitted.ladder, problem.tokens(units), problem.texts and problem.texts(units)
    plain = ladder.predict(tokens, votes.annotators, consensus=False, texts=texts)[control]
    given = ladder.predict(
        tokens, votes.annotators, units=units, given=votes.select(visible), consensus=False, texts=texts
    )[control]
    hidden = test & ~visible
    for way, p in {"served": plain.served, **{name: plain.base_models[name] for name in ("pooled", "network")}}.items():
        _keep(found, f"unseen {way}", problem, p, test)
    ways = {"content": plain.served, "served": given.served, **{f"rung {k}": p for k, p in given.base_models.items()}}
    for way, p in ways.items():
        _keep(found, f"half-visible {way}", problem, p, hidden)
    figures = fitted.figures["controls"][control]
    return {"alone": _rounded(figures["weights"]), **{k: _rounded(w) for k, w in figures["gaps"]["weights"].items()}}


def _keep(
    found: Scores, way: str, problem: Problem, p: Floats, rows: NDArray[np.bool_]
) -> None:
    """Probabilities (B, A, C) of the test units, of the votes of a mask (N,)."""
    at = np.searchsorted(np.unique(problem.votes.unit[rows]), problem.votes.unit[rows])
    if len(np.unique(problem.votes.unit[rows])) != len(p):
        raise ValueError("every test unit needs a vote that is hidden")
    found.setdefault(way, []).append((p[at, problem.votes.annotator[rows]], rows))


def _rounded(weights: Mapping[str, float]) -> dict[str, float]:
    return {name: round(weight, 2) for name, weight in weights.items()}


if __name__ == "__main__":
    main()
