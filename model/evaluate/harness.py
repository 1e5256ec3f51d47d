"""The harness: fits every contender on every fold and seed, asks it in every setting, and keeps the answers as cells.

A job is one fit: one contender, one share of removed training votes, one seed, one fold. It answers all settings with
that share, so nothing is fitted twice. Models see the training votes and, in settings with visible votes, the shown
votes of the units that they are asked about; never a vote that scores.

Shape legend: N votes, n of them on test tasks of a fold, B test units, A annotators, C classes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import check_tokens
from model.evaluate.baselines.base import Fold
from model.evaluate.cells import Cell, CellKey, CellStore
from model.evaluate.contenders import Contender, Ready
from model.evaluate.design import Setting, fold_of_votes, kept, shown
from model.evaluate.problem import Problem

Progress = Callable[[float, str], None]
_BATCH_UNITS = 256


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be run. `more_seeds` (beyond the first) are run for the models in `repeated` only."""

    contenders: Sequence[Contender]
    settings: Sequence[Setting]
    folds: int = 5
    seeds: int = 1
    repeated: frozenset[str] | None = None  # None: all models get all seeds
    device: str = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One fit, and the settings that it answers."""

    contender: Contender
    settings: tuple[Setting, ...]
    drop: float
    seed: int
    fold: int

    @property
    def keys(self) -> list[CellKey]:
        return [
            CellKey(model, setting.name, self.seed, self.fold)
            for setting in self.settings for model in self.contender.models
        ]

    @property
    def title(self) -> str:
        removed = f", {self.drop:.0%} removed" if self.drop else ""
        return f"{self.contender.models[0]}, seed {self.seed}, fold {self.fold}{removed}"


def jobs(plan: Plan) -> list[Job]:
    """All fits of a plan, first seeds first."""
    found = []
    for seed in range(plan.seeds):
        for drop in sorted({setting.drop for setting in plan.settings}):
            for contender in plan.contenders:
                if seed and plan.repeated is not None and not plan.repeated & set(contender.models):
                    continue
                asked = tuple(
                    s for s in plan.settings if s.drop == drop and (s.visible > 0.0 or not contender.needs_visible)
                )
                if asked:
                    found += [
                        Job(contender=contender, settings=asked, drop=drop, seed=seed, fold=fold)
                        for fold in range(plan.folds)
                    ]
    return found


def run(problem: Problem, plan: Plan, store: CellStore, progress: Progress) -> int:
    """Run the jobs whose cells are missing; returns how many. `progress` may raise to stop: whole cells stay."""
    todo = [job for job in jobs(plan) if not all(store.has(key) for key in job.keys)]
    for done, job in enumerate(todo):
        progress(done / len(todo), job.title)
        for cell in run_job(problem, job, plan):
            store.save(cell)
    progress(1.0, "done")
    return len(todo)


def run_job(problem: Problem, job: Job, plan: Plan) -> list[Cell]:
    """Fit once, answer every setting."""
    where = fold_of_votes(problem, plan.folds, job.seed)
    test = where == job.fold
    training = kept(problem, ~test, job.drop, seed=job.seed, fold=job.fold)
    began = time.perf_counter()
    ready = job.contender.fit(make_fold(problem, training, job.seed, plan.device))
    notes = {"seconds": round(time.perf_counter() - began, 3), **ready.notes}
    cells = []
    for setting in job.settings:
        seen = shown(problem, test, setting.visible, seed=job.seed, fold=job.fold)
        cells += cells_of(problem, job, setting, ready, test, seen, notes)
    return cells


def make_fold(problem: Problem, training: NDArray[np.bool_], seed: int, device: str) -> Fold:
    """What baselines and ours are fitted on."""
    votes = problem.votes.select(training)
    units = tuple(problem.votes.units[index] for index in np.unique(votes.unit))
    tokens = problem.tokens

    def features(names: Sequence[str]) -> NDArray[np.float32]:
        arrays = tokens(names)
        check_tokens(names, arrays)  # or baselines would answer NaN for them
        return np.stack([array.mean(0, dtype=np.float32) for array in arrays])

    return Fold(
        votes=votes, space=problem.space, annotators=problem.votes.annotators, units=units, tokens=tokens,
        features=features, seed=seed, device=device, texts=problem.texts,
    )


def cells_of(
    problem: Problem, job: Job, setting: Setting, ready: Ready, test: NDArray[np.bool_], seen: NDArray[np.bool_],
    notes: dict[str, Any],
) -> list[Cell]:
    """What a fitted contender answers about the test tasks in one setting; masks are (N,)."""
    votes = problem.votes
    rows, units = np.flatnonzero(test), np.unique(votes.unit[test])
    p: dict[str, list[NDArray[np.float32]]] = {model: [] for model in job.contender.models}
    agreed, order = [], []
    for start in range(0, len(units), _BATCH_UNITS):
        batch = units[start : start + _BATCH_UNITS]
        visible = votes.select(seen & np.isin(votes.unit, batch)) if setting.visible else None
        answers = ready.answer([votes.units[index] for index in batch], visible)
        here = rows[np.isin(votes.unit[rows], batch)]
        at = np.searchsorted(batch, votes.unit[here]), votes.annotator[here]
        order.append(here)
        for model, table in answers.p.items():
            p[model].append(_checked(model, table, len(batch), problem)[at].astype(np.float32))
        if answers.consensus is not None:
            agreed.append(answers.consensus.astype(np.float32))
    none = np.empty((0, len(problem.space.classes)), np.float32)
    place = np.concatenate(order)
    return [
        Cell(
            key=CellKey(model, setting.name, job.seed, job.fold), rows=place.astype(np.int32), shown=seen[place],
            p=np.concatenate(parts), units=units.astype(np.int32),
            consensus=np.concatenate(agreed) if agreed and model == job.contender.models[0] else none, notes=notes,
        )
        for model, parts in p.items()
    ]


def _checked(model: str, table: NDArray[np.float64], units: int, problem: Problem) -> NDArray[np.float64]:
    """The probabilities of a model. Raises ValueError where they are none: a fault of the model, not of the input."""
    shape = (units, len(problem.votes.annotators), len(problem.space.classes))
    if table.shape != shape or not np.isfinite(table).all() or (table < 0).any() or (table > 1 + 1e-6).any():
        raise ValueError(f"{model} did not give probabilities of shape {shape}")
    return table
