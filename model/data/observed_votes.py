"""Votes that units already have, as arrays over a panel: they condition what is served and count in the consensus.

Shape legend: B units, P known annotators, E givers whom the ladder does not know, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Space
from model.data.votes import Provenance, Votes


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedVotes:
    """One control's votes on B units; columns P.. belong to unknown givers."""

    y: NDArray[np.float32]  # (B, P + E, C)
    has: NDArray[np.bool_]  # (B, P + E)
    weight: NDArray[np.float32]  # (B, P + E) how much a vote says about the others; an accepted suggestion says less
    strangers: tuple[str, ...] = ()  # (E,) the unknown givers


def no_votes(units: int, people: int, classes: int, strangers: tuple[str, ...] = ()) -> ObservedVotes:
    return ObservedVotes(
        y=np.zeros((units, people, classes), np.float32), has=np.zeros((units, people), np.bool_),
        weight=np.ones((units, people), np.float32), strangers=strangers,
    )


def observed_votes(
    votes: Votes, control: str, space: Space, units: Sequence[str], annotators: Mapping[str, int],
    accepted_weight: float = 1.0,
) -> ObservedVotes:
    """Votes of one control on the units; values outside the space are left out, of repeats the latest counts."""
    mine = votes.of_control(control)
    unit_row = {name: row for row, name in enumerate(units)}
    unit_at = np.array([unit_row.get(name, -1) for name in mine.units], dtype=np.int64)
    inside = np.array([space.contains(value) for value in mine.values], dtype=np.bool_)
    rows = np.flatnonzero((unit_at[mine.unit] >= 0) & inside[mine.value]) if len(mine) else np.empty(0, np.int64)
    rows = rows[np.argsort(mine.time[rows], kind="stable")]
    strangers = sorted({mine.annotators[a] for a in np.unique(mine.annotator[rows])} - annotators.keys())
    column = {**annotators, **{name: len(annotators) + index for index, name in enumerate(strangers)}}
    column_at = np.array([column.get(name, -1) for name in mine.annotators], dtype=np.int64)
    encoded = np.zeros((len(mine.values), len(space.classes)), np.float32)
    for index in np.flatnonzero(inside):  # distinct values, not votes
        encoded[index] = space.encode(mine.values[index])
    found = no_votes(len(units), len(column), len(space.classes), tuple(strangers))
    at = (unit_at[mine.unit[rows]], column_at[mine.annotator[rows]])
    found.y[at] = encoded[mine.value[rows]]  # of equal positions the last one stays
    found.has[at] = True
    found.weight[at] = np.where(mine.provenance[rows] == Provenance.ACCEPTED, accepted_weight, 1.0)
    return found
