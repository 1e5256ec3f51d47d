"""Pooled content plus annotator bias: a regularised logistic model of what a unit shows and how its text is written.

    score[b, a, c] = f[b] . W[c] + bias[c] + own[a, c] + g[b] . V[a, c]

f are standardised features, the mean token and the surface of the text (`model.encoders.surface`); g are the plain
ones among the latter. W is everybody's, own and V are each annotator's. W and own have Gaussian priors. V has a prior
that is strict with many small weights and mild with a large one (Student's t, over the classes of one feature):

    alpha sum over a, k of log(1 + tau |V[a, k]|^2 / (2 alpha)),     precision tau near 0

so that somebody for whom a question mark settles the label is learned from a few dozen votes, and nobody else pays for
it. Fitted by L-BFGS on the weighted log-likelihood; single choice by softmax, several choices by one Bernoulli a class.

Invariants: units without text, projects without any and checkpoints from before surface was read have no V; features
that do not vary say nothing.

Shape legend: U units, D dim of a token, S of the surface, F = D + S features, K plain ones, A annotators, C classes,
N votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from model.base_models.base import (
    Arrays,
    BaseModel,
    Batch,
    Fitted,
    Flags,
    Floats,
    Sample,
    Stored,
    Tuned,
    preferably_scored,
    rows_for,
    rows_of,
)
from model.data.dataset import Targets, Tokens
from model.data.scores import loss_and_slope
from model.encoders.surface import PLAIN, WIDTH, surface

PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)  # precisions of the prior on W to pick from
_BIAS_PRECISION = 1.0
_OWN_PRECISION, _OWN_TAIL = 200.0, 2.0  # tau and alpha
# What features of the surface count beside those of tokens: a precision of W that is 1 / share^2 times as high.
_PLAIN_SHARE, _HASHED_SHARE = 0.5, 0.25
_RARE = 0.15  # a surface feature varies at least as much, so that one that is seen twice does not shout


def mean_tokens(tokens: Sequence[Tokens], dim: int) -> NDArray[np.float32]:
    """The mean token of each unit, (U, D)."""
    return np.array([array.mean(0, dtype=np.float32) for array in tokens], dtype=np.float32).reshape(-1, dim)


def with_surface(means: NDArray[np.float32], texts: Sequence[str] | None) -> NDArray[np.float32]:
    """Features (U, F) of mean tokens (U, D) and the texts that units show; (U, D) where nothing is known of these."""
    return means if texts is None else np.concatenate([means, surface(texts)], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPooled(Fitted):
    """The model of one control."""

    centre: Floats  # (F,)
    scale: Floats  # (F,)
    weight: Floats  # (F, C)
    bias: Floats  # (A + 1, C), the last row for an unknown annotator
    penalty: float = 0.0  # that it was fitted with; 0 in a checkpoint from before it was kept
    own: Floats | None = None  # (A + 1, K, C), V with zeros in the last row; None: no surface is read

    @property
    def whole(self) -> bool:
        return self.penalty > 0.0

    def scores(self, batch: Batch) -> Floats:
        assert batch.features is not None, "nothing is known of what the units show"
        return rows_of(self.of_units(batch.features), batch.source)

    def votes(self, sample: Sample) -> Floats:
        return self.of_votes(sample.content, sample.targets)

    def arrays(self) -> Arrays:
        own = {} if self.own is None else {"pooled.own": self.own}
        return own | {
            "pooled.centre": self.centre, "pooled.scale": self.scale, "pooled.weight": self.weight,
            "pooled.bias": self.bias,
        }

    def numbers(self) -> dict[str, Any]:
        return {"penalty": self.penalty}

    def widened(self, people: int) -> FittedPooled:
        return replace(
            self, bias=rows_for(self.bias, people), own=None if self.own is None else rows_for(self.own, people)
        )

    def of_units(self, features: NDArray[np.floating]) -> Floats:
        """Scores (B, A + 1, C), of features (B, F) or of mean tokens (B, D) where nothing is known of the texts."""
        f = self.standardised(features)
        found: Floats = (f @ self.weight)[:, None] + self.bias
        return found if self.own is None else found + np.asarray(np.tensordot(plain_of(f), self.own, ([1], [1])))

    def of_votes(self, features: NDArray[np.floating], targets: Targets) -> Floats:
        """Scores (N, C) of single votes, of features (U, F) that `targets.unit` points into."""
        used, row = np.unique(targets.unit, return_inverse=True)
        f = self.standardised(features[used])
        found: Floats = (f @ self.weight)[row] + self.bias[targets.annotator]
        if self.own is None:
            return found
        rules = np.asarray(_layout(plain_of(f)[row], targets.annotator, len(self.own)) @ _flat(self.own), np.float64)
        return found + rules

    def content(self, features: NDArray[np.floating]) -> Floats:
        """The part that all annotators share, (B, C)."""
        return np.asarray(self.standardised(features) @ self.weight)

    def standardised(self, features: NDArray[np.floating]) -> Floats:
        known = features.shape[1]  # the rest, where it was not told, is as on average
        f = (features - self.centre[:known]) * self.scale[:known]
        return f if known == len(self.centre) else np.pad(f, ((0, 0), (0, len(self.centre) - known)))


@dataclass(frozen=True, kw_only=True)
class Pooled(BaseModel):
    """The base model."""

    penalty: float = 100.0  # precision of W; `tuned` finds that of `PENALTIES` with the least out-of-sample loss

    name: ClassVar[str] = "pooled"
    title: ClassVar[str] = "Content, and how lenient each annotator is"
    weight: ClassVar[float] = 0.3
    weight_observed: ClassVar[float] = 0.06
    reads_content: ClassVar[bool] = True
    reads_votes: ClassVar[bool] = False

    def fit(self, sample: Sample, start: Fitted | None = None) -> FittedPooled:
        begin = start if isinstance(start, FittedPooled) else None
        return fit_pooled(sample.content, sample.targets, sample.people, self.penalty, begin, surface=sample.surface)

    def tuned(self, sample: Sample, views: Sequence[Flags | None], earlier: Fitted | None) -> Tuned:
        """The penalty with the least out-of-sample loss, or that of an earlier fit, and the fits of all folds."""
        known = earlier if isinstance(earlier, FittedPooled) else None
        best: tuple[float, Pooled, dict[int, FittedPooled]] | None = None
        starts: dict[int, FittedPooled | None] = dict.fromkeys(sample.folds, known)
        for penalty in PENALTIES[::-1] if known is None else (known.penalty,):
            model = Pooled(penalty=penalty)
            fitted = {fold: model.fit(sample.without(fold), start) for fold, start in starts.items()}
            loss = sum(check_loss(each, sample.of(fold)) for fold, each in fitted.items())
            if best is None or loss < best[0]:
                best = (loss, model, fitted)
            starts = dict(fitted)  # from strong to weak, each starts where the one before ended
        assert best is not None
        return Tuned(model=best[1], without=best[2], start=known)

    def from_arrays(self, stored: Stored) -> FittedPooled:
        part = stored.arrays
        return FittedPooled(
            centre=part["pooled.centre"], scale=part["pooled.scale"], weight=part["pooled.weight"],
            bias=part["pooled.bias"], own=part.get("pooled.own"), penalty=float(stored.numbers.get("penalty", 0.0)),
        )


def check_loss(fitted: FittedPooled, sample: Sample) -> float:
    """Nats that a fit pays for votes that it has not seen."""
    targets = sample.targets
    weight = preferably_scored(targets, np.zeros(len(targets), np.int64))
    return float(loss_and_slope(targets.space, fitted.votes(sample), targets.y)[0] @ weight)


def plain_of(f: Floats) -> Floats:
    """The plain features (B, K) on their own scale among standardised ones (B, F)."""
    start = f.shape[1] - WIDTH
    return np.asarray(f[:, start : start + PLAIN] / _PLAIN_SHARE)


def _flat(own: Floats) -> Floats:
    return own.reshape(-1, own.shape[-1])


def _layout(plain: Floats, annotator: NDArray[np.int64], people: int) -> csr_array:
    """(N, people * K): each vote's plain features (N, K) in the columns of who gave it, none where that is nobody."""
    votes, width = plain.shape
    known = annotator < people
    columns = np.minimum(annotator, people - 1)[:, None] * width + np.arange(width)
    data = np.where(known[:, None], plain, 0.0)
    return csr_array((data.ravel(), columns.ravel(), np.arange(votes + 1) * width), shape=(votes, people * width))


def _generic_too(own: Floats) -> Floats:
    """Own parts (A, ...) with a row for votes that nobody's part explains, (A + 1, ...)."""
    return np.concatenate([own, np.zeros((1, *own.shape[1:]))])


def _scales(f: Floats, tokens: int) -> tuple[Floats, Floats]:
    """Centre and scale (F,) of features (U, F), the first `tokens` of which are of the mean token."""
    centre, spread = (f.mean(0), f.std(0)) if len(f) else (np.zeros(f.shape[1]), np.zeros(f.shape[1]))
    varies = spread > 1e-4  # a constant feature says nothing
    least = np.full(f.shape[1], 1e-4)
    least[tokens:] = np.maximum(_RARE * np.abs(f[:, tokens:]).max(0, initial=0.0), 1e-4)
    scale = np.where(varies, 1.0 / np.maximum(spread, least), 0.0)
    scale[tokens : tokens + PLAIN] *= _PLAIN_SHARE
    scale[tokens + PLAIN :] *= _HASHED_SHARE
    return centre, scale


def fit_pooled(
    features: NDArray[np.floating], targets: Targets, annotators: int, penalty: float,
    start: FittedPooled | None = None, *, surface: bool = False,
) -> FittedPooled:
    """Fit on features (U, F) of all units that `targets.unit` points into; `start` only makes it faster.

    `surface`: the last of them are of the text.
    """
    used, row = np.unique(targets.unit, return_inverse=True)
    f = features[used].astype(np.float64)
    centre, scale = _scales(f, f.shape[1] - WIDTH if surface else f.shape[1])
    f = (f - centre) * scale
    d, c, k = f.shape[1], targets.y.shape[1], PLAIN if surface else 0
    ends = np.cumsum([d * c, c, annotators * c, annotators * k * c])
    layout = _layout(plain_of(f)[row], targets.annotator, annotators) if k and annotators else None
    back = None if layout is None else layout.T.tocsr()

    def parts(flat: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        weight, bias, own, rules = np.split(flat, ends[:-1])
        return weight.reshape(d, c), bias, own.reshape(annotators, c), rules.reshape(annotators * k, c)

    def objective(flat: Floats) -> tuple[float, Floats]:
        weight, bias, own, rules = parts(flat)
        scores = (f @ weight)[row] + bias + _generic_too(own)[targets.annotator]
        if layout is not None:
            scores += layout @ rules
        loss, slope = loss_and_slope(targets.space, scores, targets.y)
        slope = slope * targets.weight[:, None]  # (N, C)
        by_unit = np.stack([np.bincount(row, weights=slope[:, j], minlength=len(used)) for j in range(c)], 1)
        by_annotator = np.stack(
            [np.bincount(targets.annotator, weights=slope[:, j], minlength=annotators) for j in range(c)], 1
        )[:annotators]
        value = float(loss @ targets.weight) + 0.5 * penalty * np.square(weight).sum()
        value += 0.5 * _BIAS_PRECISION * np.square(own).sum()
        by_rule = rules
        if back is not None:
            size = 1.0 + _OWN_PRECISION / (2.0 * _OWN_TAIL) * np.square(rules).sum(1, keepdims=True)
            value += _OWN_TAIL * np.log(size).sum()
            by_rule = back @ slope + _OWN_PRECISION * rules / size
        gradient = (f.T @ by_unit + penalty * weight, slope.sum(0), by_annotator + _BIAS_PRECISION * own, by_rule)
        return value, np.concatenate([part.ravel() for part in gradient])

    begin = _begin(start, (d, c, annotators, k), ends[-1])
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-7})
    weight, bias, own, rules = parts(found.x)
    return FittedPooled(
        centre=centre, scale=scale, weight=weight, bias=np.vstack([bias + own, bias]), penalty=penalty,
        own=_generic_too(rules.reshape(annotators, k, c)) if surface else None,
    )


def _begin(start: FittedPooled | None, shape: tuple[int, int, int, int], size: int) -> Floats:
    """Where the search begins: at zero, or at an earlier fit as far as it is of the same shape."""
    d, c, annotators, k = shape
    begin = np.zeros(size)
    if start is None or start.weight.shape != (d, c) or len(start.bias) != annotators + 1:
        return begin
    own = start.bias[:-1] - start.bias[-1]
    rules = np.zeros((annotators, k, c)) if start.own is None else start.own[:-1]
    return np.concatenate([start.weight.ravel(), start.bias[-1], own.ravel(), rules.ravel()])
