"""The contract of every policy: what is known of one control goes in, which votes to ask for next comes out.

A `Situation` is one control of one project. `Policy.scores` values every gap in one vectorised pass; `Policy.choose`
spends a budget on the best of them. What a gain means is the policy's own (its file says so): gains of one policy can
be compared, gains of two cannot.

Shape legend: U units, A annotators, C classes, M committee members, D features.
Invariants: only gaps that may be asked have a score, everything else is -inf; nobody is asked for a vote that is there;
except for `random`, neither the order of units nor that of annotators matters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from model.acquisition.greedy import Limits, best_pairs, best_units
from model.errors import ModelError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_CELLS = 1 << 21  # numbers in the joints that are worked on at once, 16 MB


class AcquisitionError(ModelError):
    """A situation or a wish that no policy can work with; the sentence says what and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One vote to ask for: positions on the unit and the annotator axis, and what it is expected to bring."""

    unit: int
    annotator: int
    gain: float


class Situation:
    """What is known of one control, checked. Read-only.

    `probabilities` (U, A, C): what each annotator would say, calibrated; read at gaps only.
    `given` (U, A): class code of the vote that is there, -1 at a gap.
    `consensus` (U, C): probability of each class to be the consensus (of the whole panel, or the truth).
    `may_ask` (U, A): the gaps that may be asked; all of them by default.
    `reliability` (A,): probability that an annotator says the consensus; from `given` and `consensus` by default.
    `confusion` (A, C, C) [annotator, consensus, given]: more than `reliability`, where it is known.
    `ambiguity` (U,): share of the votes on a unit that its consensus does not explain, 0 to 1; 0 by default.
    `committee` (M, U, A, C): several models' `probabilities`, for `bald`. `features` (U, D): for `diverse-batch`.

    Raises AcquisitionError for wrong shapes, for NaN, and for probabilities that are none.
    """

    __slots__ = ("ambiguity", "committee", "confusion", "consensus", "features", "given", "open", "probabilities",
                 "reliability")

    def __init__(
        self, *, probabilities: NDArray[np.floating], given: NDArray[np.integer], consensus: NDArray[np.floating],
        may_ask: Flags | None = None, reliability: NDArray[np.floating] | None = None,
        confusion: NDArray[np.floating] | None = None, ambiguity: NDArray[np.floating] | None = None,
        committee: NDArray[np.floating] | None = None, features: NDArray[np.floating] | None = None,
    ) -> None:
        units, people, classes = _shape(probabilities, given)
        self.given = np.asarray(given)
        if self.given.size and (self.given.min() < -1 or self.given.max() >= classes):
            raise AcquisitionError(f"given votes must be class codes from 0 to {classes - 1}, or -1 at a gap")
        self.open: Flags = self.given < 0
        if may_ask is not None:
            self.open &= _shaped("may_ask", may_ask, (units, people)).astype(np.bool_)
        self.probabilities = np.asarray(probabilities)
        _distributions("probabilities", self.probabilities[self.open])
        self.consensus = _shaped("consensus", consensus, (units, classes)).astype(np.float64)
        _distributions("consensus", self.consensus)
        self.reliability = self._reliability() if reliability is None else _shares(
            "reliability", _shaped("reliability", reliability, (people,)))
        self.confusion = _shrunk(self.reliability, classes) if confusion is None else _shaped(
            "confusion", confusion, (people, classes, classes)).astype(np.float64)
        _distributions("confusion", self.confusion)
        self.ambiguity = np.zeros(units) if ambiguity is None else _shares(
            "ambiguity", _shaped("ambiguity", ambiguity, (units,)))
        self.committee = committee if committee is None else np.asarray(committee)
        if self.committee is not None:
            if self.committee.ndim != 4 or self.committee.shape[1:] != (units, people, classes):
                raise AcquisitionError(f"committee must have shape (members, {units}, {people}, {classes})")
            _distributions("committee", self.committee[:, self.open])
        self.features = None if features is None else np.asarray(features, dtype=np.float64)
        if self.features is not None and (self.features.ndim != 2 or len(self.features) != units
                                          or not np.isfinite(self.features).all()):
            raise AcquisitionError(f"features must be {units} rows of finite numbers")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(U, A, C)."""
        units, people = self.given.shape
        return units, people, self.consensus.shape[1]

    def _reliability(self) -> Floats:
        """(A,) how often each annotator's votes are the consensus, with four votes of the average annotator added."""
        unit, annotator = np.nonzero(self.given >= 0)
        agreed = self.consensus[unit, self.given[unit, annotator]]
        people = self.given.shape[1]
        pooled = (agreed.sum() + 1.0) / (len(unit) + 1.0 + 1.0 / self.consensus.shape[1]) if len(unit) else 0.7
        total, votes = np.bincount(annotator, agreed, people), np.bincount(annotator, minlength=people)
        return np.asarray((total + 4.0 * pooled) / (votes + 4.0))


class Policy(ABC):
    """A way to value gaps, with its settings; subclasses are frozen dataclasses without state."""

    name: ClassVar[str]
    reason: ClassVar[str]  # one sentence of why a vote is asked for, with {gain}, {points}, {confidence}, {votes}
    stochastic: ClassVar[bool] = False  # has a seed that matters
    again: ClassVar[float] = 0.5  # what one more vote of the same unit is worth, beside the one before it

    def scores(self, situation: Situation) -> Floats:
        """(U, A) the expected gain of every gap that may be asked, -inf elsewhere; one vectorised pass."""
        scores = np.full(situation.given.shape, -np.inf)
        unit, annotator = np.nonzero(situation.open)
        step = max(1, _CELLS // situation.shape[2] ** 2)
        for first in range(0, len(unit), step):
            at = (unit[first : first + step], annotator[first : first + step])
            scores[at] = self._gains(situation, *at)
        return scores

    def choose(
        self, situation: Situation, budget: float, *, at_most_per_unit: int = 1, balance: float = 0.0,
        costs: Sequence[float] | NDArray[np.floating] | None = None,
    ) -> list[Ask]:
        """The votes to ask for, best first, that `budget` pays for.

        `costs` (A,): what a vote of each annotator costs, in the unit of the budget; 1 by default, so that a budget is
        a number of votes. `at_most_per_unit`: new votes of one unit. `balance` 0 to 1: nobody is asked for more than
        1 / balance times an equal share of the budget (1: equal shares, 0: no limit). Raises AcquisitionError.
        """
        able = np.asarray(situation.open.any(axis=0))
        return self._choose(situation, limits_of(able, budget, at_most_per_unit, balance, costs))

    def explain(self, situation: Situation, ask: Ask) -> str:
        """Why this vote is asked for, in one sentence without names."""
        return self.reason.format(
            gain=ask.gain, points=100.0 * ask.gain, confidence=float(situation.consensus[ask.unit].max()),
            votes=int((situation.given[ask.unit] >= 0).sum()),
        )

    def _choose(self, situation: Situation, limits: Limits) -> list[Ask]:
        return asks(*best_pairs(self.scores(situation), limits, self.again))

    @abstractmethod
    def _gains(self, situation: Situation, unit: NDArray[np.intp], annotator: NDArray[np.intp]) -> Floats:
        """(n,) gains of n gaps."""


class TaskPolicy(Policy):
    """A policy that values tasks only; annotators take turns, whoever has earned least so far first."""

    def _choose(self, situation: Situation, limits: Limits) -> list[Ask]:
        earned = (situation.given >= 0).sum(axis=0) * limits.costs
        scores = self.scores(situation)
        return asks(*best_units(scores, earned, situation.reliability, limits, self.again))


def asks(unit: Sequence[int], annotator: Sequence[int], gain: Sequence[float]) -> list[Ask]:
    """Rows of three columns."""
    return [Ask(unit=u, annotator=a, gain=g) for u, a, g in zip(unit, annotator, gain, strict=True)]


def limits_of(
    able: Flags, budget: float, at_most_per_unit: int, balance: float,
    costs: Sequence[float] | NDArray[np.floating] | None,
) -> Limits:
    """Wishes, checked; `able` (A,) who has gaps. Raises AcquisitionError."""
    people = len(able)
    paid = np.ones(people) if costs is None else _shaped("costs", np.asarray(costs), (people,)).astype(np.float64)
    if not np.isfinite(paid).all() or (paid <= 0).any():
        raise AcquisitionError("costs must be finite and above 0")
    if not budget >= 0:  # NaN as well
        raise AcquisitionError("the budget must be a number from 0 on")
    if at_most_per_unit < 1:
        raise AcquisitionError("at least one vote a task must be allowed")
    if not 0.0 <= balance <= 1.0:
        raise AcquisitionError("balance lies between 0 (anybody) and 1 (equal shares)")
    equal = budget / max(float(paid[able].sum()), 1e-300)  # votes of each, if all give as many
    most = np.inf if balance == 0.0 else max(1.0, float(np.ceil(equal / balance - 1e-9)))
    return Limits(budget=float(budget), per_unit=at_most_per_unit, per_annotator=most, costs=paid)


def _shape(probabilities: NDArray[np.floating], given: NDArray[np.integer]) -> tuple[int, int, int]:
    shape = np.shape(probabilities)
    if len(shape) != 3 or shape[2] < 1 or np.shape(given) != shape[:2]:
        raise AcquisitionError(
            f"probabilities must have shape (units, annotators, classes) and given votes (units, annotators); "
            f"they have {shape} and {np.shape(given)}")
    if not np.issubdtype(np.asarray(given).dtype, np.integer):
        raise AcquisitionError("given votes must be integer class codes, -1 at a gap")
    return shape[0], shape[1], shape[2]


def _shaped(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    found = np.asarray(array)
    if found.shape != shape:
        raise AcquisitionError(f"{name} must have shape {shape}, not {found.shape}")
    return found


def _distributions(name: str, rows: NDArray[np.floating]) -> None:
    """Raises AcquisitionError unless rows (..., C) are probabilities."""
    if not np.isfinite(rows).all():
        raise AcquisitionError(f"{name} holds NaN or infinity; predict these gaps first, or do not ask them")
    if (rows < -1e-6).any() or (rows.size and np.abs(rows.sum(axis=-1) - 1.0).max() > 1e-3):
        raise AcquisitionError(f"rows of {name} must not be negative and must add up to 1")


def _shares(name: str, array: NDArray[Any]) -> Floats:
    found = array.astype(np.float64)
    if not ((found >= 0.0) & (found <= 1.0)).all():
        raise AcquisitionError(f"{name} must lie between 0 and 1")
    return found


def _shrunk(reliability: Floats, classes: int) -> Floats:
    """(A, C, C) right with the annotator's reliability, all errors alike."""
    if classes == 1:
        return np.ones((len(reliability), 1, 1))
    wrong = ((1.0 - reliability) / (classes - 1))[:, None, None]
    return np.asarray(wrong + (reliability[:, None, None] - wrong) * np.eye(classes))
