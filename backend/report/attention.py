"""What deserves a look at each annotator, in words, and the order in which an owner looks.

First what a test found (a fault, with evidence), then agreement that is lower than most annotators' beyond chance,
then a change over time, then who cannot be judged yet because too few others labelled their tasks, then all others;
within each, lowest agreement first. Of somebody below the bar for faults (20 common tasks, two others) nothing is said,
and the limits allow for the number of annotators. This is an order of reading and no verdict: somebody who reads tasks
differently agrees less as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from backend.report import people_sentences
from backend.report.columns import Judged
from backend.report.words import percent
from model.quality.grounds import FEWEST_TASKS
from model.quality.intervals import wilson_interval

FAULT, LOW, CHANGED, UNKNOWN, NOTHING = range(5)
FOR_SURE = 0.05  # probability that anybody of a project is called low, or changed, by chance alone
FEWEST = 3  # annotators with a figure, below which there is no "most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """An annotator with what deserves a look."""

    item: Judged
    level: int
    words: str  # "" where nothing does


def by_concern(rows: Sequence[Judged]) -> list[Looked]:
    """All annotators, whoever deserves a look first."""
    known = [each.figures.accuracy.value for each in rows
             if each.figures is not None and each.figures.accuracy.value is not None]
    usual = median(known) if len(known) >= FEWEST else None
    found = [_looked(each, usual, len(known)) for each in rows]
    return sorted(found, key=lambda each: (each.level, _agreement(each.item)))


def first_looks(rows: Sequence[Judged]) -> list[Looked]:
    """Those of whom something is known that deserves a look."""
    return [each for each in by_concern(rows) if each.level < UNKNOWN]


def _looked(item: Judged, usual: float | None, people: int) -> Looked:
    figures = item.figures
    if figures is None:
        return Looked(item=item, level=NOTHING, words="")
    if figures.fault:
        return Looked(item=item, level=FAULT, words=people_sentences.WORDS.get(figures.fault, figures.fault))
    value = figures.accuracy.value
    if value is None:
        return Looked(item=item, level=UNKNOWN, words="no task in common with others yet")
    if people_sentences.missing(figures):
        words = f"{figures.common_tasks} of {FEWEST_TASKS} common tasks yet" \
            if figures.common_tasks < FEWEST_TASKS else "too few others on their tasks yet"
        return Looked(item=item, level=UNKNOWN, words=words)
    habits = people_sentences.habits(figures)[:1]  # says more than how far somebody agrees
    z = NormalDist().inv_cdf(1.0 - FOR_SURE / max(people, 1))
    most = wilson_interval(value * figures.common_tasks, figures.common_tasks, z).high
    if usual is not None and most < usual:
        words = f"agrees less than most, whose median is {percent(usual)}"
        return Looked(item=item, level=LOW, words=habits[0] if habits else words)
    if figures.drift_p is not None and figures.drift_p < FOR_SURE / max(people, 1):
        return Looked(item=item, level=CHANGED, words=f"agreement changed from {percent(figures.drift_before)} to "
                      f"{percent(figures.drift_after)}")
    return Looked(item=item, level=NOTHING, words=habits[0] if habits else "")


def _agreement(item: Judged) -> float:
    value = item.figures.accuracy.value if item.figures is not None else None
    return 2.0 if value is None else value
