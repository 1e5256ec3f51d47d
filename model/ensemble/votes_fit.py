"""Fitting what answers from votes alone: pooling, how far annotators err together, and how sure the consensus may be.

A Dawid-Skene posterior from two votes is far too sure, since annotators err together and their habits are known from
few votes. So nothing is believed of a vote that it was fitted on: latent classes and habits are fitted without a fold
of units, some votes of its units are hidden (`hidden`), and from those that are left the others are foretold. The
pooling weights, the panel noise of `consensus` and the `Calibration` all come from such votes.

Shape legend: N votes, P annotators, D dense units, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Batch, Fitted, Sample
from model.base_models.registry import from_votes
from model.config import LadderConfig
from model.data.dataset import Dataset, Targets
from model.data.observed_votes import ObservedVotes
from model.data.spaces import Space
from model.ensemble.calibration import FROM_VOTES, Calibration, fit_calibration
from model.ensemble.consensus import USUAL_NOISE, likely_panel_noise, majority
from model.ensemble.hidden import DenseUnits, HiddenCheck, cross_checked, dense_units, some_left
from model.ensemble.stack import Stack, fit_stack, refit_weights

Floats = NDArray[np.float64]
FEW = 3  # from this many visible votes on they count as many
MASKS = 3
MOST_UNITS = 3_000  # that pooling and panel noise are fitted on
Habits = Mapping[str, Fitted]  # what votes say of annotators: the base models that do without content, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesControl:
    """One control, answered for from votes alone."""

    space: Space
    habits: Habits
    panel: NDArray[np.bool_]  # (P,)
    few: Stack  # 1 to FEW - 1 visible votes
    many: Stack
    panel_noise: float
    calibration: Calibration
    check: HiddenCheck | None  # None without dense units

    def pool(self, scores: Mapping[str, Floats], visible: NDArray[np.integer], source: NDArray[np.int64]) -> Floats:
        """Scores (B, R, C) from those of the base models, by the votes (B, R) that each answer may use."""
        return _pooled(self.few, self.many, scores, visible[..., None], source)


def fit_votes(dataset: Dataset, name: str, config: LadderConfig) -> VotesControl:
    """Fit one control on all its votes."""
    targets, people = dataset.controls[name], len(dataset.annotators)
    habits = fit_habits(targets, people, config)
    masks = [some_left(targets.unit, seed) for seed in range(MASKS)]
    fold = dataset.fold[targets.unit]  # (N,)
    folds = {int(each): fit_habits(targets.select(fold != each), people, config) for each in np.unique(fold)}
    few, many, panel_noise = _fit_pooling(targets, fold, folds, masks, people, config)
    dense = [dense_units(targets, people, mask) for mask in masks]
    spoken = [_spoken(each, dataset.fold[each.unit], folds, few, many, panel_noise, targets.space, config)
              for each in dense]
    truth = np.concatenate([each.truth(targets.space) for each in dense])
    weight = np.concatenate([each.undecided(targets.space).any(1) for each in dense]) / MASKS
    calibration = fit_calibration(
        targets.space, np.concatenate(spoken), np.concatenate([each.votes for each in dense]), truth, weight,
        FROM_VOTES,
    )
    check = cross_checked(targets.space, spoken[0], dense[0], dataset.fold[dense[0].unit], FROM_VOTES) \
        if len(spoken[0]) else None
    return VotesControl(
        space=targets.space, habits=habits, panel=np.bincount(targets.annotator, minlength=people)[:people] > 0,
        few=few, many=many, panel_noise=panel_noise, calibration=calibration, check=check,
    )


def fit_habits(targets: Targets, people: int, config: LadderConfig) -> Habits:
    """What these votes say of everybody."""
    sample = Sample(targets=targets, people=people, config=config)
    return {model.name: model.fit(sample) for model in from_votes()}


def answers(habits: Habits, votes: ObservedVotes, source: NDArray[np.int64]) -> dict[str, Floats]:
    """base model -> scores (B, R, C) from votes (B, R - 1); `source` (R,) is whose habits answer."""
    batch = Batch(source=source, votes=votes)
    return {name: fitted.scores(batch) for name, fitted in habits.items()}


def _pooled(
    few: Stack, many: Stack, scores: Mapping[str, Floats], visible: NDArray[np.integer], source: NDArray[np.int64]
) -> Floats:
    return np.where(visible >= FEW, many.pool_votes(scores, source), few.pool_votes(scores, source))


def _fit_pooling(
    targets: Targets, fold: NDArray[np.int64], folds: Mapping[int, Habits], masks: list[NDArray[np.bool_]],
    people: int, config: LadderConfig,
) -> tuple[Stack, Stack, float]:
    """The stacks for few and for many visible votes, and the panel noise of hidden votes given the visible ones."""
    space = targets.space
    units = np.unique(targets.unit)
    chosen = np.zeros(int(units.max(initial=-1)) + 1, np.bool_)
    chosen[np.random.default_rng(config.seed).permutation(units)[:MOST_UNITS]] = True
    parts = [np.flatnonzero(~mask & targets.scored & chosen[targets.unit]) for mask in masks]
    seen = [np.bincount(targets.unit, mask, minlength=len(chosen)).astype(np.int64)[targets.unit[rows]]
            for mask, rows in zip(masks, parts, strict=True)]
    rows, count = np.concatenate(parts), np.concatenate(seen)
    scores = {model.name: np.zeros((len(rows), targets.y.shape[1])) for model in from_votes()}
    begin = 0
    for mask, part in zip(masks, parts, strict=True):
        for each, habits in folds.items():
            mine = Sample(targets=targets.select(fold == each), people=people, config=config)
            here = np.searchsorted(np.flatnonzero(fold == each), part[fold[part] == each])
            at = begin + np.flatnonzero(fold[part] == each)
            for name, fitted in habits.items():
                scores[name][at] = fitted.votes(mine.seeing(mask[fold == each]))[here]
        begin += len(part)
    annotator, y, weight = targets.annotator[rows], targets.y[rows], targets.weight[rows] / MASKS
    centre = {model.name: model.weight_observed for model in from_votes()}
    both = fit_stack(space, scores, annotator, y, weight, people, stack_strength=config.stack_strength,
                     bias_strength=config.bias_strength, centre_of=centre)
    few, many = (
        refit_weights(both, space, {name: part[some] for name, part in scores.items()}, annotator[some], y[some],
                      weight[some], strength=config.stack_strength)
        for some in (count < FEW, count >= FEW)
    )
    first = slice(0, len(parts[0]))
    pooled = _pooled(few, many, {name: part[first] for name, part in scores.items()}, count[first, None],
                     annotator[first])
    noise = likely_panel_noise(space, pooled, targets.unit[rows[first]], y[first]) if len(rows) else USUAL_NOISE
    return few, many, noise


def _spoken(
    dense: DenseUnits, fold: NDArray[np.int64], folds: Mapping[int, Habits], few: Stack, many: Stack,
    panel_noise: float, space: Space, config: LadderConfig,
) -> Floats:
    """(D, C) the consensus of dense units among those who voted, from the votes left and habits without the fold."""
    source = np.arange(dense.has.shape[1] + 1)
    found = np.zeros((len(fold), len(space.classes)))
    for each, habits in folds.items():
        here = fold == each
        if not here.any():
            continue
        y, left = dense.y[here], dense.left[here]
        shown = ObservedVotes(y=y * left[..., None], has=left, weight=dense.weight[here])
        visible = left.sum(1)[:, None] - np.pad(left, ((0, 0), (0, 1)))
        scores = _pooled(few, many, answers(habits, shown, source), visible[..., None], source)[:, :-1]
        found[here] = majority(space, scores, y, left, dense.has[here], panel_noise, config.consensus_samples,
                               np.zeros(left.shape))
    return found
