"""Which of an annotator's several answers to one question is the newest: times that say so, without ties.

The newest is the one with the latest time; where times are equal, or one of them cannot be read, the one with the
higher id (the id of the annotation; without ids the place in the file). Votes keep only times, so later ones are moved
behind earlier ones by a microsecond where they are not.

Shape legend: N votes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEP_S = 1e-6


def in_order(
    question: NDArray[np.int64], time: NDArray[np.float64], known: NDArray[np.bool_], number: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(N,) times in which the newest vote of each question (unit, annotator and control, as one number) is the last.

    `known` (N,) says which times could be read, `number` (N,) is the id. Times of what was answered once stay.
    """
    order = np.argsort(question, kind="stable")
    same = np.diff(question[order]) == 0
    if not same.any():
        return time
    repeated = np.zeros(len(order), dtype=np.bool_)
    repeated[1:] |= same
    repeated[:-1] |= same
    rows = order[repeated]
    group = np.cumsum(np.diff(question[rows], prepend=question[rows[0]] - 1) != 0) - 1
    unsure = np.bincount(group, ~known[rows]) > 0
    by = np.where(unsure[group], 0.0, time[rows])
    moved = time.copy()
    last_group, last = -1, 0.0
    for at in np.lexsort((number[rows], by, group)).tolist():
        row, mine = rows[at], group[at]
        own = float(time[row]) if known[row] else 0.0
        last = max(own, last + _STEP_S) if mine == last_group else own
        moved[row], last_group = last, mine
    return moved


def question_of(
    unit: NDArray[np.integer], annotator: NDArray[np.integer], control: NDArray[np.integer], annotators: int,
    controls: int,
) -> NDArray[np.int64]:
    """(N,) one number for each (unit, annotator, control)."""
    found: NDArray[np.int64] = (unit.astype(np.int64) * annotators + annotator) * controls + control
    return found
