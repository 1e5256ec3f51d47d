"""Whom to ask for which label next, and which tasks need none: the policies of `model.acquisition` on a project's gaps.

Shape legend: U tasks, A annotators who may be asked, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.services.gaps.documents import Ask
from backend.settings import Settings
from model.acquisition.base import Ask as Chosen
from model.acquisition.base import Policy, Situation
from model.acquisition.registry import make_policy
from model.acquisition.several import choose_several, of_choices
from model.acquisition.stop import finished
from model.data.spaces import MultipleChoice, Space

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
FLIP = 0.05  # a task is done when its majority changes with at most this probability
BALANCE = 0.5  # nobody is asked for more than twice an equal share


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What to ask by. `budget` is in labels of an annotator of usual cost."""

    policy: str
    budget: float
    per_task: int  # new labels of one task
    by_time: bool  # annotators cost the time they take; otherwise all alike

    @classmethod
    def of(cls, settings: Settings) -> Wishes:
        """Those of the settings."""
        return cls(policy=settings.gap_policy, budget=float(settings.gap_budget), per_task=settings.gap_per_task,
                   by_time=settings.gap_cost == "time")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """Who may be asked."""

    annotators: Sequence[str]  # A ids
    names: Sequence[str]
    seconds: Floats | None  # (A,) what a label of each takes; None where nobody knows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """One control on the tasks that are judged."""

    space: Space
    task: NDArray[np.int64]  # (U,)
    served: NDArray[np.float32]  # (U, A, C)
    consensus: Floats  # (U, C)
    y: NDArray[np.float32]  # (U, A, C) votes, where `has`
    has: Flags  # (U, A)
    votes: NDArray[np.int64]  # (U,) of everybody
    counts: NDArray[np.int64]  # (U, C) of everybody, also of those who may not be asked any more

    def select(self, rows: Flags) -> Table:
        """Some of the tasks."""
        return Table(space=self.space, task=self.task[rows], served=self.served[rows], consensus=self.consensus[rows],
                     y=self.y[rows], has=self.has[rows], votes=self.votes[rows], counts=self.counts[rows])

    @property
    def known(self) -> Flags:
        """(U,) tasks of which anything is predicted."""
        return np.asarray(np.isfinite(self.consensus).all(1))


def questions(table: Table) -> list[Situation]:
    """What a policy is told of tasks that are known: one question, or one for each class where several are chosen."""
    may_ask = ~table.has
    served = np.where(may_ask[..., None], table.served, np.float32(0.0))
    if not isinstance(table.space, MultipleChoice):
        given = np.where(table.has & table.y.any(2), table.y.argmax(2), -1)
        return [Situation(probabilities=served, given=given, consensus=table.consensus, may_ask=may_ask)]
    return of_choices(probabilities=served, chosen=table.y > 0.5, has=table.has, consensus=table.consensus,
                      may_ask=may_ask)


def ask(table: Table, panel: Panel, wishes: Wishes) -> list[Ask]:
    """The labels worth asking for, best first. Raises AcquisitionError."""
    table = table.select(table.known)
    if not table.has.size:
        return []
    policy, asked = make_policy(wishes.policy), questions(table)
    costs = None if panel.seconds is None or not wishes.by_time else panel.seconds / np.median(panel.seconds)
    if len(asked) == 1:
        chosen = policy.choose(asked[0], wishes.budget, at_most_per_unit=wishes.per_task, balance=BALANCE, costs=costs)
    else:
        chosen = choose_several(policy, asked, wishes.budget, at_most_per_unit=wishes.per_task, balance=BALANCE,
                                costs=costs)
    return [
        Ask(
            task=int(table.task[each.unit]), unit=str(table.task[each.unit]), gain=float(each.gain),
            annotator=panel.annotators[each.annotator], name=panel.names[each.annotator],
            cost=None if costs is None or panel.seconds is None else float(panel.seconds[each.annotator]),
            sentence=f"{_why(policy, asked, each)} {_so_far(int(table.votes[each.unit]))}",
        )
        for each in chosen
    ]


def done(table: Table) -> tuple[int, int]:
    """(tasks that need no further vote, votes that are saved so).

    The stop rule is asked about those tasks only that can be done: it takes a while for each, and a task is not done
    whose consensus is in doubt while enough votes are open to change it.
    """
    table = table.select(table.known)
    left = (~table.has).sum(1)  # (U,)
    counts = table.counts
    if not isinstance(table.space, MultipleChoice):
        ranked = np.sort(np.pad(counts, ((0, 0), (1, 0))), axis=1)
        ahead = (ranked[:, -1] - ranked[:, -2])[:, None]
        sure = table.consensus[np.arange(len(counts)), counts.argmax(1)][:, None]
    else:
        ahead = np.abs(2 * counts - table.votes[:, None])
        sure = np.maximum(table.consensus, 1.0 - table.consensus)
    some = table.select(((sure >= 1.0 - FLIP) | (left[:, None] < ahead) | (left[:, None] == 0)).all(1))
    if not len(some.task):
        return 0, 0
    ended = some.votes > 0
    for question, given in zip(questions(some), _counts_of(some), strict=True):
        ended &= finished(question, threshold=FLIP, counts=given).done
    return int(ended.sum()), int((~some.has).sum(1)[ended].sum())


def _counts_of(table: Table) -> list[NDArray[np.int64]]:
    """Everybody's votes as `questions` ask them: (U, C), or (U, 2) of no and yes for each class."""
    if not isinstance(table.space, MultipleChoice):
        return [table.counts]
    return [np.stack([table.votes - yes, yes], axis=1) for yes in table.counts.T]


def _why(policy: Policy, asked: Sequence[Situation], each: Chosen) -> str:
    """The policy's sentence, of the question that is least sure."""
    return policy.explain(min(asked, key=lambda question: float(question.consensus[each.unit].max())), each)


def _so_far(votes: int) -> str:
    return "Nobody has labelled it yet." if not votes else f"It has {votes} label{'s' if votes > 1 else ''} so far."
