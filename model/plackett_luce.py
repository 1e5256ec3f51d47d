"""The Plackett-Luce likelihood of rankings with ties (buckets), and its gradient.

An item i has the rate w_i = exp(s_i); items arrive at independent exponential times, and a ranking is the order of
arrival. A bucket B of items that arrive before all of the rest R, in whatever order among themselves, has

    P(B before R) = int_0^1 prod_{i in B} (1 - u^(w_i / w_R)) du,        w_R = sum of the rates of R,

which for one item is the familiar w_i / (w_i + w_R). Arrivals have no memory, so the probability of a ranking is the
product over its buckets; the last one has probability 1. It is exact for any ties: the probabilities of all strict
orders that a ranking leaves open add up to its own. The integral is taken by tanh-sinh quadrature.
Source: Plackett (1975), Luce (1959); the form for buckets follows from the race of exponentials.

Shape legend: N rankings, L places for items in each, K nodes of the quadrature. `bucket` (N, L): 0 is best, -1 no item.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_X = np.arange(-32, 33) * 0.1  # (K,) nodes of the tanh-sinh rule
_LOG_U = -np.log1p(np.exp(-np.pi * np.sinh(_X)))  # (K,) log of the node in (0, 1)
_LOG_W = np.log(0.1 * np.pi * np.cosh(_X)) + _LOG_U - np.log1p(np.exp(np.pi * np.sinh(_X)))  # (K,) log of its weight
_AT_ONCE = 256  # rankings with ties in one array (N, L, K)
_FAR = 40.0  # scores differ by no more than this: beyond it a probability is 0 or 1 in double precision


def log_likelihood(scores: Floats, bucket: Ints) -> tuple[Floats, Floats]:
    """Log-probability (N,) of each ranking of its own items, and its gradient by the scores (N, L).

    Costs N L for rankings without ties, and for those with ties as much for every bucket, K-fold for one of several.
    """
    total, gradient = np.zeros(len(scores)), np.zeros_like(scores)
    tied = has_ties(bucket)
    for rows, part in ((np.flatnonzero(~tied), _strict), (np.flatnonzero(tied), _with_ties)):
        if len(rows):
            total[rows], gradient[rows] = part(scores[rows], bucket[rows])
    return total, gradient


def has_ties(bucket: Ints) -> NDArray[np.bool_]:
    """(N,) whether a ranking has two items in one bucket."""
    ordered = np.sort(bucket, 1)
    found: NDArray[np.bool_] = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(1)
    return found


def _strict(scores: Floats, bucket: Ints) -> tuple[Floats, Floats]:
    """Rankings without ties: the rates of what is left are sums from the end."""
    place = np.where(bucket < 0, np.iinfo(bucket.dtype).max, bucket)
    order = np.argsort(place, 1)
    there = np.take_along_axis(bucket, order, 1) >= 0
    in_order = np.where(there, np.take_along_axis(scores, order, 1), -np.inf)
    left = np.logaddexp.accumulate(in_order[:, ::-1], 1)[:, ::-1]  # (N, L) log of the rates from here to the end
    left = np.where(there, left, np.inf)
    found = np.where(there, in_order - left, 0.0).sum(1)
    taken = np.exp(in_order + np.logaddexp.accumulate(-left, 1))  # (N, L) how often it was expected to come by then
    slope = np.empty_like(scores)
    np.put_along_axis(slope, order, np.where(there, 1.0 - taken, 0.0), 1)
    return found, slope


def _with_ties(scores: Floats, bucket: Ints) -> tuple[Floats, Floats]:
    total, gradient = np.zeros(len(scores)), np.zeros_like(scores)
    for place in range(int(bucket.max(initial=0))):
        now, rest = bucket == place, bucket > place
        rows = np.flatnonzero(now.any(1) & rest.any(1))
        one = now[rows].sum(1) == 1
        several = np.array_split(rows[~one], -(-int((~one).sum()) // _AT_ONCE) or 1)
        for part, stage in ((rows[one], _single), *((each, _several) for each in several)):
            if len(part):
                found, slope = stage(scores[part], now[part], rest[part])
                total[part] += found
                gradient[part] += slope
    return total, gradient


def _ahead(scores: Floats, rest: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """log(w_i / w_R) of every item, (N, L), and the share of each item of R in w_R, (N, L)."""
    inside = np.where(rest, scores, -np.inf)
    top = inside.max(1, keepdims=True)
    rates = np.exp(inside - top)
    sums = rates.sum(1, keepdims=True)
    return np.clip(scores - top - np.log(sums), -_FAR, _FAR), rates / sums


def _single(scores: Floats, now: NDArray[np.bool_], rest: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    ahead, share = _ahead(scores, rest)
    mine = ahead[now]  # (N,) one a row
    slope = 1.0 / (1.0 + np.exp(mine))
    return -np.log1p(np.exp(-mine)), np.where(now, slope[:, None], 0.0) - share * slope[:, None]


def _several(scores: Floats, now: NDArray[np.bool_], rest: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    ahead, share = _ahead(scores, rest)
    ratio = np.where(now, np.exp(ahead), 1.0)
    power = ratio[..., None] * _LOG_U  # (N, L, K) log of u^r
    inside = np.where(now[..., None], np.log(-np.expm1(power)), 0.0).sum(1) + _LOG_W  # (N, K)
    top = inside.max(1, keepdims=True)
    weight = np.exp(inside - top)
    found = (top + np.log(weight.sum(1, keepdims=True)))[:, 0]
    weight /= weight.sum(1, keepdims=True)
    by_ratio = (weight[:, None] * (-_LOG_U * np.exp(power) / -np.expm1(power))).sum(-1)  # (N, L) d log P / d r
    slope = np.where(now, by_ratio * ratio, 0.0)
    return found, slope - share * slope.sum(1, keepdims=True)
