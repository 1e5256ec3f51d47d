"""Naive baselines: how often an annotator gives each label, what content says to everybody, and both together.

    annotator-prior   shrunken label frequencies of each annotator; content is not read
    pooled            a logistic model on the mean token, the same answer for everybody
    pooled-bias       the same with a leniency of each annotator: the bar for a model of individual behaviour

The penalty on the content weights is picked by cross-validation within the training units.

Shape legend: U units, B units asked for, A annotators, C classes, D dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from model.base_models.pooled import PENALTIES, FittedPooled, fit_pooled
from model.base_models.prior import fit_prior
from model.data.dataset import Targets
from model.data.scores import losses, to_probabilities
from model.data.splits import fold_of
from model.data.votes import Votes
from model.errors import NotEnoughVotes
from model.evaluate.baselines.base import Fitted, Floats, Fold
from model.evaluate.problem import targets_of

_INNER_FOLDS = 4
_PRIOR_STRENGTH = 4.0


def training_targets(fold: Fold) -> Targets:
    """The training votes of a fold as arrays. Raises NotEnoughVotes without any."""
    if not len(fold.votes):
        raise NotEnoughVotes("there are no training votes in this fold")
    return targets_of(fold.votes, fold.space, fold.units, fold.annotators)


def tuned_pooled(
    features: NDArray[np.floating], targets: Targets, units: Sequence[str], annotators: int
) -> FittedPooled:
    """`fit_pooled` on mean tokens (U, D) with the penalty that loses least on inner folds of the units.

    Penalties are tried from strong to weak, each starting where the one before ended, until the loss has risen twice.
    """
    inner = np.array([fold_of(unit, _INNER_FOLDS) for unit in units])[targets.unit]
    starts: list[FittedPooled | None] = [None] * _INNER_FOLDS
    best: tuple[float, float] | None = None
    risen = 0
    for penalty in PENALTIES[::-1]:
        loss = 0.0
        for k in range(_INNER_FOLDS):
            model = fit_pooled(features, targets.select(inner != k), annotators, penalty, starts[k])
            check = targets.select(inner == k)
            loss += float(losses(targets.space, model.of_votes(features, check), check.y) @ check.weight)
            starts[k] = model
        risen = 0 if best is None or loss < best[0] else risen + 1
        if not risen:
            best = (loss, penalty)
        elif risen == 2:
            break
    assert best is not None
    return fit_pooled(features, targets, annotators, best[1])


@dataclass(frozen=True, kw_only=True)
class _Table:
    """The same answer for every unit."""

    p: Floats  # (A, C)

    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        return np.repeat(self.p[None], len(units), 0)


@dataclass(frozen=True, kw_only=True)
class _Content:
    """Answers of a pooled model for annotators by their row of biases."""

    fold: Fold
    model: FittedPooled
    rows: NDArray[np.int64]  # (A,)

    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        scores = self.model.content(self.fold.features(units))[:, None] + self.model.bias[self.rows]  # (B, A, C)
        return to_probabilities(self.fold.space, scores)


@dataclass(frozen=True, kw_only=True)
class AnnotatorPrior:
    """How often the annotator gives each label."""

    name: ClassVar[str] = "annotator-prior"
    source: ClassVar[str] = "naive"
    uses_visible: ClassVar[bool] = False

    def fit(self, fold: Fold) -> Fitted:
        return _Table(p=fit_prior(training_targets(fold), len(fold.annotators), _PRIOR_STRENGTH)[:-1])


@dataclass(frozen=True, kw_only=True)
class PooledContent:
    """What content says to everybody."""

    name: ClassVar[str] = "pooled"
    source: ClassVar[str] = "naive"
    uses_visible: ClassVar[bool] = False

    def fit(self, fold: Fold) -> Fitted:
        targets = training_targets(fold)
        anybody = replace(targets, annotator=np.zeros_like(targets.annotator))  # 0 annotators: row 0 is the common one
        model = tuned_pooled(fold.features(fold.units), anybody, fold.units, 0)
        return _Content(fold=fold, model=model, rows=np.zeros(len(fold.annotators), np.int64))


@dataclass(frozen=True, kw_only=True)
class PooledBias:
    """What content says to everybody, and how lenient the annotator is."""

    name: ClassVar[str] = "pooled-bias"
    source: ClassVar[str] = "naive"
    uses_visible: ClassVar[bool] = False

    def fit(self, fold: Fold) -> Fitted:
        people = len(fold.annotators)
        model = tuned_pooled(fold.features(fold.units), training_targets(fold), fold.units, people)
        return _Content(fold=fold, model=model, rows=np.arange(people))
