"""What there is to judge annotators by: tasks that others labelled too, who these others are, and how strict to be.

A vote on a task that nobody else voted on says nothing of its annotator: what is believed of the task without the vote
is only the class prior. So all figures about people stand on *shared* votes, and nobody is judged below `FEWEST_TASKS`
common tasks with `FEWEST_OTHERS` others, each with `MET` tasks in common.

    level(a) = alpha / (people * findings)                              a file, looked at once
             / ((j + 1) (j + 2) * WITHIN),  j = floor(log2(n / 20))     a project that is looked at as it grows

Bonferroni over people and kinds of findings bounds the chance that *anybody* is named. A growing project is looked at
after every few votes: the levels of all doublings of somebody's votes n add up to one share (sum 1/((j+1)(j+2)) = 1),
and within one doubling a statistic of z standard errors is exceeded at some look about 1 + log(2) z^2 / 2 times as
often as at one look, which `WITHIN` covers for z up to 4.3. That last step is the approximation of a random walk.

Shape legend: U units, A annotators, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from model.crowd.answers import AnswerMatrix

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
FEWEST_TASKS, FEWEST_OTHERS = 20, 2
MET = 5  # common tasks that make somebody one of the others
WITHIN = 7.0
_MOST = 30_000_000  # products of pairs; beyond, only whether there are others is looked at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grounds:
    """How much there is to judge each annotator by."""

    shared: Flags  # (N,) votes on tasks that others voted on
    votes: Codes  # (A,) votes of each annotator, shared or not
    common: Codes  # (A,) tasks that others labelled too
    others: Codes  # (A,) people with at least `MET` tasks in common

    @property
    def enough(self) -> Flags:
        """(A,) whether anything may be said of the annotator."""
        return np.asarray((self.common >= FEWEST_TASKS) & (self.others >= FEWEST_OTHERS))


def grounds(answers: AnswerMatrix, task: Codes | None = None) -> Grounds:
    """Count what annotators share; `task` (N,) where several units are questions of one task, else the unit itself."""
    n_annotators = len(answers.annotators)
    at = answers.unit.astype(np.int64) if task is None else np.asarray(task, np.int64)
    n_tasks = int(at.max(initial=-1)) + 1
    there = sparse.csr_array(
        (np.ones(len(at)), (answers.annotator, at)), shape=(n_annotators, n_tasks)
    )  # (A, U), repeats are added up
    there.data[:] = 1.0
    people = np.asarray(there.sum(axis=0)).ravel()  # (U,)
    shared = people[at] > 1
    common = np.asarray(there @ (people > 1)).ravel().astype(np.int64)
    if float((people**2).sum()) <= _MOST:
        met = (there @ there.T).tocsr()
        of = np.repeat(np.arange(n_annotators), np.diff(met.indptr))
        others = np.bincount(of[met.data >= MET], minlength=n_annotators)
        others -= np.asarray(there.sum(axis=1)).ravel() >= MET  # themselves
    else:
        several = np.asarray(there @ (people > 2)).ravel()
        others = np.where(several >= MET, FEWEST_OTHERS, np.minimum(common // MET, 1))
    return Grounds(
        shared=shared, votes=np.bincount(answers.annotator, minlength=n_annotators), common=common,
        others=np.asarray(others, np.int64),
    )


def levels(ground: Grounds, alpha: float, findings: int, *, watched: bool) -> Floats:
    """(A,) level of one test of each annotator, so that all tests together err at most at `alpha`."""
    level = np.full(len(ground.common), alpha / max(int((ground.votes > 0).sum()), 1) / max(findings, 1))
    if watched:
        j = np.floor(np.log2(np.maximum(ground.common, FEWEST_TASKS) / FEWEST_TASKS))
        level /= (j + 1.0) * (j + 2.0) * WITHIN
    return level
