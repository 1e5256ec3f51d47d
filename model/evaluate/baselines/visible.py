"""Votes that units already have, as arrays over a fold's annotators: what gap baselines read.

Shape legend: B units, A annotators of the fold, E other givers, C classes, n visible votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Space
from model.data.votes import Votes
from model.evaluate.problem import encoded, places

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The visible votes on some units."""

    unit: NDArray[np.int64]  # (n,) row among the B units
    annotator: NDArray[np.int64]  # (n,) index into the fold's annotators; -1 for somebody else
    y: NDArray[np.float32]  # (n, C)

    def summed(self, evidence: Floats, units: int, annotators: int) -> Floats:
        """Evidence of each vote (n, K), summed over each unit's votes without the annotator's own: (B, A, K)."""
        total = np.zeros((units, evidence.shape[1]))
        np.add.at(total, self.unit, evidence)
        out = np.repeat(total[:, None], annotators, 1)
        own = self.annotator >= 0
        np.subtract.at(out, (self.unit[own], self.annotator[own]), evidence[own])
        return out


def visible_votes(votes: Votes | None, space: Space, units: Sequence[str], annotators: Sequence[str]) -> Visible:
    """The votes on the units asked for; all must lie in the space."""
    if votes is None or not len(votes):
        none = np.empty(0, np.int64)
        return Visible(unit=none, annotator=none, y=np.empty((0, len(space.classes)), np.float32))
    unit = places(votes.units, units)[votes.unit]
    here = np.flatnonzero(unit >= 0)
    return Visible(
        unit=unit[here], annotator=places(votes.annotators, annotators)[votes.annotator[here]],
        y=encoded(votes.select(here), space),
    )
