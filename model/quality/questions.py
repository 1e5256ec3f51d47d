"""The votes of one control as nominal questions, as far apart as the answers of its space are.

A control with one choice asks one question a unit. One with several choices asks of every class whether it is there, so
all that compares nominal votes compares sets too. Numbers are compared by their bins (see `model.data.numbers`).

Shape legend: V votes, N rows of the questions (V, or V * C with several choices), U units, A annotators, C classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.data.numbers import NumberBins
from model.data.spaces import SingleChoice, Space, ValueKind
from model.data.votes import Votes
from model.quality.agreement import Level, presence_agreement

Floats = NDArray[np.float64]
ABSENT_PRESENT = ("absent", "present")


def encoded(votes: Votes, space: Space) -> NDArray[np.float32]:
    """(V, C) the votes as the space encodes them."""
    table = np.zeros((len(votes.values), len(space.classes)), np.float32)
    for code in np.flatnonzero(np.bincount(votes.value, minlength=len(votes.values))):
        table[code] = space.encode(votes.values[code])
    return table[votes.value]


def usable(votes: Votes, space: Space) -> NDArray[np.int64]:
    """Rows of the votes that are in the space and weigh something, sorted by (unit, annotator, time)."""
    inside = np.array([space.contains(value) for value in votes.values], np.bool_)
    rows = np.flatnonzero(inside[votes.value] & (votes.weight > 0)) if len(inside) else np.empty(0, np.int64)
    order: NDArray[np.int64] = rows[np.lexsort((votes.time[rows], votes.annotator[rows], votes.unit[rows]))]
    return order


def newest(votes: Votes, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of rows as `usable` gives them, the last of each (unit, annotator)."""
    last = (np.diff(votes.unit[rows], append=-1) != 0) | (np.diff(votes.annotator[rows], append=-1) != 0)
    found: NDArray[np.int64] = rows[last]
    return found


def questions(votes: Votes, space: Space) -> tuple[AnswerMatrix, NDArray[np.int64]]:
    """The answers to all questions, and the vote (V) behind each row (N). Votes must be in the space."""
    y, n, c = encoded(votes, space), len(votes), len(space.classes)
    unit, annotator = votes.unit.astype(np.int64), votes.annotator
    label, vote = y.argmax(axis=1).astype(np.int64) if c else np.zeros(n, np.int64), np.arange(n)
    units, classes = votes.units, space.classes
    if space.kind is ValueKind.CLASSES:
        question = (unit[:, None] * c + np.arange(c)).reshape(-1)
        vote = np.repeat(vote, c)
        order = np.lexsort((annotator[vote], question))
        vote, unit = vote[order], question[order]
        label, annotator = (y.reshape(-1)[order] > 0).astype(np.int64), annotator[vote]
        units = tuple(f"{name}\x1f{klass}" for name in votes.units for klass in space.classes)
        classes = ABSENT_PRESENT
    times = votes.time[vote]
    timed = bool(len(times)) and bool(np.any(times != times[0]))
    answers = AnswerMatrix.from_codes(
        units=units, annotators=votes.annotators, classes=classes, unit=unit, annotator=annotator, label=label,
        weight=votes.weight[vote], time=times, keep_time=timed,
    )
    return answers, vote


def set_agreement(votes: Votes, space: Space) -> tuple[Floats, Floats]:
    """`class_agreement` and `class_alpha` (C,) of the classes of a control with several choices."""
    units = len(votes.units)
    holds = np.stack([np.bincount(votes.unit, column, minlength=units) for column in encoded(votes, space).T], axis=1)
    there = np.bincount(votes.unit, minlength=units)
    return presence_agreement(holds.astype(np.float64), there.astype(np.float64))


def level_of(space: Space) -> tuple[Level, Floats | None]:
    """How far apart two answers are: Krippendorff's level, and the numbers that the classes stand for."""
    if isinstance(space, NumberBins):
        return "interval", space.middle
    return ("ordinal" if isinstance(space, SingleChoice) and space.ordered else "nominal"), None
