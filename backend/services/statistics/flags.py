"""Flags: votes worth a second look, each with its reasons in sentences.

Shape legend: N rows of a control's questions, V its votes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.services.statistics.checks import standing
from backend.services.statistics.documents import LISTED, Flag, Flags, Header, Reason, ReasonKind
from backend.services.statistics.material import Material
from backend.services.statistics.subject import Subject, label_text
from model.quality.causes import CAUSES, Cause
from model.quality.grounds import FEWEST_TASKS
from model.quality.pace import pace
from model.quality.slips import Slips, slips

WORTH_A_LOOK = -1.0  # nats: a vote that is a slip with a probability of about a quarter or more
_SPEAKS = 0.7  # nats that a reason must add to be said
_HABIT, _SLIP = CAUSES.index(Cause.HABIT), CAUSES.index(Cause.SLIP)
Codes = NDArray[np.int64]


def flags(material: Material, subjects: Sequence[Subject], header: Header) -> Flags:
    """The most suspicious votes of all controls together, and those that were checked."""
    checked = standing(material.given, material.checks)
    verdict = {int(material.current[row]): check.verdict for row, check in checked.items()}  # by row of the history
    found: list[Flag] = []
    uses: set[str] = set()
    for subject in subjects:
        judged = _judge(material, subject)
        uses |= _uses(subject, judged)
        found += _of(material, subject, judged, verdict)
    found.sort(key=lambda flag: (-flag.score, flag.task, flag.annotator, flag.control))
    kept = [flag for flag in found if flag.checked] + [flag for flag in found if not flag.checked][:LISTED]
    kept.sort(key=lambda flag: (bool(flag.checked), -flag.score))
    return Flags(
        header=header, rows=tuple(kept[:LISTED]), votes=sum(len(subject.votes) for subject in subjects),
        checked=len(checked), uses=tuple(kind.value for kind in ReasonKind if kind.value in uses),
    )


def _judge(material: Material, subject: Subject) -> Slips:
    answers = subject.answers
    seconds = material.history.lead_time_s[subject.row][subject.vote]
    shape = (len(subject.votes.units), len(answers.annotators))
    z = pace(subject.votes.unit[subject.vote], answers.annotator, seconds, shape)
    return slips(
        answers, own=subject.own, others=subject.judged.predicted, near_duplicates=_near_duplicates(material, subject),
        pace=z if np.isfinite(z).any() else None,
    )


def _near_duplicates(material: Material, subject: Subject) -> Codes | None:
    """(P, 2) pairs of questions about nearly equal units, as far as both have votes here."""
    evidence = material.evidence
    if evidence is None or not len(evidence.near_duplicates):
        return None
    place = {name: at for at, name in enumerate(subject.votes.units)}
    here = np.array([place.get(name, -1) for name in evidence.units], np.int64)[evidence.near_duplicates]
    here = here[(here >= 0).all(axis=1)]
    if not subject.multiple:
        return here
    c = len(subject.space.classes)
    return np.asarray((here[:, None, :] * c + np.arange(c)[None, :, None]).reshape(-1, 2), np.int64)


def _uses(subject: Subject, judged: Slips) -> set[str]:
    there = {
        ReasonKind.OWN_MODEL: subject.own is not None, ReasonKind.OTHERS: subject.judged.predicted is not None,
        ReasonKind.CONTRADICTION: bool((judged.duplicate >= 0).any()), ReasonKind.SPEED: bool(judged.haste.any()),
    }
    return {kind.value for kind, is_there in there.items() if is_there}


def _of(material: Material, subject: Subject, judged: Slips, verdict: dict[int, str]) -> list[Flag]:
    """Flags of one control: of a vote's questions the most suspicious one speaks for it."""
    order = np.lexsort((judged.score, subject.vote))
    speaks = order[np.flatnonzero(np.append(np.diff(subject.vote[order]), 1))]
    history_row = subject.row[subject.vote[speaks]]
    looked = np.isin(history_row, list(verdict))
    speaks = speaks[_suspicious(subject, judged, speaks) | looked]
    speaks = speaks[np.argsort(-judged.score[speaks], kind="stable")][: 4 * LISTED]
    return [_flag(material, subject, judged, int(at), verdict) for at in speaks]


def _suspicious(subject: Subject, judged: Slips, rows: Codes) -> NDArray[np.bool_]:
    """Which votes are worth a look: all that are slips by their cause, and of the others those against whose label
    something speaks: speed alone says nothing of a label. Of those that a habit of their giver explains it must be
    something else than what the others say. Of somebody with few votes nothing is usual yet."""
    code, loud = subject.causes.vote[rows], judged.score[rows] > WORTH_A_LOOK
    votes = np.bincount(subject.answers.annotator, minlength=len(subject.answers.annotators))
    known = votes[subject.answers.annotator[rows]] >= FEWEST_TASKS
    own = np.maximum(judged.own[rows], judged.contradiction[rows]) >= _SPEAKS
    speaks = own | ((code != _HABIT) & (judged.others[rows] >= _SPEAKS))
    return np.asarray((code == _SLIP) | (loud & known & speaks))


def _flag(material: Material, subject: Subject, judged: Slips, at: int, verdict: dict[int, str]) -> Flag:
    votes, row = subject.votes, int(subject.vote[at])
    annotator = votes.annotators[votes.annotator[row]]
    value = votes.values[votes.value[row]]
    cause = CAUSES[subject.causes.vote[at]]
    code = int(subject.causes.instead[at]) if cause is Cause.SLIP else int(judged.expected[at])
    expected = None
    if code != int(subject.answers.label[at]):
        expected = subject.said(int(subject.answers.unit[at]), code)
    twin = None
    if judged.duplicate[at] >= 0 and judged.contradiction[at] > 0:
        other = int(subject.unit_of(subject.answers.unit[judged.duplicate[at] : judged.duplicate[at] + 1])[0])
        twin = int(material.task[other])
    given = label_text(value)
    return Flag(
        task=int(material.task[votes.unit[row]]), unit=votes.units[votes.unit[row]], annotator=annotator,
        name=material.name(annotator), control=subject.name, given=given, value=value.to_json(), expected=expected,
        score=float(judged.score[at]), twin=twin, checked=verdict.get(int(subject.row[row]), ""),
        reasons=_reasons(judged, at, (code == judged.expected[at] and expected) or "another label", twin, cause),
        cause=cause.value,
    )


def _reasons(judged: Slips, at: int, expected: str, twin: int | None, cause: Cause) -> tuple[Reason, ...]:
    """What speaks against a vote; `expected` is the label that its strengths prefer. What adds nothing is not said."""
    told = (
        (ReasonKind.OWN_MODEL, judged.own[at], f"From this annotator's other votes, {expected} was to be expected."),
        (ReasonKind.OTHERS, judged.others[at],
         f"As the others voted here, {expected} is likelier from this annotator than what they gave."),
        (ReasonKind.CONTRADICTION, judged.contradiction[at],
         f"They said something else of task {twin}, which is nearly the same." if twin is not None else ""),
        (ReasonKind.SPEED, judged.haste[at], "It was given far quicker than they usually are."),
    )  # fmt: skip
    bar = min(_SPEAKS, max(strength for _, strength, _ in told)) if cause is Cause.SLIP else _SPEAKS
    reasons = [
        Reason(kind=kind, strength=float(strength), sentence=sentence)
        for kind, strength, sentence in told if sentence and strength >= bar and strength > 0.0
        and (cause is not Cause.HABIT or kind is not ReasonKind.OTHERS)  # it is what they usually say there
    ]
    return tuple(sorted(reasons, key=lambda reason: -reason.strength))
