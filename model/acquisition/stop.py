"""The stop rule: tasks whose majority no further vote would change are done, and their missing votes are saved.

    flip_u = max( sum_{c != top} P(votes for c reach those for the top class),  1 - consensus_u[top] )

The first term takes the predicted probabilities of the votes that may still come as independent: exact for two classes,
a bound for more (a tie counts as a change). The second is what the caller's consensus says, in which errors are shared.
A task is done when the larger of the two is at most the threshold. Where the votes that may come are too few to change
anything, or none may come, flip is 0 whatever is predicted. Votes of people outside the panel count where the caller
hands in everybody's `counts`.

Shape legend: U units, A annotators, C classes, R votes that may still come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from model.acquisition.base import AcquisitionError, Flags, Floats, Situation

_EXACT = 64  # votes still to come up to which the distribution is computed; from there on it is normal
_CELLS = 1 << 21  # numbers that are worked on at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What needs no further vote."""

    done: Flags  # (U,)
    flip: Floats  # (U,) probability that the majority still changes
    possible: NDArray[np.int64]  # (U,) votes that may still come

    @property
    def saved(self) -> NDArray[np.int64]:
        """(U,) votes that need not be asked: those still possible on done tasks, 0 elsewhere."""
        return np.where(self.done, self.possible, 0)

    @property
    def votes_saved(self) -> int:
        return int(self.saved.sum())


def finished(
    situation: Situation, *, threshold: float = 0.05, votes_per_unit: int | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Finished:
    """Which tasks are done.

    Every open gap may still be filled; with `votes_per_unit`, a task gets that many votes in all at most, by anybody.
    `counts` (U, C) are the votes so far where more people voted than may be asked; without, those of the situation.
    Raises AcquisitionError for a threshold outside 0 to 1, and for counts of another shape than the consensus.
    """
    if not 0.0 <= threshold <= 1.0:
        raise AcquisitionError("the threshold is a probability between 0 and 1")
    classes = situation.consensus.shape[1]
    if counts is None:
        counts = np.stack([(situation.given == k).sum(axis=1) for k in range(classes)], axis=1)  # (U, C)
    elif counts.shape != situation.consensus.shape:
        raise AcquisitionError("votes are counted by unit and class, as the consensus is")
    possible = situation.open.sum(axis=1)
    if votes_per_unit is not None:
        possible = np.clip(votes_per_unit - counts.sum(axis=1), 0, possible)
    flip = np.zeros(len(counts))
    asked = np.flatnonzero((possible > 0) & (counts.sum(axis=1) > 0))
    step = max(1, _CELLS // max(1, int(possible.max(initial=1)) * classes))
    for first in range(0, len(asked), step):
        rows = asked[first : first + step]
        flip[rows] = _flip(counts[rows], _to_come(situation, rows, possible[rows]), possible[rows])
    top = counts.argmax(axis=1)
    flip = np.maximum(flip, 1.0 - situation.consensus[np.arange(len(top)), top])
    flip[counts.sum(axis=1) == 0] = 1.0
    ranked = np.sort(np.pad(counts, ((0, 0), (1, 0))), axis=1)  # a class of nobody, where there is only one
    flip[possible < ranked[:, -1] - ranked[:, -2]] = 0.0
    flip[possible == 0] = 0.0
    return Finished(done=flip <= threshold, flip=np.minimum(flip, 1.0), possible=possible.astype(np.int64))


def _to_come(situation: Situation, rows: NDArray[np.intp], possible: NDArray[np.int64]) -> Floats:
    """(n, R, C) of the votes that may come, 0 behind the last; an average one where not all gaps may be filled."""
    is_open = situation.open[rows]
    order = np.argsort(~is_open, axis=1, kind="stable")[:, : int(possible.max(initial=0))]  # open gaps first
    p = np.take_along_axis(situation.probabilities[rows], order[:, :, None], axis=1).astype(np.float64)
    some = possible < is_open.sum(axis=1)
    if some.any():
        gaps = is_open[some][:, :, None]
        p[some] = (np.where(gaps, situation.probabilities[rows[some]], 0.0).sum(axis=1) / gaps.sum(axis=1))[:, None]
    p[np.arange(p.shape[1]) >= possible[:, None]] = 0.0
    return p


def _flip(counts: NDArray[np.int64], p: Floats, votes: NDArray[np.int64]) -> Floats:
    """(n,) probability that `votes` (n,) more bring another class level with the top one of (n, C) or above it."""
    rows, top = np.arange(len(counts)), counts.argmax(axis=1)
    total = np.zeros(len(counts))
    for other in range(counts.shape[1]):
        ahead = counts[rows, top] - counts[:, other]
        some = np.flatnonzero((top != other) & (ahead <= votes))
        few = votes[some] <= _EXACT
        for part, reaches in ((some[few], _reaches), (some[~few], _reaches_about)):
            if len(part):
                some_p = p[part, : int(votes[part].max())]
                leading = np.take_along_axis(some_p, top[part, None, None], axis=2)[:, :, 0]
                total[part] += reaches(some_p[:, :, other], leading, ahead[part])
    return total


def _reaches(up: Floats, down: Floats, ahead: NDArray[np.int64]) -> Floats:
    """(n,) P(sum of steps >= ahead), each step +1 with `up` (n, R), -1 with `down` (n, R), else 0."""
    steps = up.shape[1]
    reached = np.zeros((len(up), 2 * steps + 1))
    reached[:, steps] = 1.0
    for plus, minus in zip(up.T[:, :, None], down.T[:, :, None], strict=True):
        moved = (1.0 - plus - minus) * reached
        moved[:, 1:] += plus * reached[:, :-1]
        moved[:, :-1] += minus * reached[:, 1:]
        reached = moved
    return np.asarray(np.where(np.arange(-steps, steps + 1) >= ahead[:, None], reached, 0.0).sum(axis=1))


def _reaches_about(up: Floats, down: Floats, ahead: NDArray[np.int64]) -> Floats:
    """The same, the sum taken as normal."""
    mean = (up - down).sum(axis=1)
    variance = (up + down - np.square(up - down)).sum(axis=1)
    return np.asarray(ndtr((mean - ahead + 0.5) / np.sqrt(np.maximum(variance, 1e-12))))
