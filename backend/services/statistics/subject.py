"""One control, judged: its current votes as nominal questions, what the crowd methods and the version say of them.

A control with one choice asks one question a unit. One with several choices asks, of every class, whether it is there:
the same methods then judge annotators and votes over all these questions; its consensus is made class by class, as
`aggregate` does.

Shape legend: V current votes of the control, N rows of the questions (V, or V * C with several choices), U units, A
annotators, C classes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.services.statistics.documents import NOTHING_CHOSEN
from backend.services.statistics.material import Material
from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.crowd.multi_label import MultiLabel, SetAnswers
from model.crowd.room import confusions_fit
from model.data.numbers import NumberBins
from model.data.spaces import Space, Value, ValueKind
from model.data.votes import Votes
from model.ensemble.hidden import HiddenCheck
from model.quality.annotators import Consistency, self_consistency
from model.quality.causes import Causes, causes
from model.quality.evidence import ControlEvidence
from model.quality.faults import Witness
from model.quality.judged import Judged, judge
from model.quality.questions import ABSENT_PRESENT, questions, usable
from model.quality.slips import source_weights

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """One label for every unit with votes, U rows over the units of the votes."""

    label: tuple[str | None, ...]
    confidence: Floats  # (U,) NaN without a label
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """A control with everything that was found about it."""

    name: str
    space: Space
    votes: Votes  # (V,) sorted by (unit, annotator)
    row: Codes  # (V,) row in the history
    vote: Codes  # (N,) which vote each row of the questions belongs to
    judged: Judged
    labels: Labels
    served: Floats  # (V, C) out-of-sample probabilities; NaN where there are none
    prior: Floats  # (V, C) of the annotator's habits
    causes: Causes  # why votes differ, by rows of the questions
    repeats: Consistency  # (A,) among all votes of the control, the replaced ones too
    classical: Labels | None = None  # what votes alone say (Dawid-Skene), beside `labels`
    said_by: str = "dawid-skene"  # whose `labels` they are
    check: HiddenCheck | None = None  # how far their confidence is true

    @property
    def answers(self) -> AnswerMatrix:
        """The questions."""
        return self.judged.answers

    @property
    def multiple(self) -> bool:
        """Several choices."""
        return self.space.kind is ValueKind.CLASSES

    @property
    def own(self) -> Floats | None:
        """(N, classes of the questions) what the annotator's own model expected; None without a version."""
        return _own(self.served, self.space, self.answers, self.vote)

    def unit_of(self, question: NDArray[np.integer]) -> Codes:
        """The unit that each question is about."""
        return np.asarray(question // len(self.space.classes) if self.multiple else question, np.int64)

    def said(self, question: int, code: int) -> str:
        """An answer to a question as people read it: a class, or with several choices "with x" or "without x"."""
        if not self.multiple:
            return self.space.classes[code]
        name = self.space.classes[question % len(self.space.classes)]
        return f"with {name}" if code else f"without {name}"


def label_text(value: Value) -> str:
    """A value as people read it."""
    if isinstance(value.data, tuple):
        return ", ".join(str(each) for each in value.data) or NOTHING_CHOSEN
    return str(value.data)


class Judge:
    """Makes subjects; keeps what it found of controls whose votes did not change since."""

    def __init__(self, *, keep: int = 8) -> None:
        self._keep = keep
        self._found: OrderedDict[str, tuple[Judged, Labels]] = OrderedDict()

    def subjects(self, material: Material) -> list[Subject]:
        """All modelled controls that have votes, in document order."""
        found = {name: _rows(material.votes, name, space) for name, space in material.spaces.items()
                 if not _too_large(material, space)}
        rows = {name: each for name, each in found.items() if len(each)}
        return [
            self._subject(material, name, material.spaces[name], each, 1.0 / len(rows)) for name, each in rows.items()
        ]

    def _subject(self, material: Material, name: str, space: Space, rows: Codes, share: float) -> Subject:
        votes = material.votes.select(rows)
        answers, vote = questions(votes, space)
        served, prior = _out_of_sample(material, name, space, votes)
        repeats = _repeats(material, name, votes)
        witness = _witness(space, votes, answers, vote, served, prior, repeats)
        judged, labels = self._judge(material.project.key, name, votes, space, answers, witness, share)
        return Subject(
            name=name, space=space, votes=votes, row=material.current[rows], vote=vote, judged=judged, labels=labels,
            served=served, prior=prior, causes=_causes(judged, space, _own(served, space, answers, vote)),
            repeats=repeats,
        )

    def _judge(
        self, project: str, name: str, votes: Votes, space: Space, answers: AnswerMatrix, witness: Witness,
        share: float,
    ) -> tuple[Judged, Labels]:
        key = _digest(project, name, space.classes, answers, witness, share)
        if isinstance(space, NumberBins):  # two numbers of one bin are the same to `answers`, but not to the median
            given = np.array([str(votes.values[code].data) for code in votes.value])
            key += hashlib.sha256(given.tobytes()).hexdigest()
        found = self._found.get(key)
        if found is None:
            if space.kind is ValueKind.CLASS:
                judged = judge(answers, DawidSkene(), witness=witness, watched=True, share=share)
            else:
                judged = _judge_sets(answers, witness, share)
            found = (judged, _labels(judged, space, votes))
        self._found[key] = found
        self._found.move_to_end(key)
        while len(self._found) > self._keep:
            self._found.popitem(last=False)
        return found


def _own(served: Floats, space: Space, answers: AnswerMatrix, vote: Codes) -> Floats | None:
    """See `Subject.own`."""
    if not np.isfinite(served).any():
        return None
    if space.kind is not ValueKind.CLASSES:
        return served
    p = served[vote, answers.unit % len(space.classes)]
    return np.stack([1.0 - p, p], axis=1)


def _causes(judged: Judged, space: Space, own: Floats | None) -> Causes:
    """Why votes differ. With several choices, somebody's habit is one of each choice."""
    answers, who = judged.answers, None
    if space.kind is ValueKind.CLASSES:
        c = len(space.classes)
        who = answers.annotator.astype(np.int64) * c + answers.unit % c
    trust = source_weights(answers, own, judged.predicted)[0] if own is not None else 0.0
    return causes(answers, judged.faults.belief, who=who, own=own, trust=trust)


def left_out(material: Material) -> list[tuple[str, str]]:
    """(control, sentence) of the controls with votes that have too many annotators and classes to be judged."""
    return [
        (name, f"'{name}' has {len(material.given.annotators):,} annotators and {len(space.classes):,} classes, "
               "too many to judge them here: tables would not fit into memory.")
        for name, space in material.spaces.items() if name in material.given.controls and _too_large(material, space)
    ]


def _too_large(material: Material, space: Space) -> bool:
    classes = len(space.classes) if space.kind is ValueKind.CLASS else len(ABSENT_PRESENT)
    return not confusions_fit(len(material.given.annotators) + 1, classes)  # one more: whom nobody knows yet


def _judge_sets(answers: AnswerMatrix, witness: Witness, share: float) -> Judged:
    """Yes-or-no questions of very different frequency: no abilities, whose one scale would not fit them."""
    method = DawidSkene(smoothing=0.5, smoothing_prior=0.5)
    return replace(judge(answers, method, witness=witness, watched=True, share=share), glad=None)


def _witness(
    space: Space, votes: Votes, answers: AnswerMatrix, vote: Codes, served: Floats, prior: Floats, repeats: Consistency
) -> Witness:
    """What is known of the annotators beside the others' votes."""
    if space.kind is ValueKind.CLASSES:
        of = answers.unit.astype(np.int64) % len(space.classes)
        there = np.stack([served[vote, of], prior[vote, of]])  # (2, N) of "present"
        given = np.clip(np.where(answers.label > 0, there, 1.0 - there), 1e-6, 1.0)
        return Witness(gain=np.log(given[0] / given[1]), task=votes.unit[vote].astype(np.int64))
    given = np.clip(np.stack([served, prior])[:, vote, answers.label], 1e-6, 1.0)  # (2, N)
    return Witness(gain=np.log(given[0] / given[1]), repeats=repeats)


def _repeats(material: Material, name: str, votes: Votes) -> Consistency:
    """Repeats among all votes of the control, the replaced ones too; (A,) in the order of the current annotators."""
    history = material.history.votes
    mine = np.flatnonzero(history.control == history.controls.index(name))
    place = {each: at for at, each in enumerate(votes.annotators)}
    who = np.array([place.get(each, -1) for each in history.annotators], np.int64)[history.annotator[mine]]
    mine, who = mine[who >= 0], who[who >= 0]
    return self_consistency(history.unit[mine], who, history.value[mine], len(votes.annotators))


def _rows(votes: Votes, name: str, space: Space) -> Codes:
    """Rows of the usable votes of a control, sorted by (unit, annotator)."""
    if name not in votes.controls or not space.classes:
        return np.empty(0, np.int64)
    mine = np.flatnonzero(votes.control == votes.controls.index(name))
    return mine[usable(votes.select(mine), space)]


def _number_labels(judged: Judged, space: NumberBins, votes: Votes) -> Labels:
    """The median of each unit's votes (the mean of the middle two), and how sure Dawid-Skene is of its bin."""
    given = np.array([each.data if isinstance(each.data, float) else np.nan for each in votes.values])[votes.value]
    order = np.lexsort((given, votes.unit))
    count = np.bincount(votes.unit, minlength=len(votes.units))
    start, there = np.cumsum(count) - count, count > 0
    low, high = start[there] + (count[there] - 1) // 2, start[there] + count[there] // 2
    median = np.full(len(count), np.nan)
    median[there] = (given[order][low] + given[order][high]) / 2.0
    place = np.searchsorted(space.inner, median[there], side="right")
    sure = np.full(len(count), np.nan)
    sure[there] = judged.fitted.posterior[np.flatnonzero(there), place]
    return Labels(
        label=tuple(f"{each:.12g}" if np.isfinite(each) else None for each in median.tolist()), confidence=sure,
        converged=judged.fitted.converged,
    )


def _labels(judged: Judged, space: Space, votes: Votes) -> Labels:
    if isinstance(space, NumberBins):
        return _number_labels(judged, space, votes)
    if space.kind is ValueKind.CLASS:
        fitted = judged.fitted
        names = [*space.classes, None]  # code -1 is the last
        return Labels(
            label=tuple(names[code] for code in fitted.label.tolist()), confidence=fitted.confidence,
            converged=fitted.converged,
        )
    sets = MultiLabel().fit(SetAnswers.from_votes(votes, classes=space.classes))
    classes = np.array(sets.classes, dtype=object)
    texts = [
        None if silent else label_text(Value.of_classes(classes[there].tolist()))
        for there, silent in zip(sets.present, sets.unlabelled, strict=True)
    ]
    sure = np.where(sets.present, sets.posterior, 1.0 - sets.posterior).prod(axis=1)
    return Labels(
        label=tuple(texts), confidence=np.where(sets.unlabelled, np.nan, sure), converged=sets.converged
    )


def _out_of_sample(material: Material, name: str, space: Space, votes: Votes) -> tuple[Floats, Floats]:
    """Served and prior probabilities of each vote, (V, C); NaN where the version says nothing of it."""
    shape = (len(votes), len(space.classes))
    served, prior = np.full(shape, np.nan), np.full(shape, np.nan)
    tables = material.evidence
    item = None if tables is None else tables.controls.get(name)
    if tables is None or item is None or not len(item.unit):
        return served, prior
    columns = _columns(item, space)
    if columns is None:
        return served, prior
    place = item.align(
        {unit: at for at, unit in enumerate(votes.units)}, {one: at for at, one in enumerate(votes.annotators)}, tables
    )
    known = np.flatnonzero((place >= 0).all(axis=1))
    key = votes.unit.astype(np.int64) * len(votes.annotators) + votes.annotator  # ascending
    wanted = place[known, 0] * len(votes.annotators) + place[known, 1]
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    hit = key[at] == wanted
    served[at[hit]] = item.served[known[hit]][:, columns]
    prior[at[hit]] = item.prior[known[hit]][:, columns]
    return served, prior


def _columns(item: ControlEvidence, space: Space) -> list[int] | None:
    """Where each class of the space stands in the evidence; None when a class is new to it."""
    place = {name: at for at, name in enumerate(item.classes)}
    return [place[name] for name in space.classes] if all(name in place for name in space.classes) else None


def _digest(
    project: str, name: str, classes: tuple[str, ...], answers: AnswerMatrix, witness: Witness, share: float
) -> str:
    digest = hashlib.sha256(repr((project, name, classes, answers.shape, share)).encode("utf-8", "surrogatepass"))
    repeats = witness.repeats
    pairs = () if repeats is None else (repeats.share, repeats.pairs)
    gain = None if witness.gain is None else np.nan_to_num(witness.gain)
    for column in (answers.unit, answers.annotator, answers.label, answers.weight, answers.time, gain, *pairs):
        digest.update(b"|" if column is None else np.ascontiguousarray(column).tobytes())
    for table in (answers.units, answers.annotators):
        digest.update("\n".join(table).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
