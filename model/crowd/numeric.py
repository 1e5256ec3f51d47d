"""Numeric votes: a robust mean with annotator bias and spread.

    x = mu_u + bias_a + spread_a * t,  t ~ Student(nu);  normal priors on mu and bias, inverse gamma on spread^2

Multicycle ECM: the Student weights are renewed before each of the three closed updates, so the penalised likelihood
never falls. Prior scales come from the data's medians, so units of measurement do not matter.

Shape legend: U units, A annotators, N votes, V distinct numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from model.crowd.answers import AnswerMatrix, is_missing
from model.crowd.base import Trace
from model.crowd.sums import Floats, annotator_totals, unit_totals
from model.data.spaces import ValueKind
from model.data.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberAnswers:
    """Votes whose label points to one of V distinct numbers."""

    answers: AnswerMatrix
    number: Floats  # (V,)

    @property
    def value(self) -> Floats:
        """(N,) the number of each vote."""
        return self.number[self.answers.label]

    @classmethod
    def from_votes(cls, votes: Votes, control: str | None = None) -> NumberAnswers:
        """The finite numbers among the votes of one control."""
        chosen = votes if control is None else votes.of_control(control)
        numeric = [v.data if v.kind is ValueKind.NUMBER and isinstance(v.data, float) else np.nan for v in votes.values]
        numbers = np.array(numeric, dtype=np.float64)
        return cls._build(
            votes.units, votes.annotators, chosen.unit, chosen.annotator,
            numbers[chosen.value], weight=chosen.weight, time=chosen.time,
        )

    @classmethod
    def from_columns(
        cls, units: Sequence[Hashable], annotators: Sequence[Hashable], values: Sequence[float | None], *,
        weights: ArrayLike | None = None, all_units: Sequence[Hashable] = (),
    ) -> NumberAnswers:
        """From three columns of any ids and numbers; None, NaN and infinities are missing."""
        empty = AnswerMatrix.from_columns(
            units, annotators, ["x"] * len(units), all_units=all_units, all_annotators=annotators
        )
        unit_of = {name: i for i, name in enumerate(empty.units)}
        annotator_of = {name: i for i, name in enumerate(empty.annotators)}
        return cls._build(
            empty.units, empty.annotators, np.array([unit_of[str(u)] for u in units], np.int32),
            np.array([annotator_of[str(a)] for a in annotators], np.int32),
            np.array([np.nan if is_missing(v) or v is None else float(v) for v in values]), weight=weights,
        )

    @classmethod
    def _build(
        cls, units: Sequence[str], annotators: Sequence[str], unit: NDArray[np.int32], annotator: NDArray[np.int32],
        value: Floats, *, weight: ArrayLike | None = None, time: ArrayLike | None = None,
    ) -> NumberAnswers:
        finite = np.isfinite(value)
        number, code = np.unique(value[finite], return_inverse=True)
        label = np.full(len(value), -1, dtype=np.int32)
        label[finite] = code
        answers = AnswerMatrix.from_codes(
            units=units, annotators=annotators, classes=[repr(float(x)) for x in number], unit=unit,
            annotator=annotator, label=label, weight=weight, time=time,
        )
        return cls(answers=answers, number=number)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberAggregate:
    """A number with a standard deviation for each unit, a bias and a spread for each annotator."""

    units: tuple[str, ...]
    annotators: tuple[str, ...]
    value: Floats  # (U,) NaN where nobody voted
    sd: Floats  # (U,) of the value, given the annotators
    bias: Floats  # (A,)
    spread: Floats  # (A,)
    objective: tuple[float, ...]
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustNumbers:
    """Student-t aggregation of numbers."""

    freedom: float = 4.0  # nu; large means not robust
    bias_sd: float = 0.5  # in typical residuals
    spread_votes: float = 2.0  # how many votes the typical spread is worth
    max_iter: int = 500
    tol: float = 1e-6

    def fit(self, numbers: NumberAnswers) -> NumberAggregate:
        """Aggregate; without any vote all values are NaN."""
        answers, x = numbers.answers, numbers.value
        n_units, n_annotators = len(answers.units), len(answers.annotators)
        if not len(answers):
            return NumberAggregate(
                units=answers.units, annotators=answers.annotators, value=np.full(n_units, np.nan),
                sd=np.full(n_units, np.nan), bias=np.zeros(n_annotators), spread=np.full(n_annotators, np.nan),
                objective=(), converged=True,
            )
        center, across, within = _scales(answers, x)
        x = x - center
        mu, bias, var = _unit_medians(answers, x), np.zeros(n_annotators), np.full(n_annotators, within**2)
        w, votes = answers.weights, annotator_totals(answers)
        nu, tau, a0 = self.freedom, self.bias_sd * within, self.spread_votes / 2.0
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        unit, annotator = answers.unit, answers.annotator

        def precision() -> Floats:
            residual = x - mu[unit] - bias[annotator]
            weight: Floats = w * (nu + 1.0) / (nu + residual**2 / var[annotator])
            return weight

        while True:
            p = precision() / var[annotator]
            known = unit_totals(answers, p) + across**-2.0
            mu = unit_totals(answers, p * (x - bias[annotator])) / known
            p = precision() / var[annotator]
            bias = annotator_totals(answers, p * (x - mu[unit])) / (annotator_totals(answers, p) + tau**-2.0)
            squares = annotator_totals(answers, precision() * (x - mu[unit] - bias[annotator]) ** 2)
            var = (squares + 2.0 * a0 * within**2) / (votes + 2.0 * a0 + 2.0)
            r2 = (x - mu[unit] - bias[annotator]) ** 2 / var[annotator]
            density = -0.5 * (nu + 1.0) * np.log1p(r2 / nu) - 0.5 * np.log(var[annotator])
            constant = gammaln((nu + 1.0) / 2.0) - gammaln(nu / 2.0) - 0.5 * np.log(np.pi * nu)
            penalty = -0.5 * ((mu / across) ** 2).sum() - 0.5 * ((bias / tau) ** 2).sum()
            penalty -= ((a0 + 1.0) * np.log(var) + a0 * within**2 / var).sum()
            if trace.stop(float(w @ (density + constant) + penalty)):
                break
        voted = answers.voted
        return NumberAggregate(
            units=answers.units, annotators=answers.annotators, value=np.where(voted, mu + center, np.nan),
            sd=np.where(voted, known**-0.5, np.nan), bias=bias, spread=np.sqrt(var),
            objective=tuple(trace.values), converged=trace.converged,
        )


def _unit_medians(answers: AnswerMatrix, x: Floats) -> Floats:
    """(U,) median of each unit's votes; 0 where there is none."""
    order = np.lexsort((x, answers.unit))
    first, n = answers.indptr[:-1].astype(np.int64), np.diff(answers.indptr)
    ordered = np.append(x[order], 0.0)
    low = np.minimum(first + np.maximum(n - 1, 0) // 2, len(x))
    high = np.minimum(first + n // 2, len(x))
    return np.where(n > 0, 0.5 * (ordered[low] + ordered[high]), 0.0)


def _scales(answers: AnswerMatrix, x: Floats) -> tuple[float, float, float]:
    """Overall median, scale of the units' medians around it, and typical size of a residual; both positive."""
    center = float(np.median(x))
    medians = _unit_medians(answers, x)
    across = 1.4826 * float(np.median(np.abs(medians[answers.voted] - center)))
    within = 1.4826 * float(np.median(np.abs(x - medians[answers.unit])))
    tiny = 1e-6 * max(float(np.abs(x - center).max()), 1e-6)
    total = max(float(np.std(x)), tiny)
    return center, max(2.0 * across, total), within if within > tiny else max(0.1 * total, tiny)
