"""A problem: the current votes of one control with content, ready to be split, hidden and scored.

Shape legend: N votes, U units, A annotators, C classes, T tokens, D dim.
Invariants: one vote for each (unit, annotator), sorted by it; every vote lies in the space; the tables hold no unit or
annotator without a vote, so equal votes make equal problems (and equal fingerprints) whatever order they came in.
Problems that are evaluated together name each other's tasks too, so that all of them are split and resampled alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Targets
from model.data.spaces import SingleChoice, Space
from model.data.splits import task_of
from model.data.votes import Votes
from model.errors import ModelError, NotEnoughVotes

TokensOf = Callable[[Sequence[str]], list[NDArray[Any]]]
TextsOf = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What models compete on. Build it with `make_problem`."""

    name: str
    votes: Votes
    space: Space
    tokens: TokensOf  # units -> (T_i, D) each
    ordinal: bool = False  # the classes of a single choice stand in order
    gold: Mapping[str, str] = field(default_factory=dict)  # unit -> class
    texts: TextsOf | None = None  # units -> the text that each shows
    tasks: tuple[str, ...] = ()  # tasks without a vote here that are split and resampled with the others all the same

    @cached_property
    def y(self) -> NDArray[np.float32]:
        """(N, C) the encoded votes."""
        return encoded(self.votes, self.space)

    @cached_property
    def task_names(self) -> tuple[str, ...]:
        """G ids of tasks, sorted."""
        return tuple(sorted({task_of(unit) for unit in self.votes.units} | set(self.tasks)))

    @cached_property
    def task(self) -> NDArray[np.int64]:
        """(N,) code of the task that each vote's unit belongs to, in the order of `task_names`."""
        return places([task_of(unit) for unit in self.votes.units], self.task_names)[self.votes.unit]

    @cached_property
    def fingerprint(self) -> str:
        """Equal for equal votes, classes and gold; cells of another problem are not mistaken for this one's."""
        votes, digest = self.votes, hashlib.sha256()
        for table in (votes.units, votes.annotators, [value.to_json() for value in votes.values], self.space.classes):
            digest.update("\x00".join(table).encode() + b"\x01")
        for column in (votes.unit, votes.annotator, votes.value):
            digest.update(np.ascontiguousarray(column, dtype=np.int32).tobytes())
        digest.update(repr(sorted(self.gold.items())).encode())
        if isinstance(self.space, SingleChoice) and self.space.ordered:
            digest.update(b"ordered")
        if len(self.task_names) > len({task_of(unit) for unit in votes.units}):
            digest.update(repr(self.task_names).encode())
        return digest.hexdigest()[:16]

    def shuffled(self, seed: int) -> Problem:
        """The same problem with each annotator's labels dealt anew among their own units: nothing is left to learn but
        how often each annotator gives each label."""
        rng, votes = np.random.default_rng(seed), self.votes
        value = votes.value.copy()
        for annotator in range(len(votes.annotators)):
            mine = np.flatnonzero(votes.annotator == annotator)
            value[mine] = value[rng.permutation(mine)]
        return replace(self, votes=replace(votes, value=value))


def make_problem(
    name: str, votes: Votes, control: str, space: Space, tokens: TokensOf, *, ordinal: bool = False,
    gold: Mapping[str, str] | None = None, texts: TextsOf | None = None,
) -> Problem:
    """The current votes of one control. Raises NotEnoughVotes when fewer than two tasks have a usable vote."""
    if not space.classes:
        raise NotEnoughVotes(f"the control {control} has no classes")
    mine = votes.of_control(control)
    inside = np.array([space.contains(value) for value in mine.values], dtype=np.bool_)
    rows = np.flatnonzero(inside[mine.value] & (mine.weight > 0)) if len(mine) else np.empty(0, np.int64)
    order = rows[np.lexsort((mine.time[rows], mine.annotator[rows], mine.unit[rows]))]
    pair = mine.unit[order].astype(np.int64) * max(1, len(mine.annotators)) + mine.annotator[order]
    kept = _compact(mine.select(order[np.append(np.diff(pair) != 0, True)] if len(order) else order))
    if len({task_of(unit) for unit in kept.units}) < 2:
        raise NotEnoughVotes("an evaluation needs votes on at least two tasks")
    strangers = set((gold or {}).values()) - set(space.classes)
    if strangers:
        raise ModelError("a gold label is not one of the classes of this control")
    return Problem(
        name=name, votes=kept, space=space, tokens=tokens,
        ordinal=isinstance(space, SingleChoice) and (ordinal or space.ordered),
        gold=dict(gold or {}), texts=texts,
    )


def encoded(votes: Votes, space: Space) -> NDArray[np.float32]:
    """(N, C) of votes that all lie in the space."""
    used = np.unique(votes.value)
    table = np.zeros((len(votes.values), len(space.classes)), np.float32)
    for index in used:
        table[index] = space.encode(votes.values[index])
    return table[votes.value]


def targets_of(votes: Votes, space: Space, units: Sequence[str], annotators: Sequence[str]) -> Targets:
    """Votes as the arrays that learners take; all of them must be on these units and by these annotators.

    Raises ModelError for a vote of somebody or on something else.
    """
    unit_at, annotator_at = places(votes.units, units), places(votes.annotators, annotators)
    unit, annotator = unit_at[votes.unit], annotator_at[votes.annotator]
    if len(votes) and (unit.min() < 0 or annotator.min() < 0):
        raise ModelError("there are votes on units, or by annotators, that the fold does not list")
    return Targets(
        space=space, unit=unit, annotator=annotator, y=encoded(votes, space), weight=votes.weight, scored=votes.scored
    )


def places(names: Sequence[str], among: Sequence[str]) -> NDArray[np.int64]:
    """Position of each name among others, -1 where it is not there."""
    position = {name: index for index, name in enumerate(among)}
    return np.array([position.get(name, -1) for name in names], dtype=np.int64)


def _compact(votes: Votes) -> Votes:
    """The votes over tables of only what they use."""
    unit, unit_code = np.unique(votes.unit, return_inverse=True)
    annotator, annotator_code = np.unique(votes.annotator, return_inverse=True)
    value, value_code = np.unique(votes.value, return_inverse=True)
    control, control_code = np.unique(votes.control, return_inverse=True)
    return replace(
        votes, units=tuple(votes.units[i] for i in unit), annotators=tuple(votes.annotators[i] for i in annotator),
        values=tuple(votes.values[i] for i in value), controls=tuple(votes.controls[i] for i in control),
        unit=unit_code.astype(np.int32), annotator=annotator_code.astype(np.int32), value=value_code.astype(np.int32),
        control=control_code.astype(np.int32),
    )
