"""Online Dawid-Skene: votes come in portions; units, annotators and classes may be new each time.

Incremental EM (Neal & Hinton): a unit's last posterior stays in the expected counts until the unit is touched again;
then it is taken out, computed anew and put back. An update costs the votes of the touched units. `result(sweeps)` runs
that many batch passes from where the stream is; run to convergence it is a fixed point of batch Dawid-Skene with the
same smoothing, and on data where batch has one attractor the labels agree on 99 % of the units (tested).

Shape legend: U units, A annotators, C classes. Counts are (A, C given, C true).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from model.crowd.answers import AnswerMatrix, is_missing
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate
from model.crowd.dawid_skene import DawidSkene, confusion_evidence, log_confusion, log_shares
from model.crowd.sums import Floats, softmax_rows


class DawidSkeneStream:
    """A running Dawid-Skene. Not thread-safe. The latest vote of an annotator on a unit replaces the earlier one."""

    def __init__(self, *, classes: Sequence[str] = (), base: DawidSkene | None = None) -> None:
        self._base = base or DawidSkene()
        self._units: dict[str, int] = {}
        self._annotators: dict[str, int] = {}
        self._classes: dict[str, int] = {name: code for code, name in enumerate(classes)}
        self._votes: list[dict[int, int]] = []  # unit -> {annotator: class}
        n = len(self._classes)
        self._posterior = np.zeros((0, n))  # a row of zeros: not in the counts yet
        self._counts = np.zeros((0, n, n))
        self._class_counts = np.zeros(n)

    def add(self, units: Sequence[Hashable], annotators: Sequence[Hashable], labels: Sequence[Hashable | None]) -> None:
        """Take in a portion of votes; missing labels are ignored."""
        touched: dict[int, None] = {}
        fresh: list[tuple[int, int, int]] = []
        for unit, annotator, label in zip(units, annotators, labels, strict=True):
            u = self._units.setdefault(str(unit), len(self._units))
            a = self._annotators.setdefault(str(annotator), len(self._annotators))
            if u == len(self._votes):
                self._votes.append({})
            if not is_missing(label):
                fresh.append((u, a, self._classes.setdefault(str(label), len(self._classes))))
                touched[u] = None
        self._grow()
        if not touched:
            return
        rows = np.fromiter(touched, np.int64, len(touched))
        self._account(rows, -1.0)
        for u, a, label_code in fresh:
            self._votes[u][a] = label_code
        self._settle(rows)

    def posterior(self, unit: Hashable) -> dict[str, float]:
        """Class -> probability of one unit, as it stands; empty when the unit has no vote."""
        u = self._units.get(str(unit))
        if u is None or not self._votes[u]:
            return {}
        return {name: float(self._posterior[u, code]) for name, code in self._classes.items()}

    def answers(self) -> AnswerMatrix:
        """All current votes, over sorted ids."""
        names, annotators, classes = list(self._units), list(self._annotators), list(self._classes)
        rows = [(names[u], annotators[a], classes[c]) for u, given in enumerate(self._votes) for a, c in given.items()]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        return AnswerMatrix.from_columns(
            columns[0], columns[1], columns[2], classes=classes, all_units=names, all_annotators=annotators
        )

    def result(self, sweeps: int = 0) -> Aggregate:
        """The state as an Aggregate after `sweeps` batch passes over everything (the stream itself stays as it is)."""
        answers = self.answers()
        order = np.array([self._units[name] for name in answers.units], dtype=np.int64)
        start = self._posterior[order]
        return _Continued(base=replace(self._base, max_iter=sweeps + 1), start=start).fit(answers)

    def _grow(self) -> None:
        n_units, n_annotators, n_classes = len(self._units), len(self._annotators), len(self._classes)
        more = n_classes - self._posterior.shape[1]
        rows = max(n_units, 2 * len(self._posterior)) if n_units > len(self._posterior) else len(self._posterior)
        if more or rows > len(self._posterior):
            self._posterior = np.pad(self._posterior, ((0, rows - len(self._posterior)), (0, more)))
        people = max(n_annotators, 2 * len(self._counts)) if n_annotators > len(self._counts) else len(self._counts)
        if more or people > len(self._counts):
            self._counts = np.pad(self._counts, ((0, people - len(self._counts)), (0, more), (0, more)))
            self._class_counts = np.pad(self._class_counts, (0, more))

    def _columns(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(position in rows, annotator, class) of the current votes of the units `rows`."""
        flat = [(i, a, c) for i, u in enumerate(rows) for a, c in self._votes[u].items()]
        table = np.array(flat, dtype=np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def _account(self, rows: np.ndarray, sign: float) -> None:
        """Put the units' posteriors into the counts (+1) or take them out (-1)."""
        at, annotator, given = self._columns(rows)
        n_classes = len(self._classes)
        keys, inverse = np.unique(annotator * n_classes + given, return_inverse=True)
        belief = self._posterior[rows]  # (n, C)
        for true in range(n_classes):
            change = np.bincount(inverse, belief[at, true], minlength=len(keys))
            self._counts[keys // n_classes, keys % n_classes, true] += sign * change
        self._class_counts += sign * belief.sum(axis=0)
        if sign < 0:
            np.maximum(self._counts, 0.0, out=self._counts)  # rounding must not leave a count below zero
            np.maximum(self._class_counts, 0.0, out=self._class_counts)

    def _settle(self, rows: np.ndarray) -> None:
        """New posteriors of touched units: the soft vote first, so that new annotators have counts, then an E step."""
        at, annotator, given = self._columns(rows)
        n_classes = len(self._classes)
        votes = np.bincount(at * n_classes + given, minlength=len(rows) * n_classes).reshape(len(rows), n_classes)
        self._posterior[rows] = votes / votes.sum(axis=1, keepdims=True)
        self._account(rows, 1.0)
        who, place = np.unique(annotator, return_inverse=True)
        table = log_confusion(self._counts[who].reshape(-1, n_classes), self._base.pseudo_votes(n_classes))
        evidence = table.reshape(len(who), n_classes, n_classes)[place, given]  # (n votes, true)
        columns = [np.bincount(at, evidence[:, k], minlength=len(rows)) for k in range(n_classes)]
        scores: Floats = np.stack(columns, axis=1).astype(np.float64)
        scores += log_shares(self._class_counts, self._base.smoothing_prior)
        softmax_rows(scores)
        self._account(rows, -1.0)
        self._posterior[rows] = scores
        self._account(rows, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineDawidSkene(Aggregator):
    """One portion of units after the other, then `sweeps` batch passes; `objective` is that of the passes."""

    name: ClassVar[str] = "online-dawid-skene"
    needs_confusions: ClassVar[bool] = True
    portion: int = 200  # units
    sweeps: int = 100
    base: DawidSkene = field(default_factory=DawidSkene)

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        stream = DawidSkeneStream(classes=answers.classes, base=self.base)
        for first in range(0, len(answers.units), self.portion):
            rows = slice(answers.indptr[first], answers.indptr[min(first + self.portion, len(answers.units))])
            stream.add(
                [answers.units[u] for u in answers.unit[rows]],
                [answers.annotators[a] for a in answers.annotator[rows]],
                [answers.classes[c] for c in answers.label[rows]],
            )
        start = np.full((len(answers.units), len(answers.classes)), 1.0 / len(answers.classes))
        for position, name in enumerate(answers.units):
            row = stream.posterior(name)
            if row:
                start[position] = [row[c] for c in answers.classes]
        known = gold >= 0
        start[known] = np.eye(len(answers.classes))[gold[known]]
        return replace(self.base, max_iter=self.sweeps + 1).climb(answers, gold, start)

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        return confusion_evidence(answers, fitted)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Continued(Aggregator):
    """Batch passes from a given posterior."""

    name: ClassVar[str] = "online-dawid-skene"
    needs_confusions: ClassVar[bool] = True
    base: DawidSkene
    start: Floats

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        return self.base.climb(answers, gold, self.start.copy())
