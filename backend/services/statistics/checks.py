"""What people said of flagged votes, as weights: a confirmed vote counts more, a slip next to nothing until changed.

A check belongs to the value that was looked at; a vote that changed since has its own weight again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from backend.records import Check
from backend.services.statistics.documents import Checked
from model.data.votes import Votes

WEIGHT: Mapping[str, float] = {Checked.FINE: 2.0, Checked.SLIP: 0.1}
Place = tuple[str, str, str, str]  # unit, annotator, control, value


def standing(votes: Votes, checks: Sequence[Check]) -> dict[int, Check]:
    """Row of `votes` -> the check of that vote, for votes that still have the value that was looked at."""
    if not checks or not len(votes):
        return {}
    looked = {(check.unit, check.annotator, check.control, check.value): check for check in checks}
    units, people = ({name: at for at, name in enumerate(table)} for table in (votes.units, votes.annotators))
    wanted = {(units.get(check.unit, -1), people.get(check.annotator, -1)) for check in checks}
    shift = len(votes.annotators)
    near = np.isin(votes.unit.astype(np.int64) * shift + votes.annotator, [u * shift + a for u, a in wanted if u >= 0])
    found = ((row, looked.get(_place(votes, row))) for row in np.flatnonzero(near).tolist())
    return {row: check for row, check in found if check is not None}


def weighed(votes: Votes, checks: Sequence[Check]) -> Votes:
    """The votes with the weights that their checks give them."""
    found = standing(votes, checks)
    if not found:
        return votes
    weight = votes.weight.copy()
    for row, check in found.items():
        weight[row] *= np.float32(WEIGHT.get(check.verdict, 1.0))
    return replace(votes, weight=weight)


def _place(votes: Votes, row: int) -> Place:
    return (
        votes.units[votes.unit[row]], votes.annotators[votes.annotator[row]], votes.controls[votes.control[row]],
        votes.values[votes.value[row]].to_json(),
    )
