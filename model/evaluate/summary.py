"""From cells to results: the figures of every model in every setting, and differences to ours, paired.

JSON: {dataset, settings, results: [{model, setting, metric, mean, low, high}], differences: [... against ...], notes}.
A difference is ours minus the other on the same votes of the same seeds, in the same bootstrap draws.

Shape legend: M votes, R draws, C classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.metrics import Interval
from model.data.spaces import ValueKind
from model.errors import ModelError
from model.evaluate.bootstrap import interval, task_draws
from model.evaluate.cells import Cell, CellStore
from model.evaluate.measures import (
    Agreed,
    Predicted,
    annotator_figures,
    consensus_figures,
    kappa_distances,
    vote_figures,
    voted_consensus,
)
from model.evaluate.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A model in a setting, over all folds of the seeds that are complete."""

    model: str
    setting: str
    seeds: tuple[int, ...]
    seconds: float  # of a fit, the median
    figures: Mapping[str, Floats]  # metric -> (R + 1,)
    kappa: Mapping[str, Interval] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)  # of the base models, the mean over folds
    by_annotator: Mapping[str, Floats] = field(default_factory=dict)  # metric -> (R + 1, A)


@dataclass(frozen=True, kw_only=True, eq=False)
class Standings:
    """All models of a problem. `pick` gives figures over chosen seeds, for pairing."""

    problem: Problem
    folds: int
    cells: Mapping[tuple[str, str], Mapping[int, list[Cell]]]  # (model, setting) -> seed -> complete folds
    draws: Floats
    _kept: dict[tuple[str, str, tuple[int, ...]], dict[str, Floats]] = field(default_factory=dict)

    def seeds(self, model: str, setting: str) -> tuple[int, ...]:
        return tuple(sorted(self.cells.get((model, setting), {})))

    @property
    def settings(self) -> list[str]:
        names = {setting for _, setting in self.cells}
        return sorted(names, key=lambda name: ("drop" in name, name != "unseen", name))

    def models(self, setting: str) -> list[str]:
        return [model for model, at in self.cells if at == setting]

    def figures(self, model: str, setting: str, seeds: Sequence[int]) -> dict[str, Floats]:
        """metric -> (R + 1,) over these seeds."""
        key = (model, setting, tuple(seeds))
        if key not in self._kept:
            cells = [cell for seed in seeds for cell in self.cells[model, setting][seed]]
            self._kept[key] = _figures(self.problem, cells, self.draws)
        return self._kept[key]

    def standing(self, model: str, setting: str, *, by_annotator: bool = False) -> Standing:
        """The figures over all complete seeds."""
        seeds = self.seeds(model, setting)
        cells = [cell for seed in seeds for cell in self.cells[model, setting][seed]]
        found = _predicted(cells, scored=True)
        single = self.problem.space.kind is ValueKind.CLASS
        weights: dict[str, list[float]] = {}
        for cell in cells:
            for name, value in cell.notes.get("weights", {}).items():
                weights.setdefault(name, []).append(float(value))
        return Standing(
            model=model, setting=setting, seeds=seeds,
            seconds=float(np.median([cell.notes.get("seconds", np.nan) for cell in cells])),
            figures=self.figures(model, setting, seeds),
            kappa=kappa_distances(self.problem, found) if single else {},
            weights={name: float(np.mean(values)) for name, values in weights.items()},
            by_annotator=annotator_figures(self.problem, found, self.draws) if by_annotator else {},
        )

    def difference(self, model: str, other: str, setting: str, metric: str) -> Floats | None:
        """(R + 1,) model minus other over their common seeds; None where there is nothing in common."""
        seeds = sorted(set(self.seeds(model, setting)) & set(self.seeds(other, setting)))
        if not seeds:
            return None
        mine, theirs = self.figures(model, setting, seeds), self.figures(other, setting, seeds)
        if metric not in mine or metric not in theirs:
            return None
        return np.asarray(mine[metric] - theirs[metric])


def standings(problem: Problem, store: CellStore, folds: int) -> Standings:
    """What the cells of a store hold; seeds with a missing fold are left out. Raises ModelError without any."""
    found: dict[tuple[str, str], dict[int, list[Cell]]] = {}
    for cell in store.load():
        found.setdefault((cell.key.model, cell.key.setting), {}).setdefault(cell.key.seed, []).append(cell)
    complete = {
        at: {seed: cells for seed, cells in seeds.items() if len(cells) == folds} for at, seeds in found.items()
    }
    complete = {at: seeds for at, seeds in complete.items() if seeds}
    if not complete:
        raise ModelError("no model has been run on all folds yet")
    return Standings(problem=problem, folds=folds, cells=complete, draws=task_draws(len(problem.task_names)))


def _predicted(cells: Sequence[Cell], *, scored: bool) -> Predicted:
    masks = [~cell.shown if scored else np.ones(len(cell.rows), np.bool_) for cell in cells]
    return Predicted(
        row=np.concatenate([cell.rows[mask] for cell, mask in zip(cells, masks, strict=True)]).astype(np.int64),
        seed=np.concatenate([np.full(int(m.sum()), c.key.seed) for c, m in zip(cells, masks, strict=True)]),
        p=np.concatenate([cell.p[mask] for cell, mask in zip(cells, masks, strict=True)]).astype(np.float64),
    )


def _figures(problem: Problem, cells: Sequence[Cell], draws: Floats) -> dict[str, Floats]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)  # a draw without any vote
        figures = vote_figures(problem, _predicted(cells, scored=True), draws)
    if problem.space.kind is not ValueKind.CLASS:
        return figures
    everything = _predicted(cells, scored=False)
    copr = voted_consensus(problem, everything, np.concatenate([cell.shown for cell in cells]))
    own = [cell for cell in cells if len(cell.consensus)]
    stated = None
    if own:
        stated = Agreed(
            unit=np.concatenate([cell.units for cell in own]).astype(np.int64),
            p=np.concatenate([cell.consensus for cell in own]).astype(np.float64),
        )
    return figures | consensus_figures(problem, copr, stated, draws)


def to_json(table: Standings, ours: str, *, by_annotator: bool = False) -> dict[str, Any]:
    """The results of one data set, flat. `by_annotator` adds rows with a key annotator."""
    results, differences, notes = [], [], []
    names = table.problem.votes.annotators
    for setting in table.settings:
        for model in table.models(setting):
            standing = table.standing(model, setting, by_annotator=by_annotator)
            found = {metric: interval(values) for metric, values in standing.figures.items()} | dict(standing.kappa)
            results += [{"model": model, "setting": setting, "metric": m, **row_of(i)} for m, i in found.items()]
            for metric, values in standing.by_annotator.items():
                results += [
                    {"model": model, "setting": setting, "metric": metric, "annotator": name,
                     **row_of(interval(values[:, at]))} for at, name in enumerate(names)
                ]
            notes.append({
                "model": model, "setting": setting, "seeds": list(standing.seeds), "seconds_a_fit": standing.seconds,
                "weights": dict(standing.weights),
            })
            if model == ours:
                continue
            for metric in standing.figures:
                gap = table.difference(ours, model, setting, metric)
                if gap is not None:
                    differences.append({
                        "model": ours, "against": model, "setting": setting, "metric": metric, **row_of(interval(gap)),
                    })
    problem = table.problem
    return {
        "dataset": problem.name, "settings": table.settings, "folds": table.folds, "votes": len(problem.votes),
        "tasks": len(table.draws[0]), "annotators": len(names), "classes": list(problem.space.classes),
        "results": results, "differences": differences, "notes": notes,
    }


def row_of(found: Interval) -> dict[str, float | None]:
    """An interval as JSON, null where it is not known."""
    return {
        key: float(value) if np.isfinite(value) else None
        for key, value in (("mean", found.mean), ("low", found.low), ("high", found.high))
    }
