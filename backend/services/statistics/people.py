"""What is known of each annotator: the table of all, and a profile of each.

Shape legend: V votes of a control, N rows of its questions, U units, A annotators, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from backend.services.statistics.alike import Places
from backend.services.statistics.documents import (
    UNKNOWN,
    Accepted,
    AnnotatorFigures,
    AnnotatorRow,
    Annotators,
    ClassLeniency,
    ControlProfile,
    Figure,
    Header,
    Neighbour,
    Period,
    Predictability,
    Profile,
    VersionPoint,
)
from backend.services.statistics.foreseen import by_version, foreseen
from backend.services.statistics.judgement import judgement
from backend.services.statistics.material import Material
from backend.services.statistics.overview import number
from backend.services.statistics.subject import Subject
from model.data.metrics import correct, log_losses
from model.data.votes import Provenance
from model.quality.agreement import Pairwise, pairwise_agreement
from model.quality.annotators import Speed, spammer_score, speed
from model.quality.clusters import group_annotators
from model.quality.questions import encoded

PAIRS_OF = 400  # annotators; pairwise tables grow with the square
NEAREST = 8
PERIODS, FEWEST_A_PERIOD = 8, 10
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """A control's figures for all annotators at once, (A,) each."""

    subject: Subject
    figures: Sequence[AnnotatorFigures | None]
    pairs: Pairwise | None
    by_version: Mapping[str, tuple[VersionPoint, ...]]  # annotator -> how versions did on their held-out votes


def annotators(
    material: Material, subjects: Sequence[Subject], header: Header, places: Places
) -> tuple[Annotators, list[Profile]]:
    """The table of all annotators, most votes first, and the profile of each."""
    found = [_found(material, subject) for subject in subjects]
    rows = _rows(material, found, places.of)
    profiles = [
        Profile(header=header, row=row, controls={
            each.subject.name: _profile(material, each, at, figures)
            for each in found if (figures := each.figures[at]) is not None
        })
        for at, row in rows
    ]  # fmt: skip
    table = Annotators(header=header, rows=tuple(row for _, row in rows), map_explained=places.explained)
    return table, profiles


def _rows(
    material: Material, found: Sequence[Found], places: Mapping[str, tuple[float, float]]
) -> list[tuple[int, AnnotatorRow]]:
    given, history = material.given, material.history
    people = len(given.annotators)
    votes = np.bincount(given.annotator, minlength=people)
    tasks = np.bincount(material.pairs[1], minlength=people)
    last = np.zeros(people)
    np.maximum.at(last, given.annotator, given.time)
    pace = speed(given.unit, given.annotator, history.lead_time_s[material.current], people)
    accepted = _accepted(given.annotator, given.provenance, history.shown[material.current], people)
    rows = [
        (at, AnnotatorRow(
            annotator=name, name=material.name(name), votes=int(votes[at]), tasks=int(tasks[at]),
            last_vote=datetime.fromtimestamp(float(last[at]), UTC), **_pace(pace, at), accepted=accepted[at],
            position=places.get(name),
            controls={each.subject.name: mine for each in found if (mine := each.figures[at]) is not None},
        ))
        for at, name in enumerate(given.annotators)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row[1].votes, row[1].annotator))


def _pace(pace: Speed, at: int) -> dict[str, float | None]:
    return {
        "median_s": number(pace.median_s[at]), "relative_speed": number(pace.relative[at]),
        "hurried": number(pace.hurried[at]) if np.isfinite(pace.median_s[at]) else None,
    }


def _accepted(
    annotator: NDArray[np.integer], provenance: NDArray[np.integer], shown: NDArray[np.bool_], people: int
) -> list[Accepted]:
    seen = np.bincount(annotator[shown], minlength=people)
    taken = np.bincount(annotator[shown & (provenance == Provenance.ACCEPTED)], minlength=people)
    edited = np.bincount(annotator[shown & (provenance == Provenance.CHANGED)], minlength=people)
    return [
        Accepted(shown=int(s), accepted=int(t), changed=int(e), rate=float(t / s) if s else None)
        for s, t, e in zip(seen, taken, edited, strict=True)
    ]


def _found(material: Material, subject: Subject) -> Found:
    answers, judged, people = subject.answers, subject.judged, len(subject.votes.annotators)
    against, faults = judged.against, judged.faults
    votes = np.bincount(subject.votes.annotator, minlength=people)
    spam = spammer_score(faults.fitted.confusion) if faults.fitted.confusion is not None else np.full(people, np.nan)
    predictable, expected = _predictability(subject), foreseen(subject)
    pairs = pairwise_agreement(answers) if people <= PAIRS_OF else None
    agreement = _with_others(subject)
    groups = group_annotators(answers, pairs=pairs).member if 2 < people <= PAIRS_OF else None
    skill = None if judged.glad is None else judged.glad.skill
    figures: list[AnnotatorFigures | None] = []
    for at in range(people):
        if not votes[at]:
            figures.append(None)
            continue
        met = bool(faults.grounds.common[at])  # what is said of others' tasks says nothing of somebody who has none
        said, moved = judgement(faults, at), faults.drift
        figures.append(AnnotatorFigures(
            votes=int(votes[at]), agreement=number(agreement[at]),
            accuracy=Figure(value=number(against.accuracy[at]), low=number(against.low[at]),
                            high=number(against.high[at])) if np.isfinite(against.accuracy[at]) else UNKNOWN,
            kappa=number(against.kappa[at]), spammer_score=number(spam[at]) if met else None,
            ability=number(skill[at]) if skill is not None and met else None,
            self_consistency=number(subject.repeats.share[at]), repeats=int(subject.repeats.pairs[at]),
            drift_p=number(moved.p_value[at]) if moved is not None and said.drift_before is not None else None,
            fault_probability=None if said.false_alarm is None else 1.0 - said.false_alarm,
            group=int(groups[at]) if groups is not None and met else None, predictability=predictable[at],
            foreseen=expected[at] if material.published is not None else None,
            **{each.name: getattr(said, each.name) for each in fields(said)},
        ))  # fmt: skip
    return Found(subject=subject, figures=figures, pairs=pairs, by_version=by_version(subject.name, material.tried))


def _with_others(subject: Subject) -> Floats:
    """(A,) share of the others' votes on the same questions that are equal; NaN without others."""
    answers = subject.answers
    people, c = len(answers.annotators), len(answers.classes)
    totals = np.bincount(answers.unit.astype(np.int64) * c + answers.label, minlength=len(answers.units) * c)
    there = np.bincount(answers.unit, minlength=len(answers.units))[answers.unit] - 1
    equal = totals[answers.unit.astype(np.int64) * c + answers.label] - 1
    other = np.bincount(answers.annotator, there, minlength=people)
    same = np.bincount(answers.annotator, equal, minlength=people)
    return np.where(other > 0, same / np.where(other > 0, other, 1.0), np.nan)


def _predictability(subject: Subject) -> list[Predictability | None]:
    people = len(subject.votes.annotators)
    known = np.isfinite(subject.served).all(axis=1) & np.isfinite(subject.prior).all(axis=1)
    if not known.any():
        return [None] * people
    y, who = encoded(subject.votes, subject.space)[known], subject.votes.annotator[known]
    served, prior = subject.served[known], subject.prior[known]
    n = np.bincount(who, minlength=people)
    means = [
        np.bincount(who, column, minlength=people) / np.maximum(n, 1)
        for column in (
            correct(subject.space, served, y).astype(np.float64), log_losses(subject.space, served, y),
            log_losses(subject.space, prior, y),
        )
    ]
    return [
        Predictability(votes=int(n[at]), accuracy=float(means[0][at]), log_loss=float(means[1][at]),
                       prior_log_loss=float(means[2][at])) if n[at] else None
        for at in range(people)
    ]  # fmt: skip


def _profile(material: Material, found: Found, at: int, figures: AnnotatorFigures) -> ControlProfile:
    subject = found.subject
    table = subject.judged.against.table[at]
    return ControlProfile(
        figures=figures, classes=subject.answers.classes,
        confusion=tuple(tuple(float(cell) for cell in row) for row in table), leniency=_leniency(subject, table),
        nearest=_nearest(material, found, at), over_time=_over_time(subject, at),
        by_version=found.by_version.get(subject.votes.annotators[at], ()),
    )


def _leniency(subject: Subject, table: Floats) -> tuple[ClassLeniency, ...]:
    """From [what the others say][what they gave]."""
    total = table.sum()
    if total <= 0:
        return ()
    given, expected = table.sum(axis=0) / total, table.sum(axis=1) / total
    return tuple(
        ClassLeniency(name=name, given=float(given[k]), expected=float(expected[k]))
        for k, name in enumerate(subject.answers.classes)
    )


def _nearest(material: Material, found: Found, at: int) -> tuple[Neighbour, ...]:
    pairs, people = found.pairs, found.subject.votes.annotators
    if pairs is None:
        return ()
    others = [other for other in range(len(people)) if other != at and pairs.common[at, other] > 0]
    alike = np.nan_to_num(pairs.kappa[at]) * pairs.common[at] / (pairs.common[at] + 5.0)  # few common units say little
    return tuple(
        Neighbour(
            annotator=people[other], name=material.name(people[other]), common=int(pairs.common[at, other]),
            agreement=float(pairs.percent[at, other]), kappa=number(pairs.kappa[at, other]),
        )
        for other in sorted(others, key=lambda other: -alike[other])[:NEAREST]
    )


def _over_time(subject: Subject, at: int) -> tuple[Period, ...]:
    answers, judged = subject.answers, subject.judged
    rows = np.flatnonzero(answers.annotator == at)
    if answers.time is None or len(rows) < 2 * FEWEST_A_PERIOD:
        return ()
    rows = rows[np.argsort(answers.time[rows], kind="stable")]
    right = judged.faults.belief[rows, answers.label[rows]]
    own = subject.own
    met = None if own is None else np.where(
        np.isfinite(own[rows]).all(axis=1), own[rows].argmax(axis=1) == answers.label[rows], np.nan
    )
    parts = np.array_split(np.arange(len(rows)), min(PERIODS, len(rows) // FEWEST_A_PERIOD))
    return tuple(
        Period(
            start=datetime.fromtimestamp(float(answers.time[rows[part[0]]]), UTC),
            end=datetime.fromtimestamp(float(answers.time[rows[part[-1]]]), UTC), votes=len(part),
            accuracy=number(right[part].mean()),
            predicted=number(np.nanmean(met[part])) if met is not None and np.isfinite(met[part]).any() else None,
        )
        for part in parts
    )
