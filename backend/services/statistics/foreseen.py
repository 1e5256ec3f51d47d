"""How far the model has learned each annotator: learning, learned, or cannot foresee yet.

Judged on predictions of votes by models that had not seen them (held-out tasks, and cross-validation), against what is
known without a model: always saying the annotator's commonest label (accuracy), and their label frequencies (log-loss).

    learned             `FEWEST` votes, and the interval of one of the two gains lies above 0, of neither below;
                        or one label is `ONE_LABEL` of the votes, and the model is not shown to be right less often
    cannot foresee yet  at least `ENOUGH` votes, and not learned
    learning            everything else

The gain in log-loss is the mean over votes, paired; both intervals are clustered by task. It is the model that cannot
foresee somebody: people whose labels do not follow from what a task shows may have the best of reasons.

Shape legend: V votes of a control, n votes of one annotator, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from backend.records import Verdict, Version
from backend.services.statistics.documents import Figure
from backend.services.statistics.documents.foreseen import Foreseen, Learned, VersionPoint
from backend.services.statistics.subject import Subject, label_text
from model.data.metrics import Interval, correct, log_losses, paired_interval
from model.data.splits import task_of
from model.quality.intervals import wilson_interval
from model.quality.questions import encoded

Floats = NDArray[np.float64]
FEWEST, ENOUGH = 20, 60  # votes
ONE_LABEL = 0.9  # share of somebody's commonest label that leaves a model little to add


def foreseen(subject: Subject) -> list[Foreseen]:
    """Of each annotator of the control."""
    people = len(subject.votes.annotators)
    known = np.asarray(np.isfinite(subject.served).all(axis=1) & np.isfinite(subject.prior).all(axis=1))
    rows = np.flatnonzero(known)
    y = encoded(subject.votes, subject.space)
    right = np.zeros(len(subject.votes))
    gain = np.zeros(len(subject.votes))
    if len(rows):
        right[rows] = correct(subject.space, subject.served[rows], y[rows])
        gain[rows] = (log_losses(subject.space, subject.prior[rows], y[rows])
                      - log_losses(subject.space, subject.served[rows], y[rows]))
    task = np.unique([task_of(unit) for unit in subject.votes.units], return_inverse=True)[1][subject.votes.unit]
    rows = rows[np.argsort(subject.votes.annotator[rows], kind="stable")]
    ends = np.searchsorted(subject.votes.annotator[rows], np.arange(people + 1))
    return [_one(subject, rows[ends[at] : ends[at + 1]], right, gain, task) for at in range(people)]


def _one(
    subject: Subject, rows: NDArray[np.intp], right: Floats, gain: Floats, task: NDArray[np.intp]
) -> Foreseen:
    n = len(rows)
    if n < FEWEST:
        return Foreseen(badge=Learned.LEARNING, votes=n, needed=FEWEST, sentence=_learning(n))
    values, count = np.unique(subject.votes.value[rows], return_counts=True)
    commonest = values[count.argmax()]
    always = (subject.votes.value[rows] == commonest).astype(np.float64)
    accuracy = wilson_interval(float(right[rows].sum()), float(n))
    more, better = (paired_interval(each, task[rows]) for each in (right[rows] - always, gain[rows]))
    gained = (more.low > 0.0 or better.low > 0.0) and more.high >= 0.0 and better.high >= 0.0
    learned = gained or (always.mean() >= ONE_LABEL and more.high >= 0.0)
    found = Foreseen(
        badge=Learned.LEARNED if learned else Learned.NOT_YET if n >= ENOUGH else Learned.LEARNING,
        votes=n, needed=ENOUGH, accuracy=Figure(value=accuracy.value, low=accuracy.low, high=accuracy.high),
        usual=label_text(subject.votes.values[commonest]), usual_accuracy=float(always.mean()),
        gain=_figure(more), loss_gain=_figure(better),
    )
    return replace(found, sentence=_sentence(found, more, gained=gained))


def _learning(votes: int) -> str:
    if not votes:
        return ("Still learning: each vote counts at once for what is predicted next, and how well that works is known "
                f"when {FEWEST} of them were predicted by a version that had not seen them.")
    were = "1 vote so far was" if votes == 1 else f"{votes} votes so far were"
    return (f"Still learning: {were} predicted by a version that had not seen {'it' if votes == 1 else 'them'}; "
            f"from {FEWEST} on there is something to say.")


def _sentence(found: Foreseen, more: Interval, *, gained: bool) -> str:
    accuracy = found.accuracy
    share = (f"right in {_percent(accuracy.value)} [{_percent(accuracy.low, bare=True)}, "
             f"{_percent(accuracy.high, bare=True)}] of {found.votes} votes it had not seen; always saying "
             f"{found.usual} would be right in {_percent(found.usual_accuracy)}")
    if found.badge is Learned.LEARNED and not gained:
        return f"Learned: {share}, which leaves little to learn."
    if found.badge is Learned.LEARNED:
        finer = "" if more.low > 0.0 else ", though with probabilities that fit these votes worse"
        return f"Learned: {share}{finer}."
    if found.badge is Learned.LEARNING:
        return f"Still learning: {share}, which is too close to tell yet. It takes {found.needed} votes or more."
    return (f"The model cannot foresee these labels yet: {share}. That says nothing about their quality; what they "
            "follow may not be visible to the model.")


def by_version(
    control: str, tried: Sequence[Version]
) -> dict[str, tuple[VersionPoint, ...]]:
    """Annotator -> how versions (newest first) did on their held-out votes, oldest first."""
    found: dict[str, list[VersionPoint]] = {}
    for version in reversed(tried):
        about = version.figures.get("by_annotator")
        mine = about.get(control) if isinstance(about, Mapping) else None
        for annotator, figures in (mine.items() if isinstance(mine, Mapping) else ()):
            if len(figures) == 4:
                found.setdefault(annotator, []).append(VersionPoint(
                    version=version.name, at=version.created_at, published=version.verdict is Verdict.PUBLISHED,
                    votes=int(figures[0]), accuracy=float(figures[1]), log_loss=float(figures[2]),
                    habits_log_loss=float(figures[3])))
    return {annotator: tuple(points) for annotator, points in found.items()}


def _figure(interval: Interval) -> Figure:
    bounded = bool(np.isfinite(interval.low) and np.isfinite(interval.high))
    return Figure(value=interval.mean, low=interval.low if bounded else None, high=interval.high if bounded else None)


def _percent(value: float | None, *, bare: bool = False) -> str:
    return "?" if value is None else f"{100 * value:.0f}" + ("" if bare else " %")
