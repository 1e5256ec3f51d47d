"""Votes that are kept and not learned from, in sentences: why, and of which control.

An answer stays in the store whatever becomes of the labeling configuration. These are for the person who changed it:
another type of control, numbers out of range, classes or paths that are gone, rankings that cannot be compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from backend.labeling.config import LabelConfig
from backend.labeling.controls import Control
from backend.labeling.controls.choices import Choices
from backend.labeling.controls.number import Number
from backend.labeling.controls.per_region import PerRegion
from backend.labeling.controls.taxonomy import Taxonomy
from backend.labeling.written import look_alikes, spelled
from model.crowd.answers import AnswerMatrix
from model.crowd.rankings import ranking_agreement
from model.data.spaces import Space, Value, ValueKind
from model.data.votes import Votes
from model.learners.registry import CLASSES, RANKINGS
from model.quality.agreement import krippendorff_alpha

_NOUNS = {
    ValueKind.CLASS: "one class", ValueKind.CLASSES: "a set of classes", ValueKind.NUMBER: "a number",
    ValueKind.RANKING: "a ranking", ValueKind.PATHS: "paths", ValueKind.TEXT: "a text",
}

_CHOSEN = (ValueKind.CLASS, ValueKind.CLASSES)


def kept_aside(config: LabelConfig, spaces: Mapping[str, Space], votes: Votes) -> dict[str, list[str]]:
    """Control -> sentences on its votes that no space contains; the controls in the order of `votes`."""
    found: dict[str, list[str]] = {}
    for name in votes.controls:
        mine, control = votes.of_control(name), config.control(name)
        given = np.bincount(mine.value, minlength=len(votes.values))
        if control is not None and (control.learner != CLASSES or isinstance(control, PerRegion)):
            compared = _on_regions if isinstance(control, PerRegion) else _ranked
            said = [compared(control, mine)] if len(mine) else []
        else:
            said = _said(name, control, spaces.get(name), {
                value: int(n) for value, n in zip(votes.values, given, strict=True) if n})
        if said:
            found[name] = said
    return found


def look_alike_choices(config: LabelConfig) -> list[tuple[str, str]]:
    """(control, sentence) for the controls of a configuration that offer choices which look alike."""
    found = []
    for control in config.controls:
        inner = control.inner if isinstance(control, PerRegion) else control
        names = inner.table.classes if isinstance(inner, Choices) else tuple(
            inner.paths) if isinstance(inner, Taxonomy) else ()
        for group in look_alikes(names):
            told = " and ".join(spelled(name) for name in group)
            found.append((control.name, f"{control.tag} '{control.name}' offers choices that look alike: {told}. They "
                          "are counted apart; give them different names, or keep one."))
    return found


def _said(name: str, control: Control | None, space: Space | None, given: Mapping[Value, int]) -> list[str]:
    why: Counter[str] = Counter()
    for value, times in given.items():
        if space is None or not space.contains(value):
            why[_why(control, space, value)] += times
    return [f"{_count(times)} with '{name}' {'is' if times == 1 else 'are'} kept and not learned from: {reason}."
            for reason, times in why.items()]


def _why(control: Control | None, space: Space | None, value: Value) -> str:
    if control is None:
        return "the labeling configuration has no control of this name that is learned"
    if isinstance(control, Number) and value.kind is ValueKind.NUMBER:
        limits = (("from", control.least), ("to", control.most))
        ends = [f"{word} {end:g}" for word, end in limits if math.isfinite(end)]
        return f"the control takes numbers {' '.join(ends)}, and these are out of range"
    several = space is not None and space.kind is ValueKind.CLASSES
    if isinstance(control, Number) or value.kind not in _CHOSEN or (several and value.kind is ValueKind.CLASS):
        return f"each is {_NOUNS[value.kind]}, given when the control asked for something else than now"
    if isinstance(control, Taxonomy):
        return "they name a path that is not in the tree, or several where one is asked for"
    return "they name a class that the control does not offer any more, or more classes than it takes"


def _on_regions(control: Control, votes: Votes) -> str:
    """What is known of answers on regions."""
    used, label = np.unique(votes.value, return_inverse=True)
    answers = AnswerMatrix.from_codes(
        units=votes.units, annotators=votes.annotators, classes=[str(code) for code in used.tolist()], unit=votes.unit,
        annotator=votes.annotator, label=label.astype(np.int32),
    )
    alike = int((np.bincount(votes.unit) > 1).sum())
    told = (f"; on regions that two or more judged ({alike}) Krippendorff's alpha is {krippendorff_alpha(answers):.2f}"
            if alike else "; no region has two of them yet")
    return f"{_count(len(votes))} on regions with '{control.name}' are kept, learned, and predicted for regions{told}."


def _ranked(control: Control, votes: Votes) -> str:
    """What is known of rankings."""
    found = ranking_agreement(votes)
    told = (f"; rankings agree by a mean Kendall's tau of {found.tau:.2f} on tasks with two or more ({found.units})"
            if found.units else "")
    doubled = f"; {found.doubled} that name an item twice cannot be compared" if found.doubled else ""
    lacking = f"; {found.incomplete} of other items than most ranked cannot be compared" if found.incomplete else ""
    foreseen = (", and not predicted yet: they have buckets" if control.learner != RANKINGS else
                ", and learned by Plackett-Luce scores, not by the network")
    return f"{_count(len(votes))} with '{control.name}' are kept{foreseen}{told}{doubled}{lacking}."


def _count(times: int) -> str:
    return "1 vote" if times == 1 else f"{times} votes"
