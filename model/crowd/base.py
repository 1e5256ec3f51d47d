"""The interface of every aggregator of nominal votes, and what it returns.

`fit` is a template: it settles the cases without votes or classes and the gold labels once, for all methods; each
method writes `_estimate` only.

Shape legend: U units, A annotators, C classes, N votes, I iterations.
Invariants of a result: rows of `posterior` sum to 1 (uniform or prior where a unit has no vote); `label` is -1 exactly
where the unit has neither vote nor gold (`unlabelled`) or the rule did not decide (`abstained`); `confusion` is indexed
[annotator, true class, given class] and its rows sum to 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix, Gold
from model.crowd.room import require_confusions
from model.crowd.sums import Floats, softmax_rows
from model.errors import ModelError

Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """What a method finds; `fit` turns it into an `Aggregate`."""

    posterior: Floats  # (U, C)
    label: Codes | None = None  # (U,) -1 where the rule abstains; None: the most probable class
    confusion: Floats | None = None  # (A, C, C) [annotator, true, given]
    counts: Floats | None = None  # (A, C, C) expected votes behind `confusion`, without the smoothing
    skill: Floats | None = None  # (A,) higher is better; the method's file says what it is
    difficulty: Floats | None = None  # (U,) higher is harder
    parameters: Mapping[str, Floats] = field(default_factory=dict)  # whatever else was fitted, by name
    objective: tuple[float, ...] = ()  # (I,) what the method maximises, after each iteration
    converged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """Labels with confidences, and what the method learned on the way. Index orders are those of `Estimate`."""

    method: str
    units: tuple[str, ...]
    annotators: tuple[str, ...]
    classes: tuple[str, ...]
    label: Codes  # (U,) class code, -1 where there is no label
    posterior: Floats  # (U, C)
    unlabelled: Flags  # (U,) neither vote nor gold
    abstained: Flags  # (U,) has votes, but the rule did not decide
    gold: Codes  # (U,) the gold labels that were given, -1 elsewhere
    confusion: Floats | None
    counts: Floats | None
    skill: Floats | None
    difficulty: Floats | None
    parameters: Mapping[str, Floats]
    objective: tuple[float, ...]
    converged: bool

    @property
    def iterations(self) -> int:
        return len(self.objective)

    @property
    def confidence(self) -> Floats:
        """(U,) probability of the label; NaN where there is none."""
        if not self.classes:
            return np.full(len(self.units), np.nan)
        picked = np.take_along_axis(self.posterior, np.maximum(self.label, 0)[:, None].astype(np.int64), axis=1)[:, 0]
        return np.where(self.label >= 0, picked, np.nan)

    def rows(self) -> Iterator[tuple[str, str | None, float]]:
        """(unit, class name or None, confidence) of every unit."""
        for unit, code, confidence in zip(self.units, self.label, self.confidence, strict=True):
            yield unit, (self.classes[code] if code >= 0 else None), float(confidence)


class Aggregator(ABC):
    """A method with its settings; subclasses are frozen dataclasses, stateless between fits."""

    name: ClassVar[str]
    needs_probabilities: ClassVar[bool] = False
    binary_only: ClassVar[bool] = False
    stochastic: ClassVar[bool] = False  # has a seed that matters
    needs_confusions: ClassVar[bool] = False  # cannot do without tables of annotators x classes x classes

    def fit(
        self, answers: AnswerMatrix, *, gold: Gold | None = None, probabilities: Floats | None = None
    ) -> Aggregate:
        """Aggregate the votes.

        `gold`: known labels, unit id -> class name. They always win on their own unit, and methods that estimate
        annotators learn from them. `probabilities` (U, C): a model's out-of-sample predictions, for methods that mix
        them in. Raises ModelError when the input does not suit the method.
        """
        n_units, _, n_classes = answers.shape
        if self.binary_only and n_classes > 2:
            raise ModelError(f"{self.name} is for two classes; this control has {n_classes}")
        if self.needs_probabilities and probabilities is None:
            raise ModelError(f"{self.name} needs the probabilities of a model")
        if probabilities is not None:
            probabilities = _checked(probabilities, (n_units, n_classes))
        if self.needs_confusions:
            require_confusions(self.name, len(answers.annotators), n_classes)
        codes = answers.gold_codes(gold)
        if len(answers) == 0 or n_classes == 0:
            estimate = Estimate(posterior=np.full((n_units, n_classes), 1.0 / max(n_classes, 1)))
        else:
            estimate = self._estimate(answers, codes, probabilities)
        return self._finish(answers, codes, estimate)

    @abstractmethod
    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        """At least one vote and one class are there; `gold` (U,) holds class codes, -1 where unknown."""

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        """Log-likelihood of each vote under each class, (N, C), and the log prior, (U, C) or (C,).

        Only for methods whose posterior is softmax(prior + sum of the unit's votes). Raises ModelError otherwise.
        """
        raise ModelError(f"{self.name} does not give each vote's evidence")

    def _finish(self, answers: AnswerMatrix, gold: Codes, estimate: Estimate) -> Aggregate:
        posterior = np.asarray(estimate.posterior, dtype=np.float64)
        known = gold >= 0
        has_vote = answers.voted
        if estimate.label is not None:
            label = estimate.label.astype(np.int32, copy=True)
        elif answers.classes:
            label = posterior.argmax(axis=1).astype(np.int32)
        else:
            label = np.full(len(answers.units), -1, dtype=np.int32)
        label[~has_vote] = -1
        if known.any():
            label[known] = gold[known]
            posterior[known] = 0.0
            posterior[known, gold[known]] = 1.0
        return Aggregate(
            method=self.name, units=answers.units, annotators=answers.annotators, classes=answers.classes, label=label,
            posterior=posterior, unlabelled=~has_vote & ~known, abstained=has_vote & ~known & (label < 0), gold=gold,
            confusion=estimate.confusion, counts=estimate.counts, skill=estimate.skill, difficulty=estimate.difficulty,
            parameters=estimate.parameters, objective=estimate.objective, converged=estimate.converged,
        )


class Trace:
    """The objective of an iterative method and when to stop: it rose by less than `tol` per vote.

    Below 100,000 votes, where an iteration costs next to nothing, a tenth of that is asked for.
    """

    def __init__(self, n_votes: int, *, max_iter: int, tol: float) -> None:
        self._max_iter, self._tol = max_iter, tol
        self._scale = max(n_votes, 1) * (1.0 if n_votes >= 100_000 else 0.1)
        self.values: list[float] = []
        self.converged = False

    def stop(self, objective: float) -> bool:
        """Note the objective of the latest parameters; True when done."""
        self.values.append(objective)
        if len(self.values) > 1 and self.values[-1] - self.values[-2] <= self._tol * self._scale:
            self.converged = self._tol > 0
        return self.converged or len(self.values) >= self._max_iter


def clamp_gold(scores: Floats, gold: Codes) -> None:
    """Make log scores (U, C) certain where gold is known, in place."""
    known = np.flatnonzero(gold >= 0)
    if len(known):
        kept = scores[known, gold[known]]
        scores[known] = -np.inf
        scores[known, gold[known]] = kept


def posterior_from(scores: Floats, gold: Codes) -> Floats:
    """Clamp gold and turn log scores (U, C) into probabilities in place; returns the log of each row's sum, (U,)."""
    clamp_gold(scores, gold)
    return softmax_rows(scores)


def _checked(probabilities: Floats, shape: tuple[int, int]) -> Floats:
    table = np.asarray(probabilities, dtype=np.float64)
    if table.shape != shape:
        raise ModelError(f"probabilities have shape {table.shape}, the votes need {shape}")
    if not np.isfinite(table).all() or (table < 0).any() or (table.size and np.abs(table.sum(axis=1) - 1).max() > 1e-3):
        raise ModelError("rows of probabilities must be finite, not negative, and sum to one")
    return table
