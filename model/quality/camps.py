"""Camps on a divided unit: the annotators behind each label, weighed by what their votes are worth.

Shape legend: U units, A annotators, C classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.sums import class_totals
from model.quality.annotators import Against

Floats = NDArray[np.float64]
_SHRINK = 10.0  # votes before an annotator's kappa is half believed


def worth(against: Against) -> Floats:
    """(A,) what a vote of each annotator counts: kappa against the others, shrunk to 0 and never below it."""
    votes = against.table.sum(axis=(1, 2))
    return np.asarray(np.maximum(np.nan_to_num(against.kappa), 0.0) * votes / (votes + _SHRINK))


def division(answers: AnswerMatrix, value: Floats) -> Floats:
    """(U,) weight of the second heaviest camp, with the votes' worth (A,): so much would have to be wrong."""
    if len(answers.classes) < 2:
        return np.zeros(len(answers.units))
    camps = class_totals(answers, value[answers.annotator])
    return np.asarray(np.partition(camps, -2, axis=1)[:, -2])
