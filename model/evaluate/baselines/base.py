"""What a baseline gets and what it owes: the same votes, features, units and annotators as ours, for one fold.

A baseline is fitted on the training votes of one control and predicts any unit for all annotators. Those that use the
votes which a unit already has (gap baselines) get them as `visible`; for annotator a, a's own visible votes on the unit
must be ignored, since they are what is asked for.

Shape legend: A annotators, U training units, B units asked for, C classes of the space, T tokens, D dim.
Invariants: the annotator axis has the order of `Fold.annotators`, the class axis that of `space.classes`; a single
choice gives distributions, several choices one Bernoulli a class; nothing depends on the order of rows of the votes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Space
from model.data.votes import Votes

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Fold:
    """Everything that a baseline may look at when it is fitted."""

    votes: Votes  # training votes of one control, one for each (unit, annotator)
    space: Space
    annotators: tuple[str, ...]  # A; some may have no training vote
    units: tuple[str, ...]  # U training units
    tokens: Callable[[Sequence[str]], list[NDArray[Any]]]  # units, of training or not -> (T_i, D) each
    features: Callable[[Sequence[str]], NDArray[np.float32]]  # the same -> mean tokens (B, D)
    seed: int
    device: str  # of torch: "cpu", "cuda"
    texts: Callable[[Sequence[str]], Sequence[str]] | None = None  # units -> the text that each shows


class Fitted(Protocol):
    """A fitted baseline."""

    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        """Probabilities (B, A, C); `visible` are votes that the units already have, None where nothing is to be seen.

        For annotator a, the visible votes by a on that unit must be ignored.
        """
        ...


class Baseline(Protocol):
    """A way of predicting, with its settings; stateless between fits."""

    @property
    def name(self) -> str:
        """In kebab case, unique among the baselines."""
        ...

    @property
    def source(self) -> str:
        """The paper that describes it, or "naive"."""
        ...

    @property
    def uses_visible(self) -> bool:
        """Whether the votes that a unit already has change what is predicted for it."""
        ...

    def fit(self, fold: Fold) -> Fitted:
        """Fit on the training votes of a fold. Raises ModelError where it cannot be fitted on them."""
        ...
