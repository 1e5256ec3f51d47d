"""What is served where a unit already has votes: the base models that read votes, and stacks of their own.

Those that read votes join the others; some of them (`on_stack`) start from what the stack for units without votes says
of content. One stack is fitted on out-of-sample votes with some of the others visible, near the starting weights; for
few and for many visible votes its weights are fitted again, near those. Where an annotator sees nobody's vote on a
unit, the stack for units without votes answers, so that nothing changes there. The votes that are still missing err
together less than without any given one; how far they do is fitted on votes that one view hid.

Shape legend: B units, P known annotators, E unknown givers, R = P + E + 1 rows of answers (the last one for somebody
unknown who gave nothing), C classes, N votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Fitted
from model.base_models.registry import BASE_MODELS, starting_weights
from model.config import LadderConfig
from model.data.observed_votes import ObservedVotes
from model.data.scores import losses
from model.ensemble.consensus import fit_panel_noise
from model.ensemble.floor import GAP_PRIOR, FloorFit, lost_by, shares
from model.ensemble.out_of_sample import OutOfSample
from model.ensemble.stack import Stack, fit_stack, refit_weights

Floats = NDArray[np.float64]
_SPLITS = 4
FEW = 3  # from this many visible votes on they count as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What the ladder learned about units with votes, for one control, beside its base models."""

    few: Stack  # 1 to FEW - 1 visible votes
    many: Stack
    panel_noise: float  # sigma of `consensus` where there are given votes
    share: Floats | None = None  # (P + 1, 3) of `floor` where others voted; None without a floor

    def pool(
        self, alone: Floats, scores: Mapping[str, Floats], votes: ObservedVotes, source: NDArray[np.int64]
    ) -> Floats:
        """Scores (B, R, C): `alone`, those without votes, where nobody else voted; elsewhere the stacks of those of
        base models."""
        has = np.concatenate([votes.has, np.zeros((len(votes.has), 1), np.bool_)], 1)  # (B, R)
        visible = votes.has.sum(1)[:, None] - has
        found = np.where((visible >= FEW)[..., None], self.many.pool_votes(scores, source), alone)
        some = (visible > 0) & (visible < FEW)
        return np.where(some[..., None], self.few.pool_votes(scores, source), found) if some.any() else found


def fit_gaps(
    item: OutOfSample, alone: Stack, rows: NDArray[np.bool_], people: int, config: LadderConfig,
    floor: FloorFit | None = None,
) -> tuple[Gaps, dict[str, Fitted]]:
    """Stacks on the votes of a mask (N,), where `alone` is that for units without votes; without any vote that sees
    another one they are their prior. And the base models that start from that stack."""
    item, fitted = with_those_on_stack(item, alone.pool_votes(item.scores, item.targets.annotator))
    few, many = fit_gap_stacks(item, rows, people, config)
    return Gaps(
        few=few, many=many, panel_noise=_panel_noise(item, rows, few, many),
        share=None if floor is None else _share(item, rows, floor, few, many, people),
    ), fitted


def _share(
    item: OutOfSample, rows: NDArray[np.bool_], floor: FloorFit, few: Stack, many: Stack, people: int
) -> Floats:
    """How each annotator's answer is mixed where others voted, (P + 1, 3); each vote counts once."""
    targets, total = item.targets, np.zeros((people + 1, len(GAP_PRIOR)))
    for index, visible in enumerate(item.visible):
        weight = targets.weight * (rows & (visible.count > 0)) / len(item.visible)
        ways = pool_visible(item, index, floor.served, few, many), floor.served, floor.frequencies
        total += lost_by(targets.annotator, [losses(targets.space, way, targets.y) * weight for way in ways], people)
    share = shares(GAP_PRIOR, total)
    share[-1] = np.eye(len(GAP_PRIOR))[0]
    return share


def with_those_on_stack(item: OutOfSample, base: Floats) -> tuple[OutOfSample, dict[str, Fitted]]:
    """The same votes with the base models that start from scores of a stack, `base` (N, C), each by a fit without its
    fold; and those models fitted on all of them.

    Where networks were trained on one split only, its votes are split once more.
    """
    fold = item.fold if len(np.unique(item.fold)) > 1 else item.targets.unit % _SPLITS
    folds = tuple(np.unique(fold).tolist()) if item.visible else ()
    sample, fitted = replace(item.sample, stacked=base, fold=fold, folds=folds), dict[str, Fitted]()
    for name, model in BASE_MODELS.items():
        if model.on_stack:
            found = model.out_of_fold(sample, [each.shown for each in item.visible])
            item, fitted[name] = item.with_scores(name, found.scores), found.on_all(sample)
    return item, fitted


def fit_gap_stacks(
    item: OutOfSample, rows: NDArray[np.bool_], people: int, config: LadderConfig
) -> tuple[Stack, Stack]:
    """The stacks for few and for many visible votes; each vote counts once, however many views show it."""
    space, share = item.targets.space, 1.0 / max(1, len(item.visible))
    shown = [rows & (visible.count > 0) for visible in item.visible]
    every, centre = [item.under(view) for view in range(len(shown))], starting_weights(observed=True)
    scores = {
        name: np.concatenate([each[name][some] for each, some in zip(every, shown, strict=True)]) for name in centre
    }
    count = np.concatenate([visible.count[some] for visible, some in zip(item.visible, shown, strict=True)])
    annotator = np.concatenate([item.targets.annotator[some] for some in shown])
    y = np.concatenate([item.targets.y[some] for some in shown])
    weight = np.concatenate([item.targets.weight[some] for some in shown]) * share
    both = fit_stack(
        space, scores, annotator, y, weight, people, stack_strength=config.stack_strength,
        bias_strength=config.bias_strength, centre_of=centre,
    )
    stacks = []
    for part in (count < FEW, count >= FEW):
        stacks.append(refit_weights(
            both, space, {name: each[part] for name, each in scores.items()}, annotator[part], y[part],
            weight[part], strength=config.stack_strength,
        ))
    return stacks[0], stacks[1]


def pool_visible(item: OutOfSample, index: int, alone: Floats, few: Stack, many: Stack) -> Floats:
    """Scores (N, C) of votes under one view; `alone` are those without votes."""
    scores = item.under(index)
    count = item.visible[index].count[:, None]
    annotator = item.targets.annotator
    return np.where(
        count >= FEW, many.pool_votes(scores, annotator), np.where(count > 0, few.pool_votes(scores, annotator), alone)
    )


def _panel_noise(item: OutOfSample, rows: NDArray[np.bool_], few: Stack, many: Stack) -> float:
    """How far votes that the first view hid err together, given those that it showed."""
    if not item.visible:
        return 0.0
    visible = item.visible[0]
    hidden = rows & ~visible.shown & (visible.count > 0)
    scores = pool_visible(item, 0, np.zeros(item.targets.y.shape), few, many)[hidden]
    return fit_panel_noise(item.targets.space, scores, item.targets.unit[hidden], item.targets.y[hidden])
