"""Leaving the worst annotators out, by a stated rule, and what that does to the labels.

Shape legend: A annotators, U units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator
from model.errors import ModelError
from model.quality.agreement import krippendorff_alpha

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRule:
    """Drop annotators whose score is below `below`, or the worst `share` of them; never without enough votes."""

    below: float | None = None
    share: float | None = None  # of the annotators that have a score
    min_votes: int = 10  # annotators with fewer are kept: their score says little

    def __post_init__(self) -> None:
        if (self.below is None) == (self.share is None):
            raise ModelError("a prune rule needs either `below` or `share`")
        if self.share is not None and not 0.0 <= self.share < 1.0:
            raise ModelError("`share` must be at least 0 and less than 1")

    def __str__(self) -> str:
        what = f"score below {self.below:g}" if self.below is not None else f"the worst {self.share:.0%} by score"
        return f"{what}, with at least {self.min_votes} votes"

    def drops(self, scores: Floats, votes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(A,) who goes; `scores` (A,) higher is better, NaN is kept."""
        judged = np.isfinite(scores) & (votes >= self.min_votes)
        if self.below is not None:
            return judged & (np.nan_to_num(scores, nan=np.inf) < self.below)
        order = np.argsort(np.where(judged, scores, np.inf), kind="stable")
        gone = np.zeros(len(scores), dtype=np.bool_)
        gone[order[: int(np.floor((self.share or 0.0) * judged.sum() + 1e-9))]] = True
        return gone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pruned:
    """Before and after."""

    rule: str
    dropped: tuple[str, ...]  # annotators
    dropped_votes: int
    kept: AnswerMatrix
    before: Aggregate
    after: Aggregate
    changed: NDArray[np.bool_]  # (U,) labelled before and after, but differently
    lost: NDArray[np.bool_]  # (U,) labelled before, not after
    alpha_before: float
    alpha_after: float


def prune(
    answers: AnswerMatrix, scores: Floats, rule: PruneRule, method: Aggregator, *,
    votes: NDArray[np.integer] | None = None,
) -> Pruned:
    """Apply `rule` to `scores` (A,) and aggregate with and without the annotators that it drops.

    `votes` (A,) are those behind the scores, where these are not all of them.
    """
    if votes is None:
        votes = np.bincount(answers.annotator, minlength=len(answers.annotators))
    gone = rule.drops(scores, votes)
    kept = answers.select(~gone[answers.annotator])
    before, after = method.fit(answers), method.fit(kept)
    both = (before.label >= 0) & (after.label >= 0)
    return Pruned(
        rule=str(rule), dropped=tuple(name for name, out in zip(answers.annotators, gone, strict=True) if out),
        dropped_votes=len(answers) - len(kept), kept=kept, before=before, after=after,
        changed=both & (before.label != after.label), lost=(before.label >= 0) & (after.label < 0),
        alpha_before=krippendorff_alpha(answers), alpha_after=krippendorff_alpha(kept),
    )
