"""Gap baselines from votes alone: the majority of visible votes, and Dawid-Skene through the annotator's own confusion.

    visible-majority   p[c] = (visible votes for c + one pseudo-vote by training shares) / (visible votes + 1)
    dawid-skene        p[a, l] = sum_k P(k | visible votes but a's) pi_a[k, l]

Confusion matrices are those of Dawid-Skene on the training votes, each row shrunk to the pooled one by four
pseudo-counts; an annotator without training votes has the pooled one. An annotator's own visible vote never counts for
them. Of several choices each class is a problem of its own with the answers no and yes.

Shape legend: B units, A annotators, C classes, n visible votes, k true, l given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import VotePredictor
from model.crowd.sums import softmax_rows
from model.data.dataset import Targets
from model.data.spaces import ValueKind
from model.data.votes import Votes
from model.evaluate.baselines.base import Fitted, Floats, Fold
from model.evaluate.baselines.naive import training_targets
from model.evaluate.baselines.visible import visible_votes


@dataclass(frozen=True, kw_only=True)
class _Majority:
    fold: Fold
    share: Floats  # (C,) of training votes

    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        seen = visible_votes(visible, self.fold.space, units, self.fold.annotators)
        counted = np.column_stack([seen.y, np.ones(len(seen.y))]).astype(np.float64)
        sums = seen.summed(counted, len(units), len(self.fold.annotators))  # (B, A, C + 1)
        return np.asarray((sums[..., :-1] + self.share) / (sums[..., -1:] + 1.0))


@dataclass(frozen=True, kw_only=True)
class VisibleMajority:
    """What most of the others said; with no others, the training shares."""

    name: ClassVar[str] = "visible-majority"
    source: ClassVar[str] = "naive"
    uses_visible: ClassVar[bool] = True

    def fit(self, fold: Fold) -> Fitted:
        targets = training_targets(fold)
        smooth = 1.0 / targets.y.shape[1] if fold.space.kind is ValueKind.CLASS else 0.5
        return _Majority(fold=fold, share=(targets.y.sum(0, dtype=np.float64) + smooth) / (len(targets) + 1.0))


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Dawid-Skene of one question, as it is used on other units."""

    log_prior: Floats  # (C,)
    table: Floats  # (A + 1, C, C) [annotator, true, given]; the last is the pooled one

    def answers(self, unit: NDArray[np.int64], annotator: NDArray[np.int64], given: NDArray[np.int64], units: int
                ) -> Floats:
        """(B, A, C): what each annotator would say, by the visible votes (n,) of the others."""
        people = len(self.table) - 1
        total = np.repeat(self.log_prior[None], units, 0)
        evidence = np.log(self.table[annotator, :, given])  # (n, true); -1 is the pooled row
        np.add.at(total, unit, evidence)
        belief = np.repeat(total[:, None], people, 1)
        own = annotator >= 0
        np.subtract.at(belief, (unit[own], annotator[own]), evidence[own])
        flat = belief.reshape(-1, belief.shape[2])
        softmax_rows(flat)
        return np.asarray(np.einsum("bak,akl->bal", flat.reshape(belief.shape), self.table[:-1]))


def fit_confusion(unit: NDArray[np.int64], annotator: NDArray[np.int64], given: NDArray[np.int64], classes: int,
                  annotators: int, strength: float) -> Confusion:
    """Dawid-Skene on votes (N,), with matrices shrunk to the pooled one by `strength` pseudo-counts a row."""
    answers = AnswerMatrix.from_codes(
        units=[str(u) for u in range(int(unit.max(initial=-1)) + 1)], annotators=[str(a) for a in range(annotators)],
        classes=[str(c) for c in range(classes)], unit=unit, annotator=annotator, label=given,
    )
    fitted = DawidSkene().fit(answers)
    predictor = VotePredictor(strength=strength)
    assert fitted.counts is not None
    pooled = fitted.counts.sum(0) + predictor.floor
    own = predictor.confusion(fitted)
    return Confusion(
        log_prior=np.log(fitted.parameters["prior"]),
        table=np.concatenate([own, (pooled / pooled.sum(1, keepdims=True))[None]]),
    )


def questions(targets: Targets) -> list[tuple[NDArray[np.int64], int]]:
    """The answers (N,) of each nominal question in the votes, and how many answers it has."""
    if targets.space.kind is ValueKind.CLASS:
        return [(targets.y.argmax(1).astype(np.int64), targets.y.shape[1])]
    return [((targets.y[:, c] > 0.5).astype(np.int64), 2) for c in range(targets.y.shape[1])]


@dataclass(frozen=True, kw_only=True)
class _DawidSkene:
    fold: Fold
    matrices: list[Confusion]  # one; of several choices, one for each class

    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        seen = visible_votes(visible, self.fold.space, units, self.fold.annotators)
        if self.fold.space.kind is ValueKind.CLASS:
            given = seen.y.argmax(1).astype(np.int64) if len(seen.y) else np.empty(0, np.int64)
            return self.matrices[0].answers(seen.unit, seen.annotator, given, len(units))
        return np.stack([
            matrix.answers(seen.unit, seen.annotator, (seen.y[:, c] > 0.5).astype(np.int64), len(units))[..., 1]
            for c, matrix in enumerate(self.matrices)
        ], -1)


@dataclass(frozen=True, kw_only=True)
class DawidSkeneGaps:
    """What the others' votes say of the unit, as this annotator would put it."""

    strength: float = 4.0  # pseudo-counts of the pooled matrix in each row

    name: ClassVar[str] = "dawid-skene"
    source: ClassVar[str] = "Dawid and Skene 1979"
    uses_visible: ClassVar[bool] = True

    def fit(self, fold: Fold) -> Fitted:
        targets = training_targets(fold)
        return _DawidSkene(fold=fold, matrices=[
            fit_confusion(targets.unit, targets.annotator, given, classes, len(fold.annotators), self.strength)
            for given, classes in questions(targets)
        ])
