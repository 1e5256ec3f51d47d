"""Latent factors that annotators share, found in votes and read off the votes that a unit already has.

    s[b, a] = s0[b, a] + e[b, a] W[a],      W[a] = Q + R[a],      e ~ N(0, I),   Q, R ~ N(0, I / precision)

s0 are the stacked scores from content alone, so content is the side information and e is what content does not tell of
a unit: stranger, harder, more so for one camp than for the other. Matrix factorisation of votes (Salakhutdinov and
Mnih 2007) with side information (Agarwal and Chen 2009). Q and R are fitted as the mode, on out-of-sample s0; R is
pulled to 0, so annotators with few votes lean as everybody does, and Q stands for everybody unknown. e of a unit is the
mode under its prior given its votes, by Newton's method, so that few votes move it little.

An annotator's own vote on a unit never moves their own e there. The votes of a unit lie in up to `BLOCKS` blocks; for
each block a mode is found without its votes, and one more step from there takes all votes but the annotator's own. What
is taken out is taken out exactly (`others.exact`), and the cost grows with the votes, not with their square.

Shape legend: B units, R rows of answers, P known annotators (arrays have P + 1 rows, the last for anybody unknown),
n given votes, J modes of a unit (one a block, and one by all votes), K factors, C classes, N votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from model.base_models.base import (
    Arrays,
    BaseModel,
    Batch,
    Codes,
    Fitted,
    Flags,
    Floats,
    Sample,
    Stored,
    Tuned,
    rows_for,
)
from model.base_models.others import exact
from model.data.dataset import Targets
from model.data.scores import loss_and_slope, losses, to_probabilities, to_scores
from model.data.spaces import Space, ValueKind

FACTORS = 3
PRECISIONS = (300.0, 100.0, 30.0)  # to pick from
BLOCKS = 8
_STEPS, _LONGEST = 6, 3.0  # Newton steps, and how far one may go
_CELLS = 4_000_000  # numbers in one array of the inference, 32 MB; units are never split
_CLIMB = {"maxiter": 80, "ftol": 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFactors(Fitted):
    """The factors of one control."""

    space: Space
    weight: Floats  # (P + 1, K, C) W; the last row is Q

    def scores(self, batch: Batch) -> Floats:
        votes, base = batch.votes, batch.stacked
        assert base is not None, "factors start from what the stack says of content"
        unit, column = np.nonzero(votes.has)
        weight = self.weight[np.minimum(batch.source, len(self.weight) - 1)]  # (R, K, C)
        if not len(unit):
            return self._kept_off_certainty(base)
        whole, without = _modes(
            self.space, unit, weight[column], base[unit, column], votes.y[unit, column],
            votes.weight[unit, column].astype(np.float64), len(base),
        )
        e = np.repeat(whole[:, None], len(weight), 1)  # (B, R, K)
        e[unit, column] = without
        return self._kept_off_certainty(base + np.einsum("brk,rkc->brc", e, weight))

    def votes(self, sample: Sample) -> Floats:
        targets, base = sample.targets, _stacked(sample)
        visible = np.zeros(len(targets), np.bool_) if sample.visible is None else sample.visible
        used, place = np.unique(targets.unit, return_inverse=True)
        weight = self.weight[targets.annotator]  # (N, K, C)
        whole, without = _modes(
            self.space, place[visible], weight[visible], base[visible], targets.y[visible],
            targets.weight[visible].astype(np.float64), len(used),
        )
        e = whole[place]
        e[visible] = without
        return self._kept_off_certainty(base + np.einsum("nk,nkc->nc", e, weight))

    def arrays(self) -> Arrays:
        return {"gaps.factors": self.weight}

    def widened(self, people: int) -> FittedFactors:
        return replace(self, weight=rows_for(self.weight, people))

    def _kept_off_certainty(self, scores: Floats) -> Floats:
        return to_scores(self.space, to_probabilities(self.space, scores))


def _stacked(sample: Sample) -> Floats:
    assert sample.stacked is not None, "factors start from what the stack says of content"
    return sample.stacked


@dataclass(frozen=True, kw_only=True)
class Factors(BaseModel):
    """The base model."""

    precision: float = PRECISIONS[0]  # `tuned` finds that of `PRECISIONS` that serves the first fold best

    name: ClassVar[str] = "factors"
    title: ClassVar[str] = "Latent factors, from the others’ labels"
    weight: ClassVar[float] = 0.0
    weight_observed: ClassVar[float] = 0.3
    reads_content: ClassVar[bool] = True
    reads_votes: ClassVar[bool] = True
    on_stack: ClassVar[bool] = True

    def fit(self, sample: Sample, start: Fitted | None = None) -> FittedFactors:
        return fit_factors(
            sample.targets, _stacked(sample), sample.people, self.precision, sample.config.seed,
            start if isinstance(start, FittedFactors) else None,
        )

    def tuned(self, sample: Sample, views: Sequence[Flags | None], earlier: Fitted | None) -> Tuned:
        """The precision that foretells the votes of the first fold best under the last view, and the fits of all."""
        if not sample.folds or not views:
            return Tuned(model=self, without={})
        fold, tried = sample.folds[0], [Factors(precision=each) for each in PRECISIONS]
        first = [model.fit(sample.without(fold)) for model in tried]
        shown = sample.to_score().seeing(views[-1]).of(fold)
        lost = [float(losses(sample.targets.space, each.votes(shown), shown.targets.y) @ shown.targets.weight)
                for each in first]
        best = int(np.argmin(lost))
        model, start = tried[best], first[best]
        others = {each: model.fit(sample.without(each), start) for each in sample.folds[1:]}
        return Tuned(model=model, without={fold: start, **others}, start=start)

    def from_arrays(self, stored: Stored) -> FittedFactors | None:
        if "gaps.factors" not in stored.arrays:
            return None
        return FittedFactors(space=stored.space, weight=stored.arrays["gaps.factors"])


def fit_factors(
    targets: Targets, base: Floats, annotators: int, precision: float, seed: int, start: FittedFactors | None = None
) -> FittedFactors:
    """Fit on votes and their out-of-sample scores from content, (N, C); those of somebody anonymous are left out.

    `start`, of other votes or another precision, only makes it faster.
    """
    known = targets.annotator < annotators
    base, targets = base[known], targets.select(known)
    used, place = np.unique(targets.unit, return_inverse=True)
    n, k, c = len(targets), FACTORS, targets.y.shape[1]
    sizes = np.cumsum([len(used) * k, k * c])
    by_unit = _sums(place, len(used))
    by_annotator = _sums(targets.annotator, annotators)
    y, trust = targets.y.astype(np.float64), targets.weight.astype(np.float64)

    def parts(flat: Floats) -> tuple[Floats, Floats, Floats]:
        e, q, r = np.split(flat, sizes)
        return e.reshape(-1, k), q.reshape(k, c), r.reshape(annotators, k, c)

    def objective(flat: Floats) -> tuple[float, Floats]:
        e, q, r = parts(flat)
        weight, at = (q + r)[targets.annotator], e[place]  # (N, K, C), (N, K)
        loss, slope = loss_and_slope(targets.space, base + (at[:, None] @ weight)[:, 0], y)
        slope = slope * trust[:, None]
        by_e = by_unit @ (weight @ slope[:, :, None])[:, :, 0] + e
        by_r = (by_annotator @ (at[:, :, None] * slope[:, None]).reshape(n, k * c)).reshape(annotators, k, c)
        by_q = by_r.sum(0) + precision * q
        prior = np.square(e).sum() + precision * (np.square(q).sum() + np.square(r).sum())
        gradient = np.concatenate([by_e.ravel(), by_q.ravel(), (by_r + precision * r).ravel()])
        return float(loss @ trust + 0.5 * prior), gradient

    begin = 0.3 * np.random.default_rng([seed, 3]).standard_normal(sizes[-1] + annotators * k * c)
    if start is not None:
        begin[sizes[0] :] = np.concatenate([start.weight[-1].ravel(), (start.weight[:-1] - start.weight[-1]).ravel()])
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options=_CLIMB).x
    _, q, r = parts(found)
    return FittedFactors(space=targets.space, weight=np.concatenate([q + r, q[None]]))


def _sums(code: Codes, codes: int) -> sparse.csr_array:
    """(codes, n): sums values (n, ...) over equal codes."""
    return sparse.csr_array((np.ones(len(code)), (code, np.arange(len(code)))), shape=(codes, len(code)))


def _modes(
    space: Space, unit: Codes, weight: Floats, base: Floats, y: NDArray[np.floating], trust: Floats, units: int
) -> tuple[Floats, Floats]:
    """e of each unit by all its votes, (units, K), and by all but each vote, (n, K)."""
    whole, without = np.zeros((units, weight.shape[1])), np.zeros((len(unit), weight.shape[1]))
    order = np.argsort(unit, kind="stable")
    voted, start, count = np.unique(unit[order], return_index=True, return_counts=True)
    place = np.repeat(np.arange(len(voted)), count)
    block = (np.arange(len(order)) - np.repeat(start, count)) % BLOCKS
    at_once = max(1, _CELLS // ((BLOCKS + 1) * int(np.prod(weight.shape[1:]))))  # votes
    part = np.cumsum(count) // at_once  # of each voted unit
    for number in np.unique(part):
        here = part[place] == number
        rows, first = order[here], int(np.flatnonzero(part == number)[0])
        among = voted[part == number]
        problem = _Inference(
            space=space, weight=weight[rows], base=base[rows], y=y[rows].astype(np.float64), trust=trust[rows],
            unit=place[here] - first, block=block[here],
        )
        whole[among], without[rows] = problem.solve(len(among))
    return whole, without


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inference:
    """Votes (n, ...) on some units, with the block of each."""

    space: Space
    weight: Floats  # (n, K, C)
    base: Floats  # (n, C)
    y: Floats  # (n, C)
    trust: Floats  # (n,)
    unit: Codes  # (n,)
    block: Codes  # (n,)

    def solve(self, units: int) -> tuple[Floats, Floats]:
        modes = int(self.block.max()) + 2  # the last one by all votes
        n, k = self.weight.shape[:2]
        e, sums = np.zeros((units, modes, k)), _sums(self.unit, units)
        counts = (self.block[:, None] != np.arange(modes)).astype(np.float64)  # (n, J)
        for _ in range(_STEPS):
            slope, curve = self._terms(e)
            slope, curve = slope * counts[..., None], curve * counts[..., None, None]
            e = e + _step(
                (sums @ slope.reshape(n, -1)).reshape(units, modes, k),
                (sums @ curve.reshape(n, -1)).reshape(units, modes, k, k), e,
            )
        # From a mode that has not seen its block, one step with all votes but each one's own.
        slope, curve = (exact(term) for term in self._terms(e))
        own = np.arange(n), self.block
        total = (sums @ slope.reshape(n, -1)).reshape(units, modes, k)[self.unit, self.block] - slope[own]
        bend = (sums @ curve.reshape(n, -1)).reshape(units, modes, k, k)[self.unit, self.block] - curve[own]
        begin = e[self.unit, self.block]
        return e[:, -1], begin + _step(total, bend, begin)

    def _terms(self, e: Floats) -> tuple[Floats, Floats]:
        """What each vote adds to the slope (n, J, K) and to the curvature (n, J, K, K) of its unit's likelihood."""
        p = to_probabilities(self.space, self.base[:, None] + e[self.unit] @ self.weight)  # (n, J, C)
        turned = self.weight.transpose(0, 2, 1)  # (n, C, K)
        slope = (self.y[:, None] - p) * self.trust[:, None, None] @ turned
        single = self.space.kind is ValueKind.CLASS
        spread = self.weight[:, None] * (p if single else p * (1.0 - p))[:, :, None]  # (n, J, K, C)
        curve = spread @ turned[:, None]
        if single:
            centre = spread.sum(-1)
            curve -= centre[..., None] * centre[..., None, :]
        return slope, curve * self.trust[:, None, None, None]


def _step(slope: Floats, curve: Floats, e: Floats) -> Floats:
    """A Newton step under the standard normal prior, (..., K), of bounded length."""
    step = np.linalg.solve(curve + np.eye(e.shape[-1]), (slope - e)[..., None])[..., 0]
    length = np.maximum(np.linalg.norm(step, axis=-1, keepdims=True), 1e-12)
    return np.asarray(step * np.minimum(1.0, _LONGEST / length))
