"""What is served where a unit already has votes: three rungs more, and stacks of their own.

Rungs `conditioned` (the network that reads the votes), `others` (latent classes) and `factors` (leanings that some
annotators share, beyond what content tells) join prior, pooled and network. One stack is fitted on out-of-sample votes
with some of the others visible, near `GAP_WEIGHTS`; for few and for many visible votes its weights are fitted again,
near those. Where an annotator sees nobody's vote on a unit, the stack for units
without votes answers, so that nothing changes there. The votes that are still missing err together less than without
any given one; their spread is fitted on votes that one mask hid.

Shape legend: B units, P known annotators, E unknown givers, R = P + E + 1 rows of answers (the last one for somebody
unknown who gave nothing), C classes, N votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.ensemble.consensus import fit_spread
from model.ensemble.factors import PRECISIONS, Factors, fit_factors
from model.ensemble.floor import GAP_PRIOR, FloorFit, lost_by, shares
from model.ensemble.gap_rungs import OutOfSample
from model.ensemble.given import GivenVotes
from model.ensemble.latent import LatentClasses
from model.ensemble.scores import losses
from model.ensemble.stack import GAP_WEIGHTS, Stack, fit_stack, refit_weights

Floats = NDArray[np.float64]
_SPLITS = 4
FEW = 3  # from this many visible votes on they count as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What the ladder learned about units with votes, for one control."""

    latent: LatentClasses
    few: Stack  # 1 to FEW - 1 visible votes
    many: Stack
    spread: float  # sigma of `consensus` where there are given votes
    factors: Factors | None = None  # None in a checkpoint from before there was any
    share: Floats | None = None  # (P + 1, 3) of `floor` where others voted; None without a floor

    def others(self, votes: GivenVotes, source: NDArray[np.int64]) -> Floats:
        """Scores of the latent classes, (B, R, C); `source` (R,) is whose matrix answers."""
        columns = np.arange(votes.has.shape[1])
        return self.latent.scores(
            votes.y, votes.has, votes.weight, giver=source[:-1], asked=np.append(columns, -1), row=source
        )

    def pool(
        self, alone: Floats, rungs: Mapping[str, Floats], votes: GivenVotes, source: NDArray[np.int64]
    ) -> Floats:
        """Scores (B, R, C): `alone`, those without votes, where nobody else voted; the stacks of rungs elsewhere."""
        has = np.concatenate([votes.has, np.zeros((len(votes.has), 1), np.bool_)], 1)  # (B, R)
        visible = votes.has.sum(1)[:, None] - has
        found = np.where((visible >= FEW)[..., None], self.many.pool_votes(rungs, source), alone)
        some = (visible > 0) & (visible < FEW)
        return np.where(some[..., None], self.few.pool_votes(rungs, source), found) if some.any() else found


def fit_gaps(
    item: OutOfSample, latent: LatentClasses, alone: Stack, rows: NDArray[np.bool_], people: int, config: LadderConfig,
    floor: FloorFit | None = None,
) -> Gaps:
    """Stacks on the votes of a mask (N,), where `alone` is that for units without votes; without any vote that sees
    another one they are their prior."""
    item, factors = with_factors(item, alone.pool_votes(item.rungs, item.targets.annotator), people, config.seed)
    few, many = fit_gap_stacks(item, rows, people, config)
    return Gaps(
        latent=latent, few=few, many=many, spread=_spread(item, rows, few, many), factors=factors,
        share=None if floor is None else _share(item, rows, floor, few, many, people),
    )


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


def with_factors(item: OutOfSample, base: Floats, people: int, seed: int) -> tuple[OutOfSample, Factors]:
    """The same votes with the rung `factors`, each by a fit without its fold, and the rung fitted on all of them.

    `base` (N, C) are scores from content alone. The precision is the one that serves the votes of the first fold best.
    Where networks were trained on one split only, its votes are split once more.
    """
    targets = item.targets
    fold_of = item.fold if len(np.unique(item.fold)) > 1 else targets.unit % _SPLITS

    def fitted(learn: NDArray[np.bool_], precision: float, start: Factors | None = None) -> Factors:
        return fit_factors(targets.select(learn), base[learn], people, precision, seed, start)

    def seen_by(model: Factors, fold: int, index: int) -> Floats:
        here = fold_of == fold
        return model.votes(targets.select(here), item.visible[index].seen[here], base[here])

    def loss(model: Factors, fold: int) -> float:
        theirs = targets.select(fold_of == fold)
        return float(losses(targets.space, seen_by(model, fold, -1), theirs.y) @ theirs.weight)

    folds = [int(fold) for fold in np.unique(fold_of)] if item.visible else []
    precision, models, start = PRECISIONS[0], dict[int, Factors](), None
    if folds:
        first = {each: fitted(fold_of != folds[0], each) for each in PRECISIONS}
        precision = min(first, key=lambda each: loss(first[each], folds[0]))
        start = first[precision]
        models = {fold: fitted(fold_of != fold, precision, start) for fold in folds[1:]} | {folds[0]: start}
    visible = []
    for index, each in enumerate(item.visible):
        scores = np.empty(targets.y.shape, np.float64)
        for fold, model in models.items():
            scores[fold_of == fold] = seen_by(model, fold, index)
        visible.append(replace(each, rungs={**each.rungs, "factors": scores}))
    return replace(item, visible=tuple(visible)), fitted(np.ones(len(targets), np.bool_), precision, start)


def fit_gap_stacks(
    item: OutOfSample, rows: NDArray[np.bool_], people: int, config: LadderConfig
) -> tuple[Stack, Stack]:
    """The stacks for few and for many visible votes; each vote counts once, however many masks show it."""
    space, share = item.targets.space, 1.0 / max(1, len(item.visible))
    shown = [rows & (visible.count > 0) for visible in item.visible]
    rungs = {
        name: np.concatenate([_rung(item, index, name)[some] for index, some in enumerate(shown)])
        for name in GAP_WEIGHTS
    }
    count = np.concatenate([visible.count[some] for visible, some in zip(item.visible, shown, strict=True)])
    annotator = np.concatenate([item.targets.annotator[some] for some in shown])
    y = np.concatenate([item.targets.y[some] for some in shown])
    weight = np.concatenate([item.targets.weight[some] for some in shown]) * share
    both = fit_stack(
        space, rungs, annotator, y, weight, people, stack_strength=config.stack_strength,
        bias_strength=config.bias_strength, centre_of=GAP_WEIGHTS,
    )
    stacks = []
    for part in (count < FEW, count >= FEW):
        stacks.append(refit_weights(
            both, space, {name: scores[part] for name, scores in rungs.items()}, annotator[part], y[part],
            weight[part], strength=config.stack_strength,
        ))
    return stacks[0], stacks[1]


def pool_visible(item: OutOfSample, index: int, alone: Floats, few: Stack, many: Stack) -> Floats:
    """Scores (N, C) of votes under one mask; `alone` are those without votes."""
    rungs = {name: _rung(item, index, name) for name in GAP_WEIGHTS}
    count = item.visible[index].count[:, None]
    annotator = item.targets.annotator
    return np.where(
        count >= FEW, many.pool_votes(rungs, annotator), np.where(count > 0, few.pool_votes(rungs, annotator), alone)
    )


def _rung(item: OutOfSample, index: int, name: str) -> Floats:
    return item.rungs[name] if name in item.rungs else item.visible[index].rungs[name]


def _spread(item: OutOfSample, rows: NDArray[np.bool_], few: Stack, many: Stack) -> float:
    """The spread of votes that the first mask hid, given those that it showed."""
    if not item.visible:
        return 0.0
    visible = item.visible[0]
    hidden = rows & ~visible.seen & (visible.count > 0)
    scores = pool_visible(item, 0, np.zeros(item.targets.y.shape), few, many)[hidden]
    return fit_spread(item.targets.space, scores, item.targets.unit[hidden], item.targets.y[hidden])
