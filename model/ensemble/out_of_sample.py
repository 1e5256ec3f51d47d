"""Votes with the scores that each base model gave them without having seen their units: what stacks are fitted on.

A base model that reads votes scores them once for each view of what is visible on their units: all votes of others, as
where one annotator is missing, and a random share of them. These are the situations of use.

Shape legend: N votes of one control on training units, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import OutOfFold, Sample
from model.data.dataset import Targets

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """What the base models that read votes say of N votes when others on their units are visible, never the vote
    itself."""

    shown: NDArray[np.bool_]  # (N,) which votes are visible to others
    count: NDArray[np.int64]  # (N,) how many visible votes of others each has on its unit
    scores: dict[str, Floats]  # base model -> (N, C)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfSample:
    """Votes of one control with the scores of those that read no votes."""

    sample: Sample
    scores: dict[str, Floats]  # base model -> (N, C)
    visible: tuple[Visible, ...] = ()  # the same of those that do, with some of the votes on each unit visible

    @property
    def targets(self) -> Targets:
        return self.sample.targets

    @property
    def fold(self) -> NDArray[np.int64]:
        """(N,)"""
        return self.sample.fold_of_each

    def under(self, view: int) -> dict[str, Floats]:
        """Scores of all base models under one view."""
        return self.scores | self.visible[view].scores

    def with_scores(self, name: str, scores: Sequence[Floats]) -> OutOfSample:
        """With those of one more base model that reads votes, one for each view."""
        return replace(self, visible=tuple(
            replace(each, scores={**each.scores, name: mine})
            for each, mine in zip(self.visible, scores, strict=True)
        ))


def views_of(sample: Sample, units: int, seed: int) -> tuple[Flags, Flags]:
    """Which votes (N,) are visible to others: a random share of each unit's, then all. `units`: in all."""
    rng = np.random.default_rng([seed, 2])
    share = rng.random(units)
    some = rng.random(len(sample)) < share[sample.targets.unit]
    return some, np.ones(len(sample), np.bool_)


def out_of_sample(sample: Sample, views: Sequence[Flags], found: Mapping[str, OutOfFold]) -> OutOfSample:
    """The votes that can be scored, with what base models that do not start from a stack said of them."""
    made = OutOfSample(
        sample=sample,
        scores={name: each.scores[0] for name, each in found.items() if not each.model.reads_votes},
        visible=tuple(Visible(shown=view, count=_others_shown(sample, view), scores={}) for view in views),
    )
    for name, each in found.items():
        if each.model.reads_votes:
            made = made.with_scores(name, each.scores)
    return made


def _others_shown(sample: Sample, shown: Flags) -> NDArray[np.int64]:
    """How many visible votes of others each vote has on its unit, (N,)."""
    _, place = np.unique(sample.targets.unit, return_inverse=True)
    return np.asarray(np.bincount(place, weights=shown)[place] - shown).astype(np.int64)
