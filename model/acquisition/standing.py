"""How policies did: replays of several seeds, summed up with intervals over tasks, beside two baselines.

A task's area is averaged over the seeds; intervals draw tasks again, all policies on the same draws, so that
differences are paired. `saved` compares with `random`: how many more votes that took to reach the accuracy which the
policy had at half the budget; where random never got there, the votes that were left are a lower bound (`at_least`).

Shape legend: U tasks, B batches, S seeds, D draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.acquisition.base import AcquisitionError, Floats, Policy
from model.acquisition.registry import make_policy
from model.acquisition.simulate import Codes, Curve, Replay, replay_policy, split

BASELINES = ("random", "uncertainty")
_DRAWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replayed:
    """All seeds of one policy, averaged."""

    policy: str
    areas: Floats  # (U,)
    credit: Floats  # (B + 1, U)
    seconds: float  # of choosing and learning, a seed
    by_seed: Floats  # (S,) area


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """All policies on one set."""

    votes: Codes  # (B + 1,) bought so far
    replayed: Mapping[str, Replayed]
    seeds: int


def quiet(fraction: float, note: str) -> None:
    """The progress callback of callers who do not care."""


def replay_all(
    votes: Codes, classes: int, policies: Sequence[str], *, replay: Replay, seeds: int,
    progress: Callable[[float, str], None] = quiet,
) -> Standing:
    """Replay policies and both baselines on votes (U, A), -1 where there is none. Raises AcquisitionError."""
    if seeds < 1:
        raise AcquisitionError("a replay needs at least one seed")
    names = list(dict.fromkeys((*policies, *BASELINES)))
    curves: dict[str, list[Curve]] = {name: [] for name in names}
    spent = dict.fromkeys(names, 0.0)
    for seed in range(seeds):
        market = split(votes, classes, replay, seed)
        for at, name in enumerate(names):
            progress((seed + at / len(names)) / seeds, f"{name}, seed {seed}")
            begun = time.perf_counter()
            curves[name].append(replay_policy(market, _made(name, seed), replay))
            spent[name] += time.perf_counter() - begun
    return Standing(
        votes=curves[names[0]][0].votes, seeds=seeds, replayed={
            name: Replayed(
                policy=name, areas=np.mean([curve.areas for curve in some], axis=0), seconds=spent[name] / seeds,
                credit=np.mean([curve.credit for curve in some], axis=0, dtype=np.float64),
                by_seed=np.array([float(curve.areas.mean()) for curve in some]),
            ) for name, some in curves.items()
        })


def to_json(standing: Standing) -> dict[str, Any]:
    """Every figure as plain numbers; intervals are 95 %, as [value, low, high]."""
    found: dict[str, Any] = {}
    weights = _weights(len(next(iter(standing.replayed.values())).areas))
    for name, item in standing.replayed.items():
        found[name] = {
            "area": interval(item.areas, weights),
            "beside": {other: interval(item.areas - standing.replayed[other].areas, weights) for other in BASELINES},
            "seeds_above": {other: int((item.by_seed > standing.replayed[other].by_seed).sum()) for other in BASELINES},
            "accuracy": [round(float(each), 5) for each in item.credit.mean(axis=1)],
            "saved": _saved(standing, name, weights), "seconds": round(item.seconds, 2),
        }
    return {"votes": standing.votes.tolist(), "seeds": standing.seeds, "policies": found}


def interval(values: Floats, weights: NDArray[np.integer]) -> list[float]:
    """Mean of (U,) values with a 95 % bootstrap interval over tasks; `weights` (D, U) are how often each is drawn."""
    drawn = weights @ values / len(values)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return [round(float(each), 6) for each in (values.mean(), low, high)]


def _saved(standing: Standing, name: str, weights: NDArray[np.integer]) -> dict[str, Any]:
    """Votes that random needs more for what the policy has at half the budget."""
    curves = [standing.replayed[each].credit for each in (name, "random")]
    votes = standing.votes.astype(np.float64)
    value, at_least = _more_votes(votes, *(curve.mean(axis=1) for curve in curves))
    drawn = [weights @ curve.T / curve.shape[1] for curve in curves]  # (D, B + 1)
    each = np.array([_more_votes(votes, ours, theirs)[0] for ours, theirs in zip(*drawn, strict=True)])
    low, high = np.quantile(each, [0.025, 0.975])
    return {"votes": [round(float(item), 1) for item in (value, low, high)], "at_least": at_least,
            "half": float(votes[-1] / 2.0)}


def _more_votes(votes: Floats, ours: Floats, random: Floats) -> tuple[float, bool]:
    """(votes saved, whether random never got there)."""
    half = votes[-1] / 2.0
    reached = float(np.interp(half, votes, ours))
    best = np.maximum.accumulate(random)
    if best[-1] < reached:
        return float(votes[-1] - half), True
    after = int(np.argmax(best >= reached))
    if after == 0:
        return float(votes[0] - half), False
    share = (reached - best[after - 1]) / (best[after] - best[after - 1])
    return float(votes[after - 1] + share * (votes[after] - votes[after - 1]) - half), False


def _weights(tasks: int) -> NDArray[np.int64]:
    """(D, U) how often each task is drawn."""
    return np.random.default_rng(20261128).multinomial(tasks, np.full(tasks, 1.0 / tasks), size=_DRAWS)


def _made(name: str, seed: int) -> Policy:
    return make_policy(name, seed=seed) if name == "random" else make_policy(name)
