"""The overview of a project: coverage, agreement, consensus, how well the published version does, what was tried.

Shape legend: V votes of a control, U units, A annotators, C classes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.labeling.outside import kept_aside, look_alike_choices
from backend.records import Verdict, Version
from backend.services.statistics.documents import (
    MOST_COUNTED,
    Agreement,
    Answered,
    Calibration,
    CalibrationBin,
    ClassAgreement,
    ConsensusFigures,
    ControlNote,
    ControlOverview,
    Coverage,
    Figure,
    Header,
    LadderFigures,
    ModelScore,
    Overview,
    TrainingRun,
    UnmodelledControl,
)
from backend.services.statistics.material import Material, draws
from backend.services.statistics.subject import Subject, left_out
from model.data.metrics import correct, log_losses
from model.data.numbers import NumberBins
from model.data.spaces import Space, Value, ValueKind
from model.ensemble.hidden import DENSE, HiddenCheck
from model.quality.agreement import class_agreement, class_alpha, gwet_ac1, why_no_alpha
from model.quality.intervals import Interval, alpha_interval, percent_interval, wilson_interval
from model.quality.questions import encoded, level_of, set_agreement
from model.quality.reliability import reliability, weighted_gap

Floats = NDArray[np.float64]
DRAWS = 200  # of the bootstrap; the interval's own error is then a tenth of its width
_BINS = 10


def overview(material: Material, subjects: Sequence[Subject], header: Header, tasks: int) -> Overview:
    """`tasks` are those present in Label Studio."""
    config, aside = material.config, _kept_aside(material)
    return Overview(
        header=header, coverage=coverage(material, tasks),
        controls=tuple(_control(material, subject) for subject in subjects),
        unmodelled=tuple(
            UnmodelledControl(name=each.name, tag=each.tag, reason=each.reason)
            for each in (config.unmodelled if config is not None else ())
        ) + aside[0],
        notes=aside[1],
        training=tuple(_run(version) for version in material.tried),
        outside=len(material.given) - sum(len(subject.votes) for subject in subjects),
        control_arm_percent=material.settings.control_arm_percent, shadow_mode=material.settings.shadow_mode,
        problem=_problem(material, subjects),
    )


def _kept_aside(material: Material) -> tuple[tuple[UnmodelledControl, ...], tuple[ControlNote, ...]]:
    """Sentences on votes that are kept and not learned from, or learned apart: of controls without figures, and of
    learned ones."""
    config = material.config
    if config is None:
        return (), ()
    found = kept_aside(config, material.spaces, material.given)
    tags = {control.name: control.tag for control in config.controls}
    learned = {control.name for control in config.controls if control.learner}
    unmodelled = {each.name for each in config.unmodelled}
    said = [(name, sentence) for name, sentences in found.items() if name not in unmodelled for sentence in sentences]
    said += look_alike_choices(config)
    without = [*((name, sentence) for name, sentence in said if name not in learned), *left_out(material)]
    return tuple(UnmodelledControl(name=name, tag=tags.get(name, ""), reason=sentence) for name, sentence in without), \
        tuple(ControlNote(name=name, tag=tags[name], note=sentence) for name, sentence in said if name in learned)


def coverage(material: Material, tasks: int) -> Coverage:
    """The annotation matrix. Of the gaps those are predicted whose annotators the published version knows."""
    votes, people = material.given, len(material.given.annotators)
    task, annotator = material.pairs
    per_task = np.diff(np.flatnonzero(np.diff(task, prepend=-1, append=-1)))
    voted, tasks = len(per_task), max(tasks, len(per_task))
    counted = np.bincount(np.minimum(per_task, MOST_COUNTED), minlength=1)
    counted[0] = tasks - voted
    known = set() if material.evidence is None else set(material.evidence.annotators)
    gaps = tasks - np.bincount(annotator, minlength=people)  # (A,)
    predicted = sum(int(n) for name, n in zip(votes.annotators, gaps, strict=True) if name in known)
    return Coverage(
        tasks=tasks, annotators=people, given=len(task), predicted=predicted, missing=int(gaps.sum()) - predicted,
        votes_per_task=tuple(counted.tolist()),
    )


def figure(interval: Interval) -> Figure:
    """An interval as it is written down."""
    return Figure(value=number(interval.value), low=number(interval.low), high=number(interval.high))


def number(value: float | np.floating[Any] | None) -> float | None:
    """None for what is unknown."""
    return None if value is None or not math.isfinite(value) else float(value)


def numbers(column: NDArray[np.float64]) -> tuple[float | None, ...]:
    """The same for a column."""
    return tuple(each if math.isfinite(each) else None for each in column.tolist())


def _control(material: Material, subject: Subject) -> ControlOverview:
    votes = subject.votes
    return ControlOverview(
        name=subject.name, kind=subject.space.kind.value, classes=subject.space.classes, votes=len(votes),
        annotators=len(np.unique(votes.annotator)), agreement=_agreement(subject),
        consensus=_consensus(subject),
        ladder=_ladder(material, subject), calibration=_calibration(subject.check),
    )


def _agreement(subject: Subject) -> Agreement:
    answers = subject.answers
    both = int((np.diff(answers.indptr) > 1).sum())
    y, votes = encoded(subject.votes, subject.space), subject.votes  # (V, C)
    given = y.sum(axis=0)
    whole = len(y) if subject.multiple else given.sum()
    if subject.multiple:
        same, each_alpha = set_agreement(votes, subject.space)
    else:
        same, each_alpha = class_agreement(answers), class_alpha(answers)
    classes = tuple(
        ClassAgreement(
            name=name, votes=int(given[k]), share=number(given[k] / whole) if whole else None,
            agreement=number(same[k]), alpha=number(each_alpha[k]),
            alpha_missing=why_no_alpha(int(given[k]), float(each_alpha[k])),
        )
        for k, name in enumerate(subject.space.classes)
    )
    level, values = level_of(subject.space)
    alpha = alpha_interval(answers, level, values=values, draws=DRAWS)
    return Agreement(
        percent=figure(percent_interval(answers, draws=DRAWS)), alpha=figure(alpha),
        gwet_ac1=number(gwet_ac1(answers)) if both else None,
        tasks=both // len(subject.space.classes) if subject.multiple else both, classes=classes, level=level,
    )


def _calibration(check: HiddenCheck | None) -> Calibration | None:
    if check is None or not len(check.p):
        return None
    bins = reliability(check.stated, check.right)
    return Calibration(
        tasks=len(check.p), gap=number(weighted_gap(bins)), votes=DENSE,
        bins=tuple(CalibrationBin(low=each.low, high=each.high, tasks=each.labels, stated=each.stated,
                                  right=figure(each.right)) for each in bins),
    )


def _consensus(subject: Subject) -> ConsensusFigures:
    labels = subject.labels
    there = np.array([label is not None for label in labels.label], np.bool_)
    sure = labels.confidence[there]
    times = dict.fromkeys(subject.space.classes, 0)
    for label, units in Counter(labels.label).items():
        for name in _names(subject.space, label or ""):
            if name in times:
                times[name] += units
    return ConsensusFigures(
        method=subject.said_by, tasks=int(there.sum()),
        mean_confidence=number(sure.mean()) if len(sure) else None,
        histogram=tuple(np.histogram(sure, bins=_BINS, range=(0.0, 1.0))[0].tolist()),
        classes=tuple(times.items()), converged=labels.converged,
    )


def _names(space: Space, label: str) -> Sequence[str]:
    """The classes that a label names: those of a set, the bin of a number."""
    if isinstance(space, NumberBins) and label:
        return [space.classes[int(space.encode(Value.of_number(float(label))).argmax())]]
    return label.split(", ") if space.kind is ValueKind.CLASSES else [label]


def _ladder(material: Material, subject: Subject) -> LadderFigures | None:
    version = material.published
    about = None if version is None else version.figures.get("controls", {}).get(subject.name)
    if version is None or not isinstance(about, Mapping):
        return None
    weights = about.get("weights")
    weights = weights if isinstance(weights, Mapping) else {}
    history, row = material.history, subject.row
    unseen = ~history.shown[row]
    return LadderFigures(
        version=version.name, heldout=_ways(about.get("heldout"), weights),
        cross_validation=_ways(about.get("cross_validation"), weights),
        control_arm=_answered(subject, history.control_arm[row]), had_i_answered=_answered(subject, unseen),
    )


def _ways(about: Any, weights: Mapping[str, Any]) -> tuple[ModelScore, ...]:
    """Served first, then the base models by how much they count."""
    if not isinstance(about, Mapping):
        return ()
    ways = [
        ModelScore(
            name=str(name), votes=int(each["votes"]), accuracy=number(each.get("accuracy")),
            accuracy_annotator_mean=number(each.get("accuracy_annotator_mean")),
            log_loss=number(each.get("log_loss")), calibration_error=number(each.get("ece")),
            weight=number(weights.get(name)),
        )
        for name, each in about.items() if isinstance(each, Mapping) and each.get("votes")
    ]
    return tuple(sorted(ways, key=lambda way: (way.name != "served", -(way.weight or 0.0))))


def _answered(subject: Subject, rows: NDArray[np.bool_]) -> Answered | None:
    """The out-of-sample prediction against these votes (V,); None where it speaks of none of them."""
    known = rows & np.isfinite(subject.served).all(axis=1)
    if not known.any():
        return None
    y, p = encoded(subject.votes, subject.space)[known], subject.served[known]
    right = correct(subject.space, p, y)
    return Answered(
        votes=int(known.sum()), accuracy=figure(wilson_interval(float(right.sum()), float(len(right)))),
        log_loss=number(log_losses(subject.space, p, y).mean()),
    )


def _run(version: Version) -> TrainingRun:
    controls = version.figures.get("controls")
    losses = [
        each["heldout"]["served"]["log_loss"] for each in (controls.values() if isinstance(controls, Mapping) else ())
        if isinstance(each, Mapping) and "log_loss" in (each.get("heldout") or {}).get("served", {})
    ]
    votes = version.figures.get("votes")
    return TrainingRun(
        version=version.name, at=version.created_at, published=version.verdict is Verdict.PUBLISHED,
        reason=version.reason, votes=votes if isinstance(votes, int) else None,
        seconds=number(version.figures.get("seconds")), log_loss=number(np.mean(losses)) if losses else None,
    )


def _problem(material: Material, subjects: Sequence[Subject]) -> str:
    if material.config is None:
        return "The labeling configuration cannot be read, so nothing can be said of its votes."
    if not len(material.given):
        if draws(material.config):
            return "There are no votes to compute from; regions that annotators drew are compared below."
        return "Nobody has labelled a task yet."
    if not subjects:
        return "None of the votes is for a control that Polyvox models; the list below says why."
    return ""
