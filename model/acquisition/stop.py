"""The stop rule: tasks whose majority no further vote would change are done, and their missing votes are saved.

    flip_u = max( sum_{c != top} P(votes for c reach those for the top class),  1 - consensus_u[top] )

The first term takes the predicted probabilities of the votes that may still come as independent: exact for two classes,
a bound for more (a tie counts as a change). The second is what the caller's consensus says, in which errors are shared.
A task is done when the larger of the two is at most the threshold. Where the votes that may come are too few to change
anything, or none may come, flip is 0 whatever is predicted.

Shape legend: U units, A annotators, C classes, R votes that may still come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from model.acquisition.base import AcquisitionError, Flags, Floats, Situation

_EXACT = 64  # votes still to come up to which the distribution is computed; from there on it is normal


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


def finished(situation: Situation, *, threshold: float = 0.05, votes_per_unit: int | None = None) -> Finished:
    """Which tasks are done.

    Every open gap may still be filled; with `votes_per_unit`, a task gets that many votes in all at most, by anybody.
    Raises AcquisitionError for a threshold outside 0 to 1.
    """
    if not 0.0 <= threshold <= 1.0:
        raise AcquisitionError("the threshold is a probability between 0 and 1")
    classes = situation.consensus.shape[1]
    counts = np.stack([(situation.given == k).sum(axis=1) for k in range(classes)], axis=1)  # (U, C)
    possible = situation.open.sum(axis=1)
    if votes_per_unit is not None:
        possible = np.clip(votes_per_unit - counts.sum(axis=1), 0, possible)
    flip = np.zeros(len(counts))
    for unit in np.flatnonzero((possible > 0) & (counts.sum(axis=1) > 0)):
        p = situation.probabilities[unit, situation.open[unit]].astype(np.float64)
        flip[unit] = _flip(counts[unit], p, int(possible[unit]))
    top = counts.argmax(axis=1)
    flip = np.maximum(flip, 1.0 - situation.consensus[np.arange(len(top)), top])
    flip[counts.sum(axis=1) == 0] = 1.0
    ranked = np.sort(np.pad(counts, ((0, 0), (1, 0))), axis=1)  # a class of nobody, where there is only one
    flip[possible < ranked[:, -1] - ranked[:, -2]] = 0.0
    flip[possible == 0] = 0.0
    return Finished(done=flip <= threshold, flip=np.minimum(flip, 1.0), possible=possible.astype(np.int64))


def _flip(counts: NDArray[np.int64], p: Floats, votes: int) -> float:
    """Probability that `votes` of the annotators (R, C) bring another class level with the top one or above it."""
    top = int(counts.argmax())
    if votes < len(p):
        p = np.broadcast_to(p.mean(axis=0), (votes, len(counts)))
    total = 0.0
    for other in range(len(counts)):
        ahead = int(counts[top] - counts[other])
        if other != top and ahead <= votes:
            total += _reaches(p[:, other], p[:, top], ahead)
    return total


def _reaches(up: Floats, down: Floats, ahead: int) -> float:
    """P(sum of steps >= ahead), each step +1 with `up` (R,), -1 with `down` (R,), else 0."""
    steps = len(up)
    if steps > _EXACT:
        mean, variance = float((up - down).sum()), float((up + down - np.square(up - down)).sum())
        return float(ndtr((mean - ahead + 0.5) / np.sqrt(max(variance, 1e-12))))
    reached = np.zeros(2 * steps + 1)
    reached[steps] = 1.0
    for plus, minus in zip(up, down, strict=True):
        moved = (1.0 - plus - minus) * reached
        moved[1:] += plus * reached[:-1]
        moved[:-1] += minus * reached[1:]
        reached = moved
    return float(reached[steps + ahead :].sum())
