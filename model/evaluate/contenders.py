"""Contenders: what the harness fits and asks. Baselines as they are, ours as several ways of predicting by one fit.

    served    the whole ladder: base models stacked and calibrated; with visible votes, conditioned on them
    network   the query network alone, from the same fit

Shape legend: B units, A annotators, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from model.data.votes import Votes
from model.errors import ModelError
from model.evaluate.baselines import BASELINES, Baseline
from model.evaluate.baselines.base import Fitted, Fold

Floats = NDArray[np.float64]
OURS = ("served", "network")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a contender says about some units."""

    p: Mapping[str, Floats]  # model -> (B, A, C)
    consensus: Floats | None = None  # (B, C), where it has one of its own; it belongs to the first model


class Ready(Protocol):
    """A fitted contender."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """What is worth telling about the fit, JSON-able (weights of base models)."""
        ...

    def answer(self, units: Sequence[str], visible: Votes | None) -> Answers: ...


class Contender(Protocol):
    """One fit, one or several models."""

    @property
    def models(self) -> tuple[str, ...]: ...

    @property
    def uses_visible(self) -> bool: ...

    @property
    def needs_visible(self) -> bool:
        """Whether it has nothing of its own to say where no votes are shown."""
        ...

    def fit(self, fold: Fold) -> Ready: ...


@dataclass(frozen=True, kw_only=True)
class _ReadyBaseline:
    name: str
    fitted: Fitted
    notes: Mapping[str, Any] = field(default_factory=dict)

    def answer(self, units: Sequence[str], visible: Votes | None) -> Answers:
        return Answers(p={self.name: self.fitted.predict(units, visible=visible)})


@dataclass(frozen=True, kw_only=True)
class FromBaseline:
    """A baseline as a contender."""

    baseline: Baseline

    @property
    def models(self) -> tuple[str, ...]:
        return (self.baseline.name,)

    @property
    def uses_visible(self) -> bool:
        return self.baseline.uses_visible

    @property
    def needs_visible(self) -> bool:
        return self.baseline.uses_visible

    def fit(self, fold: Fold) -> Ready:
        return _ReadyBaseline(name=self.baseline.name, fitted=self.baseline.fit(fold))


def contenders(names: Sequence[str], ours: Contender) -> list[Contender]:
    """The contenders that these models need, each once, ours first. Raises ModelError for an unknown name."""
    unknown = [name for name in names if name not in BASELINES and name not in ours.models]
    if unknown:
        raise ModelError(f"there is no model {unknown[0]}; there are {', '.join([*ours.models, *BASELINES])}")
    chosen: list[Contender] = [ours] if set(names) & set(ours.models) else []
    return chosen + [FromBaseline(baseline=BASELINES[name]) for name in BASELINES if name in names]
