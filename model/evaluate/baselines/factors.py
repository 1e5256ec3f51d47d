"""Matrix factorisation with side information: what content and leniency leave over, as factors of units and annotators.

    score[u, a, c] = pooled[u, a, c] + (G f[u] + e[u]) . (Q[c] + R[a, c]),     f = leading components of the mean token

`pooled` is the fitted pooled-bias model, kept as it is. G, e, Q, R are the mode under Gaussian priors, by L-BFGS
(after Salakhutdinov and Mnih 2007, with the side information of Agarwal and Chen 2009). For a new unit e is the mode
given its visible votes (Newton steps; the problem is convex), for each annotator without their own vote. The precision
of the priors on Q and R is picked on an inner fold of the training units, by the loss of its votes given all the others
on their unit; it matters, since with a weak prior the factors are far too sure.

Shape legend: N votes, U units, B units asked for, A annotators, C classes, K factors, F components, P small problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from model.base_models.pooled import FittedPooled
from model.data.dataset import Targets
from model.data.scores import loss_and_slope, losses, to_probabilities
from model.data.spaces import Space, ValueKind
from model.data.splits import fold_of
from model.data.votes import Votes
from model.evaluate.baselines.base import Fitted, Floats, Fold
from model.evaluate.baselines.naive import training_targets, tuned_pooled
from model.evaluate.baselines.visible import Visible, visible_votes

_STEPS, _LONGEST = 10, 3.0  # Newton steps, and how far one may go
_INNER_FOLDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Fitted factors."""

    axes: Floats  # (D, F) standardised mean token -> components of unit variance
    side: Floats  # (F, K) G
    common: Floats  # (K, C) Q
    own: Floats  # (A + 1, K, C) R; the last row, zeros, is for somebody unknown


@dataclass(frozen=True, kw_only=True)
class FactorModel:
    """The baseline with its settings."""

    factors: int = 4
    components: int = 24
    side_precision: float = 30.0
    precisions: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0)

    name: ClassVar[str] = "matrix-factorisation"
    source: ClassVar[str] = "Salakhutdinov and Mnih 2007; Agarwal and Chen 2009"
    uses_visible: ClassVar[bool] = True

    def fit(self, fold: Fold) -> Fitted:
        targets, people = training_targets(fold), len(fold.annotators)
        features = fold.features(fold.units)
        pooled = tuned_pooled(features, targets, fold.units, people)
        axes = _axes((features - pooled.centre) * pooled.scale, self.components)
        side = (features - pooled.centre) * pooled.scale @ axes
        base = pooled.of_votes(features, targets)
        precision = self._precision(fold, targets, base, axes, side)
        return _Filled(
            fold=fold, pooled=pooled, factors=self._climb(targets, base, axes, side, people, fold.seed, precision))

    def _precision(self, fold: Fold, targets: Targets, base: Floats, axes: Floats, side: Floats) -> float:
        """The precision with the least loss on an inner fold; the base, which is the same for all, has seen it."""
        check = np.array([fold_of(unit, _INNER_FOLDS) == 0 for unit in fold.units])[targets.unit]
        if check.all() or not check.any():
            return self.precisions[-1]
        learn, rest = targets.select(~check), targets.select(check)
        seen = Visible(unit=rest.unit, annotator=rest.annotator, y=rest.y)
        losses_of = {}
        for precision in self.precisions:
            factors = self._climb(learn, base[~check], axes, side, len(fold.annotators), fold.seed, precision)
            about = side @ factors.side
            scores = base[check]
            _, without = _shifts(fold.space, seen, about, scores, factors)
            weights = (factors.common + factors.own)[rest.annotator]
            scores = scores + np.einsum("nk,nkc->nc", about[rest.unit] + without, weights)
            losses_of[precision] = float(losses(fold.space, scores, rest.y).sum())
        return min(losses_of, key=lambda precision: losses_of[precision])

    def _climb(
        self, targets: Targets, base: Floats, axes: Floats, f: Floats, people: int, seed: int, precision: float
    ) -> Factors:
        """The mode, by L-BFGS; `base` (N, C) are scores of the votes, `f` (U, F) components."""
        (units, components), k, c, n = f.shape, self.factors, targets.y.shape[1], len(targets)
        sizes = np.cumsum([components * k, units * k, k * c])
        by_unit = sparse.csr_array((np.ones(n), (targets.unit, np.arange(n))), shape=(units, n))
        by_annotator = sparse.csr_array((np.ones(n), (targets.annotator, np.arange(n))), shape=(people, n))
        precisions = (self.side_precision, 1.0, precision, precision)

        def parts(flat: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            g, e, q, r = np.split(flat, sizes)
            return g.reshape(components, k), e.reshape(units, k), q.reshape(k, c), r.reshape(people, k, c)

        def objective(flat: Floats) -> tuple[float, Floats]:
            g, e, q, r = parts(flat)
            p, weights = (f @ g + e)[targets.unit], (q + r)[targets.annotator]  # (N, K), (N, K, C)
            loss, slope = loss_and_slope(targets.space, base + np.einsum("nk,nkc->nc", p, weights), targets.y)
            by_p = by_unit @ np.einsum("nc,nkc->nk", slope, weights)  # (U, K)
            by_r = by_annotator @ (p[:, :, None] * slope[:, None]).reshape(n, k * c)  # (A, K C)
            data = (f.T @ by_p, by_p, by_r.sum(0), by_r)
            gradient = [s * x.ravel() + d.ravel() for s, x, d in zip(precisions, (g, e, q, r), data, strict=True)]
            prior = sum(0.5 * s * float(np.square(x).sum()) for s, x in zip(precisions, (g, e, q, r), strict=True))
            return float(loss.sum()) + prior, np.concatenate(gradient)

        start = 0.3 * np.random.default_rng(seed).standard_normal(sizes[-1] + people * k * c)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 120, "ftol": 1e-6})
        g, _, q, r = parts(found.x)
        return Factors(axes=axes, side=g, common=q, own=np.concatenate([r, np.zeros((1, k, c))]))


def _axes(f: Floats, components: int) -> Floats:
    """The leading directions of features (U, D), scaled so that the components have unit variance; (D, F)."""
    values, vectors = np.linalg.eigh(f.T @ f / max(1, len(f)))
    top = np.argsort(values)[::-1][: min(components, int((values > 1e-6).sum()))]
    return np.asarray(vectors[:, top] / np.sqrt(values[top]))


@dataclass(frozen=True, kw_only=True)
class _Filled:
    fold: Fold
    pooled: FittedPooled
    factors: Factors

    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        space, people = self.fold.space, len(self.fold.annotators)
        features = self.fold.features(units)
        side = (features - self.pooled.centre) * self.pooled.scale @ self.factors.axes @ self.factors.side  # (B, K)
        base = self.pooled.of_units(features)  # (B, A + 1, C)
        seen = visible_votes(visible, space, units, self.fold.annotators)
        whole, without = _shifts(space, seen, side, base[seen.unit, seen.annotator], self.factors)
        weights = self.factors.common + self.factors.own  # (A + 1, K, C)
        p = np.repeat((side + whole)[:, None], people, 1)  # (B, A, K)
        own = seen.annotator >= 0
        p[seen.unit[own], seen.annotator[own]] = side[seen.unit[own]] + without
        return to_probabilities(space, base[:, :-1] + np.einsum("bak,akc->bac", p, weights[:-1]))


def _shifts(space: Space, seen: Visible, side: Floats, base: Floats, factors: Factors) -> tuple[Floats, Floats]:
    """e of each unit by all its visible votes, (B, K), and by all but each vote of a known annotator, (m, K).

    `side` (B, K) is what content says of the units, `base` (n, C) the scores of the visible votes without factors.
    """
    own, units = np.flatnonzero(seen.annotator >= 0), len(side)
    order = np.argsort(seen.unit, kind="stable")
    start = np.searchsorted(seen.unit[order], seen.unit[own], "left")
    count = np.searchsorted(seen.unit[order], seen.unit[own], "right") - start
    problem = np.repeat(np.arange(len(own)), count)  # every vote beside each vote of somebody
    vote = order[np.repeat(start, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)]
    others = own[problem] != vote
    vote = np.concatenate([np.arange(len(seen.unit)), vote[others]])
    problem = np.concatenate([seen.unit, units + problem[others]])
    weights = (factors.common + factors.own)[seen.annotator[vote]]  # (n, K, C)
    scores = base[vote] + np.einsum("nk,nkc->nc", side[seen.unit[vote]], weights)
    e = _modes(space, scores, weights, seen.y[vote], problem, units + len(own))
    return e[:units], e[units:]


def _modes(
    space: Space, scores: Floats, weights: Floats, y: NDArray[np.float32], problem: NDArray[np.int64], problems: int
) -> Floats:
    """The mode of e under a standard normal prior in each of P problems, given their votes (n,); (P, K)."""
    k = weights.shape[1]
    e = np.zeros((problems, k))
    gather = sparse.csr_array((np.ones(len(problem)), (problem, np.arange(len(problem)))), shape=(problems, len(y)))
    for _ in range(_STEPS if len(problem) else 0):
        now = scores + np.einsum("nk,nkc->nc", e[problem], weights)
        slope = loss_and_slope(space, now, y)[1]
        p = to_probabilities(space, now)
        spread = weights * (p if space.kind is ValueKind.CLASS else p * (1.0 - p))[:, None]  # (n, K, C)
        curve = np.einsum("nkc,nlc->nkl", spread, weights)
        if space.kind is ValueKind.CLASS:
            centre = spread.sum(2)
            curve -= centre[:, :, None] * centre[:, None]
        gradient = gather @ np.einsum("nc,nkc->nk", slope, weights) + e
        hessian = (gather @ curve.reshape(len(curve), k * k)).reshape(problems, k, k) + np.eye(k)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        e -= step * np.minimum(1.0, _LONGEST / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-12))
    return e
