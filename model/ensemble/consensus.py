"""Consensus: how probable is each label to be the majority of the full panel, given the votes there are.

The missing votes are drawn jointly. Annotators err together, because a unit is harder or stranger than the model knows,
so eighteen predictions of one network are not eighteen witnesses: all scores of a unit share an unknown shift z,

    votes of annotator a on unit b ~ P( k s[b, a] + sigma z[b] ),     z[b] ~ N(0, I_C),

with k chosen so that the average over z gives back about P(s). `sigma` is fitted by the likelihood of votes that lie
on the same unit. Given votes say what z probably is and count in the majority as what they are. Where they say much,
few draws from N(0, I) would be anywhere near; so draws come from a normal distribution around the most probable z given
the votes (Laplace's), and each is weighted by what that leaves out: prior times likelihood over its density there. All
units share one set of seeded draws, so a result depends on neither the batch nor order.

Shape legend: B units, P panel, C classes, S draws, N votes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from model.data.scores import losses, to_probabilities
from model.data.spaces import Space, ValueKind

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
NOISES = (0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
USUAL_NOISE, _NOISE_WIDTH = 0.8, 0.3  # of the prior of `likely_panel_noise`
_FINE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5)
_SEED = 20251128
_FIT_DRAWS = 128
_WIDENING_DRAWS = 4096
_FIT_VOTES = 20_000
_CELLS = 4_000_000  # numbers in memory at once while fitting
_NEWTON_STEPS, _LONGEST_STEP = 8, 2.0  # towards the most probable shift
_BLOCK = 130_000  # and while drawing, so that they stay in the cache


def fit_panel_noise(space: Space, scores: Floats, unit: NDArray[np.integer], y: NDArray[np.floating]) -> float:
    """The sigma of `NOISES` under which out-of-sample scores (N, C) explain the votes best, taken unit by unit."""
    fit = _fits(space, scores, unit, y, NOISES)
    best = 0
    for at in range(1, len(fit)):
        if fit[at] > fit[best] + 1e-9:
            best = at
    return NOISES[best]


def likely_panel_noise(space: Space, scores: Floats, unit: NDArray[np.integer], y: NDArray[np.floating]) -> float:
    """The mean of sigma given the votes, where few of them say little: near `USUAL_NOISE`, which simulated projects
    and public crowds have."""
    noises = np.array(_FINE)
    said = np.array(_fits(space, scores, unit, y, _FINE)) - 0.5 * np.square((noises - USUAL_NOISE) / _NOISE_WIDTH)
    weight = np.exp(said - said.max())
    return float(weight @ noises / weight.sum())


def _fits(
    space: Space, scores: Floats, unit: NDArray[np.integer], y: NDArray[np.floating], noises: Sequence[float]
) -> list[float]:
    """The log-likelihood of the votes under each; all 0 without votes."""
    order = _some_units(unit, _FIT_VOTES)
    _, start = np.unique(unit[order], return_index=True)
    if not len(order):
        return [0.0] * len(noises)
    z = np.random.default_rng(_SEED).standard_normal((_FIT_DRAWS, scores.shape[1]))
    found = []
    for sigma in noises:
        wide, step = widened(space, scores[order], sigma), max(1, _CELLS // max(1, scores.size))
        blocks = [
            np.add.reduceat(-losses(space, wide + sigma * z[at : at + step, None], y[order]), start, axis=1)
            for at in range(0, _FIT_DRAWS, step)
        ]
        found.append(float(_log_mean(np.concatenate(blocks).T).sum()))  # (units, S)
    return found


def _some_units(unit: NDArray[np.integer], most: int) -> NDArray[np.intp]:
    """Positions of votes sorted by unit: all, or those of a seeded sample of whole units with about `most` votes."""
    _, place, count = np.unique(unit, return_inverse=True, return_counts=True)
    shuffled = np.random.default_rng(_SEED).permutation(len(count))
    chosen = np.zeros(len(count), np.bool_)
    chosen[shuffled[: max(1, int((np.cumsum(count[shuffled]) <= most).sum()))]] = True
    order = np.argsort(unit, kind="stable")
    return order[chosen[place[order]]] if len(order) else order


def widened(space: Space, scores: Floats, sigma: float) -> Floats:
    """k s: the scores whose average over the shift gives back about the probabilities of s."""
    if space.kind is ValueKind.CLASS and len(space.classes) > 2 and sigma > 0.0:
        return scores * _widening(len(space.classes), sigma)
    variance = 2.0 * sigma**2 if space.kind is ValueKind.CLASS else sigma**2  # of a difference of scores
    return scores * math.sqrt(1.0 + math.pi / 8.0 * variance)


@lru_cache(maxsize=256)
def _widening(classes: int, sigma: float) -> float:
    """k for three classes or more, for which there is no formula.

    It is exact for one class half way between a guess and certainty, the others being alike.
    """
    z = sigma * np.random.default_rng(_SEED).standard_normal((_WIDENING_DRAWS, classes))
    z = np.concatenate([z, -z])
    wanted = 0.5 + 0.5 / classes
    score = math.log(wanted / (1.0 - wanted) * (classes - 1))

    def excess(k: float) -> float:
        shifted = z.copy()
        shifted[:, 0] += k * score
        shifted -= shifted.max(1, keepdims=True)
        p = np.exp(shifted)
        return float((p[:, 0] / p.sum(1)).mean()) - wanted

    return float(brentq(excess, 0.5, 2.0 + 4.0 * sigma, xtol=1e-4))


def majority(
    space: Space, scores: Floats, given: NDArray[np.floating], has: NDArray[np.bool_], panel: NDArray[np.bool_],
    sigma: float, draws: int, trust: NDArray[np.floating] | None = None,
) -> Floats:
    """Probability of each class to be the majority, (B, C); a tie is shared equally.

    `scores` (B, P, C) calibrated, `given` (B, P, C) encoded votes where `has` (B, P), `panel` (B, P) who counts,
    `trust` (B, P) how much a given vote says about the votes to come (all 1 by default).
    Single choice: the rows add up to 1. Several choices: for each class, that more than half of the panel choose it.
    """
    people, classes = scores.shape[1:]
    trust = np.ones(has.shape) if trust is None else trust
    z = np.random.default_rng(_SEED).standard_normal((draws, classes))  # (S, C)
    # Person by person, so that somebody new at the end of the panel changes nobody's draws.
    uniform = np.random.default_rng([_SEED, 1]).random((people, draws, 1 if space.kind is ValueKind.CLASS else classes))
    u: Singles = np.ascontiguousarray(uniform.transpose(2, 0, 1), dtype=np.float32)  # (1 or C, P, S)
    step = max(1, _BLOCK // max(1, draws * people * classes))
    parts = [
        _majority(space, scores[at], given[at], has[at], trust[at], panel[at] | has[at], sigma, z, u)
        for at in (slice(start, start + step) for start in range(0, len(scores), step))
    ]
    return np.concatenate(parts) if parts else np.empty((0, classes))


def _majority(
    space: Space, scores: Floats, given: NDArray[np.floating], has: NDArray[np.bool_], trust: NDArray[np.floating],
    panel: NDArray[np.bool_], sigma: float, z: Floats, u: Singles,
) -> Floats:
    wide = widened(space, scores, sigma)
    z, weight = _given(space, wide, given, has, trust, sigma, z)  # (B, S, C), (B, S)
    # Classes first and draws last, so that every step runs along long rows; single precision is plenty for drawing.
    shift = np.moveaxis(sigma * z, 2, 0).astype(np.float32)  # (C, B, S)
    shifted = np.moveaxis(wide, 2, 0).astype(np.float32)[..., None] + shift[:, :, None]  # (C, B, P, S)
    drawn = (panel & ~has)[..., None]  # (B, P, 1): whose votes are drawn
    votes = (given * has[..., None] > 0.5).sum(1).T[..., None]  # (C, B, 1): those there are
    if space.kind is ValueKind.CLASS:
        shifted -= shifted.max(0)
        upto = np.exp(shifted, out=shifted)
        for index in range(1, len(upto)):  # many times faster than cumsum along a first axis
            upto[index] += upto[index - 1]
        below = (u * upto[-1] < upto[:-1]) & drawn  # (C - 1, B, P, S): the draw is among the first classes
        everybody = np.broadcast_to(drawn.sum(1)[None], (1, *weight.shape))
        first = np.concatenate([below.sum(2, dtype=np.int16), everybody])
        votes = votes + np.diff(first, axis=0, prepend=0)  # (C, B, S)
        top = votes == votes.max(0)
        won = top / top.sum(0)
    else:
        # u below 1 / (1 + exp(-s)), without the division
        np.exp(np.negative(np.clip(shifted, -60.0, 60.0, out=shifted), out=shifted), out=shifted)
        chosen = (u[:, None] * (1.0 + shifted) < 1.0) & drawn
        votes = votes + chosen.sum(2, dtype=np.int16)
        half = panel.sum(1)[:, None] / 2.0
        won = np.where(votes > half, 1.0, np.where(votes == half, 0.5, 0.0))
    return np.asarray(np.einsum("bs,cbs->bc", weight, won))


def _given(
    space: Space, wide: Floats, given: NDArray[np.floating], has: NDArray[np.bool_], trust: NDArray[np.floating],
    sigma: float, draws: Floats,
) -> tuple[Floats, Floats]:
    """Draws of z given the votes there are, (B, S, C), from standard normal ones (S, C); and how much each is worth,
    (B, S), whose rows add up to 1."""
    unit, person = np.nonzero(has & (trust > 0.0))
    shape = (len(wide), *draws.shape)
    if not len(unit) or sigma == 0.0:
        return np.broadcast_to(draws, shape), np.full(shape[:2], 1.0 / len(draws))
    scores, y, says = wide[unit, person], given[unit, person].astype(np.float64), trust[unit, person]
    mode, root = _most_probable(space, scores, y, says, unit, sigma, len(wide))
    same = np.broadcast_to(draws.T, (len(wide), *draws.T.shape))
    spread = np.linalg.solve(root.transpose(0, 2, 1), same)  # (B, C, S)
    z = mode[:, None] + spread.transpose(0, 2, 1)
    worth = 0.5 * (np.square(draws).sum(1) - np.square(z).sum(2))  # (B, S) the prior over the density drawn from
    np.add.at(worth, unit, -losses(space, scores[:, None] + sigma * z[unit], y[:, None]) * says[:, None])
    weight = np.exp(worth - worth.max(1, keepdims=True))
    return z, np.asarray(weight / weight.sum(1, keepdims=True))


def _most_probable(
    space: Space, scores: Floats, y: Floats, trust: NDArray[np.floating], unit: NDArray[np.intp], sigma: float,
    units: int,
) -> tuple[Floats, Floats]:
    """The mode of z in each unit given votes (n,), (B, C), and the root of its curvature there, lower (B, C, C)."""
    classes = scores.shape[1]
    mode = np.zeros((units, classes))
    single = space.kind is ValueKind.CLASS
    for step in range(_NEWTON_STEPS + 1):
        p = to_probabilities(space, scores + sigma * mode[unit])
        slope, curve = -mode, np.repeat(np.eye(classes)[None], units, 0)
        np.add.at(slope, unit, sigma * trust[:, None] * (y - p))
        each = (p if single else p * (1.0 - p))[:, :, None] * np.eye(classes)  # (n, C, C)
        if single:
            each = each - p[:, :, None] * p[:, None]
        np.add.at(curve, unit, sigma**2 * trust[:, None, None] * each)
        if step < _NEWTON_STEPS:
            move = np.linalg.solve(curve, slope[..., None])[..., 0]
            length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
            mode = mode + move * np.minimum(1.0, _LONGEST_STEP / length)
    return mode, np.asarray(np.linalg.cholesky(curve), np.float64)


def _log_mean(x: Floats) -> Floats:
    top = x.max(1)
    return np.asarray(top + np.log(np.exp(x - top[:, None]).mean(1)))
