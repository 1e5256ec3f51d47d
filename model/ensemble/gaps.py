"""What is served where a unit already has votes: two rungs more, and stacks of their own.

Rungs `conditioned` (the network that reads the votes) and `others` (latent classes) join prior, pooled and network. One
stack is fitted on out-of-sample votes with some of the others visible, near `GAP_WEIGHTS`; for few and for many visible
votes its weights are fitted again, near those. Where an annotator sees nobody's vote on a unit, the stack for units
without votes answers, so that nothing changes there. The votes that are still missing err together less than without
any given one; their spread is fitted on votes that one mask hid.

Shape legend: B units, P known annotators, E unknown givers, R = P + E + 1 rows of answers (the last one for somebody
unknown who gave nothing), C classes, N votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.ensemble.consensus import fit_spread
from model.ensemble.gap_rungs import OutOfSample
from model.ensemble.given import GivenVotes
from model.ensemble.latent import LatentClasses
from model.ensemble.stack import GAP_WEIGHTS, Stack, fit_stack, refit_weights

Floats = NDArray[np.float64]
FEW = 3  # from this many visible votes on they count as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What the ladder learned about units with votes, for one control."""

    latent: LatentClasses
    few: Stack  # 1 to FEW - 1 visible votes
    many: Stack
    spread: float  # sigma of `consensus` where there are given votes

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
    item: OutOfSample, latent: LatentClasses, rows: NDArray[np.bool_], people: int, config: LadderConfig
) -> Gaps:
    """Stacks on the votes of a mask (N,); without any that sees another vote they are their prior."""
    few, many = fit_gap_stacks(item, rows, people, config)
    return Gaps(latent=latent, few=few, many=many, spread=_spread(item, rows, few, many))


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
