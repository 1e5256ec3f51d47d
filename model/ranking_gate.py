"""Which of two models of the rankings of a control is served: the new one, unless it is shown to be worse.

Worse is what an interval shows to be, and by more than a margin; smaller steps are not added up over versions.

Both are asked about rankings on units that neither was fitted on, as they would be served: on units without a ranking
(`unseen`), and with every other ranking of the unit shown (`gap`); where a model keeps silent, all orders are equally
likely. Losses are paired by ranking and their difference is clustered by unit. Rankings of a version are judged apart
from its network, since they are fitted apart: a better network does not have to wait for orders, nor do worse orders
come along with it.

Shape legend: N rankings, L items of the longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.metrics import Interval, paired_interval
from model.data.votes import Votes
from model.plackett_luce import log_likelihood
from model.ranking_model import Given, RankingModel, newest_rankings

Floats = NDArray[np.float64]
LEAST_RANKINGS, LEAST_UNITS = 10, 5  # below, an interval says too little for a verdict
_MARGIN = 0.01  # nats a ranking that count as no difference


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingVerdict:
    """Whether the new model is served, why, in words that follow a colon, and the numbers (JSON-able)."""

    new: bool
    reason: str
    figures: dict[str, Any]


def judge_rankings(
    new: RankingModel, published: RankingModel | None, heldout: Votes, *, level: float = 0.95
) -> RankingVerdict:
    """Decide on `new`; `heldout` are rankings of the control on units that neither model was fitted on."""
    if published is None:
        return RankingVerdict(new=True, reason=_first(new), figures={"test": "cross_validation"})
    ours, unit = served_losses(new, heldout)
    theirs, _ = served_losses(published, heldout)
    units = len(np.unique(unit))
    if units < LEAST_UNITS or len(ours) < LEAST_RANKINGS:
        return RankingVerdict(
            new=True, reason=f"too few held-out rankings to compare with the published ones ({len(ours)} answers)",
            figures={"test": "none", "answers": len(ours), "units": units})
    found = paired_interval(ours - theirs, unit, level=level)
    return RankingVerdict(
        new=not found.exceeds(_MARGIN), reason=_sentence(found, len(ours)),
        figures={"test": "heldout", "answers": len(ours), "units": units, "mean": found.mean,
                 "low": found.low, "high": found.high, "new": float(ours.mean()), "published": float(theirs.mean())})


def served_losses(model: RankingModel, votes: Votes) -> tuple[Floats, NDArray[np.int64]]:
    """Nats of each ranking that may be scored, first all as `unseen`, then those that are hidden in `gap`; and units.

    Rankings of fewer than two items, or with one twice, say nothing and are left out. Of many the newest are taken.
    """
    votes, ranks = newest_rankings(votes)
    given, hidden = _shown(votes)
    everyone = np.flatnonzero(votes.scored)
    inside = np.flatnonzero(votes.scored & hidden)
    unseen = _losses(model, votes, ranks, everyone, {})
    gap = _losses(model, votes, ranks, inside, given)
    rows = np.concatenate([everyone, inside])
    return np.concatenate([unseen, gap]), votes.unit[rows].astype(np.int64)


def _shown(votes: Votes) -> tuple[dict[int, list[Given]], NDArray[np.bool_]]:
    """Unit -> every other of its rankings, from the second on; and which are hidden there, (N,)."""
    times = np.bincount(votes.unit, minlength=len(votes.units))
    count: dict[int, int] = {}
    given: dict[int, list[Given]] = {}
    hidden = np.zeros(len(votes), np.bool_)
    for row, unit in enumerate(votes.unit.tolist()):
        nth = count[unit] = count.get(unit, -1) + 1
        if nth % 2:
            given.setdefault(unit, []).append(
                (votes.annotators[votes.annotator[row]], votes.values[votes.value[row]], float(votes.weight[row])))
        else:
            hidden[row] = times[unit] > 1
    return given, hidden


def _losses(
    model: RankingModel, votes: Votes, ranks: list[dict[str, int]], rows: NDArray[np.int64],
    given: dict[int, list[Given]],
) -> Floats:
    """Nats of the rankings at `rows` when the rankings `given` on their units are known."""
    if not len(rows):
        return np.zeros(0)
    asked = [list(ranks[row]) for row in rows]
    shown = [given.get(unit, []) for unit in votes.unit[rows].tolist()]
    scores, bucket = np.zeros((len(rows), max(map(len, asked)))), np.full((len(rows), max(map(len, asked))), -1)
    who = votes.annotator[rows].tolist()
    for at, found in enumerate(model.scores(asked, votes.annotators, shown)):
        wide = len(asked[at])
        bucket[at, :wide] = np.unique(list(ranks[rows[at]].values()), return_inverse=True)[1]
        if model.speaks(seen=bool(shown[at])):
            scores[at, :wide] = found[who[at]]
    return -log_likelihood(scores, bucket)[0]


def _first(model: RankingModel) -> str:
    said = []
    for name, where in (("unseen", "on tasks without a ranking"), ("gap", "on tasks with some")):
        part = model.figures.get(name, {})
        if part.get("helps"):
            said.append(f"better than equal chances {where} by {part['gain']:.2f} nats a ranking "
                        f"({part['low']:.2f} to {part['high']:.2f})")
    return " and ".join(said) or (
        "not shown to be better than equal chances, so only the mean rank of given rankings is predicted")


def _sentence(found: Interval, count: int) -> str:
    numbers = f"({found.mean:+.3f} nats, {found.low:+.3f} to {found.high:+.3f} on {count} held-out answers)"
    if found.exceeds(_MARGIN):
        return f"shown to be worse than the published ones, which stay {numbers}"
    if found.low > 0.0:
        return f"shown to be worse than the published ones, but up to {_MARGIN:g} counts as no difference {numbers}"
    return f"{'shown to be better' if found.high < 0.0 else 'not shown to be worse'} than the published ones {numbers}"
