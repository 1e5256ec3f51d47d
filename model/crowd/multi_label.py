"""Multi-label votes (sets of classes): Dawid-Skene on each class, present or absent.

An empty set is an answer: it says "absent" to every class.

Shape legend: U units, A annotators, C classes, V distinct sets.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.crowd.answers import AnswerMatrix, is_missing
from model.crowd.base import Aggregator
from model.crowd.dawid_skene import DawidSkene
from model.crowd.sums import Floats
from model.data.spaces import ValueKind
from model.data.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetAnswers:
    """Votes whose label is one of V distinct sets of C classes."""

    answers: AnswerMatrix  # its classes are the V distinct sets
    classes: tuple[str, ...]  # C
    chosen: NDArray[np.bool_]  # (V, C)

    @classmethod
    def from_votes(
        cls, votes: Votes, control: str | None = None, *, classes: Sequence[str] | None = None
    ) -> SetAnswers:
        """The set-valued votes of one control; classes default to those that were ever chosen, sorted."""
        sets = [v.data if v.kind is ValueKind.CLASSES and isinstance(v.data, tuple) else None for v in votes.values]
        rows = votes if control is None else votes.of_control(control)
        return cls._build(
            [votes.units[i] for i in rows.unit], [votes.annotators[i] for i in rows.annotator],
            [sets[i] for i in rows.value], classes, weights=rows.weight, times=rows.time,
            all_units=votes.units, all_annotators=votes.annotators,
        )

    @classmethod
    def from_columns(
        cls, units: Sequence[Hashable], annotators: Sequence[Hashable], sets: Sequence[Collection[str] | None], *,
        classes: Sequence[str] | None = None, all_units: Sequence[Hashable] = (),
    ) -> SetAnswers:
        """From three columns; None and NaN are missing answers."""
        return cls._build(units, annotators, sets, classes, all_units=all_units)

    @classmethod
    def _build(
        cls, units: Sequence[Hashable], annotators: Sequence[Hashable], sets: Sequence[Collection[object] | None],
        classes: Sequence[str] | None, *, weights: ArrayLike | None = None, times: ArrayLike | None = None,
        all_units: Sequence[Hashable] = (), all_annotators: Sequence[Hashable] = (),
    ) -> SetAnswers:
        known = [None if is_missing(s) or s is None else tuple(sorted({str(name) for name in s})) for s in sets]
        names = tuple(classes) if classes is not None else tuple(sorted({n for s in known if s is not None for n in s}))
        keys = [None if s is None else "\x1f".join(s) for s in known]
        table = sorted({key for key in keys if key is not None})
        members = [set(key.split("\x1f")) if key else set() for key in table]
        chosen = np.array([[name in m for name in names] for m in members], dtype=np.bool_)
        chosen = chosen.reshape(len(table), len(names))
        answers = AnswerMatrix.from_columns(
            units, annotators, keys, classes=table, weights=weights, times=times, all_units=all_units,
            all_annotators=all_annotators,
        )
        return cls(answers=answers, classes=names, chosen=chosen)

    def of_class(self, position: int) -> AnswerMatrix:
        """The same votes as answers to "is this class there?": class 0 absent, 1 present."""
        label = self.chosen[:, position].astype(np.int32)[self.answers.label]
        return replace(self.answers, classes=("absent", "present"), label=label)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetAggregate:
    """Which classes each unit has."""

    units: tuple[str, ...]
    annotators: tuple[str, ...]
    classes: tuple[str, ...]
    present: NDArray[np.bool_]  # (U, C), all False where unlabelled
    posterior: Floats  # (U, C) probability that the class is there
    unlabelled: NDArray[np.bool_]  # (U,)
    sensitivity: Floats  # (A, C) says present when it is
    specificity: Floats  # (A, C) says absent when it is
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLabel:
    """One two-class aggregator for each class; it must estimate confusion matrices."""

    base: Aggregator = field(default_factory=lambda: DawidSkene(smoothing=0.5, smoothing_prior=0.5))

    def fit(self, sets: SetAnswers) -> SetAggregate:
        """Aggregate the votes; controls without classes or votes give an empty or unlabelled result."""
        answers = sets.answers
        n_units, n_annotators, n_classes = len(answers.units), len(answers.annotators), len(sets.classes)
        posterior = np.full((n_units, n_classes), 0.5)
        sensitivity, specificity = (np.full((n_annotators, n_classes), 0.5) for _ in range(2))
        converged = True
        for position in range(n_classes):
            fitted = self.base.fit(sets.of_class(position))
            posterior[:, position] = fitted.posterior[:, 1]
            converged &= fitted.converged
            if fitted.confusion is not None:
                sensitivity[:, position] = fitted.confusion[:, 1, 1]
                specificity[:, position] = fitted.confusion[:, 0, 0]
        unlabelled = ~answers.voted
        return SetAggregate(
            units=answers.units, annotators=answers.annotators, classes=sets.classes, posterior=posterior,
            present=(posterior >= 0.5) & ~unlabelled[:, None], unlabelled=unlabelled, sensitivity=sensitivity,
            specificity=specificity, converged=converged,
        )
