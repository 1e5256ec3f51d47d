"""Tasks that deserve attention: the hardest, and those on which two camps stand against each other.

Shape legend: N rows of a control's questions, Q questions (units; units x classes with several choices), U units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.services.served import DIGITS
from backend.services.statistics.documents import (
    LISTED,
    Camp,
    Consensus,
    ConsensusColumns,
    DifferingVote,
    DividedTask,
    Header,
    TaskLists,
    TaskRow,
    Tasks,
)
from backend.services.statistics.material import Material
from backend.services.statistics.overview import number, numbers
from backend.services.statistics.subject import Subject, label_text
from model.crowd.answers import AnswerMatrix
from model.quality.camps import division, worth
from model.quality.causes import CAUSES, ENOUGH_VOTES, Cause, Causes
from model.quality.tasks import entropy

Floats = NDArray[np.float64]


def tasks(material: Material, subjects: Sequence[Subject], header: Header) -> Tasks:
    """The lists of each control."""
    return Tasks(header=header, controls={subject.name: _lists(material, subject) for subject in subjects})


def consensus(material: Material, subjects: Sequence[Subject], header: Header) -> Consensus:
    """Labels of all units with votes."""
    return Consensus(header=header, controls={subject.name: _columns(material, subject) for subject in subjects})


def _columns(material: Material, subject: Subject) -> ConsensusColumns:
    votes = np.bincount(subject.votes.unit, minlength=len(subject.votes.units))
    rows = np.flatnonzero(votes)
    rows = rows[np.argsort(material.task[rows], kind="stable")].tolist()  # units of one task stand by their names
    classical = subject.classical or subject.labels
    return ConsensusColumns(
        units=tuple(subject.votes.units[at] for at in rows), labels=tuple(subject.labels.label[at] for at in rows),
        confidence=numbers(subject.labels.confidence[rows]),
        votes=tuple(votes[rows].tolist()), dawid_skene=tuple(classical.label[at] for at in rows),
        dawid_skene_confidence=numbers(classical.confidence[rows].round(DIGITS)),
    )


def _lists(material: Material, subject: Subject) -> TaskLists:
    answers, judged, why = subject.answers, subject.judged, subject.causes
    unrest, surprise, ambiguous = entropy(answers), judged.surprise, why.readings
    surprise = np.full(len(unrest), np.nan) if surprise is None else surprise
    value = worth(judged.against)
    heavy = division(answers, value)
    # Of several questions about one unit, the most divided one speaks for it.
    unit = subject.unit_of(np.arange(len(answers.units)))
    order = np.lexsort((np.nan_to_num(surprise), np.nan_to_num(ambiguous), why.divided, unit))
    speaks = order[np.flatnonzero(np.append(np.diff(unit[order]), 1))]  # the last, strongest, of each unit
    speaks = speaks[answers.voted[speaks]]
    rows = {
        question: _row(material, subject, question, unrest, surprise) for question in _listed(
            speaks, np.nan_to_num(ambiguous) + 0.1 * np.nan_to_num(surprise).clip(0.0, 5.0), heavy
        )
    }
    hardest = sorted(
        (row for row in rows.values() if row.differing and row.cause != Cause.CANNOT_TELL),
        key=lambda row: (-(row.ambiguity or 0.0), -(row.surprise or 0.0), row.task),
    )
    divided = sorted((q for q in rows if heavy[q] > 0), key=lambda q: (-heavy[q], rows[q].task))
    split = _Camps(subject, value)
    cases = (split.case(q, rows[q], float(heavy[q])) for q in divided)
    return TaskLists(
        hardest=tuple(hardest[:LISTED]), divided=tuple(islice((case for case in cases if case is not None), LISTED)),
        **_counts(subject, speaks),
    )


def _counts(subject: Subject, speaks: NDArray[np.int64]) -> Any:
    """The causes of all units as numbers: `TaskLists.causes`, `split`, `few` and `habits`."""
    why, votes = subject.causes, np.diff(subject.answers.indptr)
    found = Counter(CAUSES[code].value for code in why.unit[speaks].tolist())
    untold = speaks[why.divided[speaks] & (why.unit[speaks] == CAUSES.index(Cause.CANNOT_TELL))]
    whose = Counter(subject.votes.annotators[a] for a in _holders(subject.answers, why, speaks).tolist())
    return {
        "causes": dict(found), "split": int(why.divided[speaks].sum()),
        "few": int((votes[untold] < ENOUGH_VOTES).sum()), "habits": dict(whose.most_common()),
    }


def _holders(answers: AnswerMatrix, why: Causes, speaks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The annotator of each unit whose cause is a habit: of several, whose habit it is most surely."""
    habit = CAUSES.index(Cause.HABIT)
    chosen = np.zeros(len(answers.units), np.bool_)
    chosen[speaks] = why.unit[speaks] == habit
    rows = np.flatnonzero((why.vote == habit) & chosen[answers.unit])
    rows = rows[np.lexsort((-why.share[rows, 0], answers.unit[rows]))]
    first = np.flatnonzero(np.diff(answers.unit[rows], prepend=-1))
    return np.asarray(answers.annotator[rows[first]], np.int64)


def _listed(speaks: NDArray[np.int64], hard: Floats, heavy: Floats) -> list[int]:
    """The questions that may come into one of the lists."""
    first = speaks[np.argsort(-hard[speaks], kind="stable")[:LISTED]]
    second = speaks[np.argsort(-heavy[speaks], kind="stable")[:LISTED]]
    return [int(question) for question in np.union1d(first, second)]


def _row(material: Material, subject: Subject, question: int, unrest: Floats, surprise: Floats) -> TaskRow:
    why = subject.causes
    unit = int(subject.unit_of(np.array([question]))[0])
    first, last = subject.answers.indptr[question : question + 2].tolist()
    return TaskRow(
        task=int(material.task[unit]), unit=subject.votes.units[unit], votes=last - first,
        label=subject.labels.label[unit], confidence=number(subject.labels.confidence[unit]),
        entropy=number(unrest[question]), surprise=number(surprise[question]),
        ambiguity=number(why.readings[question]), cause=why.of_unit(question).value,
        differing=tuple(_differing(subject, row) for row in range(first, last) if why.instead[row] >= 0),
    )


def _differing(subject: Subject, row: int) -> DifferingVote:
    why, answers = subject.causes, subject.answers
    question, who = int(answers.unit[row]), int(answers.annotator[row])
    given, instead = int(answers.label[row]), int(why.instead[row])
    times, of = float(why.times[row]), float(why.of[row])
    if not subject.multiple:  # the very counts that the annotators' page tells habits by
        habit = subject.judged.faults.table[who, instead]
        times, of = float(habit[given]), float(habit.sum())
    return DifferingVote(
        annotator=answers.annotators[who], given=subject.said(question, given),
        instead=subject.said(question, instead), cause=CAUSES[why.vote[row]].value, times=times, of=of,
    )


class _Camps:
    """The camps of units, by what annotators answered in full."""

    def __init__(self, subject: Subject, value: Floats) -> None:
        """`value` (A,) is what each annotator's vote is worth."""
        votes = subject.votes
        self._subject, self._first = subject, np.searchsorted(votes.unit, np.arange(len(votes.units) + 1))
        self._text = [label_text(each) for each in votes.values]
        self._worth = value.tolist()

    def case(self, question: int, row: TaskRow, division: float) -> DividedTask | None:
        """None when all said the same after all."""
        votes = self._subject.votes
        unit = int(self._subject.unit_of(np.array([question]))[0])
        rows = slice(self._first[unit], self._first[unit + 1])
        camps: dict[str, list[int]] = {}
        for code, annotator in zip(votes.value[rows].tolist(), votes.annotator[rows].tolist(), strict=True):
            camps.setdefault(self._text[code], []).append(annotator)
        if len(camps) < 2:
            return None
        ranked = sorted((self._camp(label, who) for label, who in camps.items()),
                        key=lambda camp: (-camp.weight, -len(camp.annotators), camp.label))
        return DividedTask(row=row, camps=(ranked[0], ranked[1]), others=tuple(ranked[2:]), division=division)

    def _camp(self, label: str, who: Sequence[int]) -> Camp:
        names = self._subject.votes.annotators
        return Camp(label=label, annotators=tuple(names[a] for a in who), weight=sum(self._worth[a] for a in who))
