"""What everybody would say on every task: chunk by chunk, from the published version or, before the first, from votes.

A version answers for tasks whose content is in the feature cache; nothing is encoded here. Votes alone answer for tasks
that have at least one; on the others they say what each annotator says most, which is good for asking, not for filling.
What nothing answers for is missing.

Invariants: a fixed number of queries and one forward a chunk; memory is that of one chunk.
Shape legend: U tasks of a chunk, A annotators asked for, C classes of a control, N votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.labeling import LabelConfig
from backend.labeling.content import text_of
from backend.ports import Store
from backend.records import Project, Task
from backend.registry import Loaded
from backend.services.features import Features, Tokens
from backend.services.newcomers import Newcomers
from backend.services.prediction import trained_on
from backend.services.served import is_account, learned_of, whole_task
from model.coldstart.adapting import Adapted
from model.config import LadderConfig
from model.crowd.room import confusions_fit
from model.data.dataset import TrainingSet
from model.data.spaces import Space, ValueKind
from model.data.splits import task_of
from model.data.votes import Votes
from model.ensemble.first_votes import FirstVotes
from model.errors import ModelError, NotEnoughVotes

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
CHUNK = 256  # tasks at most
_CELLS = 1 << 20  # numbers in one answer of a chunk, 8 MB; a ladder holds about ten of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """One control on the tasks of a chunk."""

    space: Space
    served: Floats  # (U, A, C) what each would say, calibrated; NaN where nothing is known of a task
    consensus: Floats  # (U, C) probability of each class to be the majority of the whole panel; NaN as above
    known: Flags  # (U,) whether gaps of the task are filled


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Tasks, and what is predicted on them."""

    tasks: Sequence[Task]
    controls: Mapping[str, Answer]


class Source(Protocol):
    """What predicts: a version, or votes alone."""

    @property
    def spaces(self) -> Mapping[str, Space]: ...
    @property
    def people(self) -> Sequence[str]:
        """Annotators that it has learned, or whose own votes taught something since."""
    def knows(self, tasks: Sequence[Task], given: Votes) -> dict[str, Flags]:
        """Control -> (U,) whether gaps of each task are filled; predicts nothing."""
    def answer(self, tasks: Sequence[Task], annotators: Sequence[str], given: Votes) -> dict[str, Answer]: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class FromVersion:
    """The published version."""

    loaded: Loaded
    config: LabelConfig
    features: Features
    newcomers: Mapping[str, Adapted] = field(default_factory=dict)  # whose own votes say more than the version

    @property
    def spaces(self) -> Mapping[str, Space]:
        """Trained controls that the labeling configuration still has, without those answered for each region."""
        return whole_task(self.loaded.ladder.spaces, self.config)

    @property
    def people(self) -> Sequence[str]:
        known = self.loaded.ladder.annotators
        return (*known, *sorted(self.newcomers.keys() - set(known)))

    def knows(self, tasks: Sequence[Task], given: Votes) -> dict[str, Flags]:
        known = np.array([array is not None for array in self.tokens(self.contents(tasks))], np.bool_)
        return dict.fromkeys(self.spaces, known)

    def answer(self, tasks: Sequence[Task], annotators: Sequence[str], given: Votes) -> dict[str, Answer]:
        """Raises ModelError where the features are of another make than those of the training."""
        contents = self.contents(tasks)
        tokens = self.tokens(contents)
        known = np.array([array is not None for array in tokens], np.bool_)
        found: dict[str, Answer] = {}
        rows = np.flatnonzero(known)
        predicted = self.loaded.ladder.predict(
            [array for array in (tokens[row] for row in rows.tolist()) if array is not None], annotators,
            units=[str(tasks[row].id) for row in rows.tolist()], given=given,
            texts=[text_of(contents[row]) for row in rows.tolist()],
            newcomers=self.newcomers,
        ) if len(rows) else {}
        for name, space in self.spaces.items():
            served, consensus = _nothing(len(tasks), len(annotators), space)
            if name in predicted:
                served[rows], consensus[rows] = predicted[name].served, predicted[name].consensus
            found[name] = Answer(space=space, served=served, consensus=consensus, known=known)
        return found

    def contents(self, tasks: Sequence[Task]) -> list[str]:
        """Of each task, what is encoded."""
        return [self.config.content(task.data, task=task.id) for task in tasks]

    def tokens(self, contents: Sequence[str]) -> list[Tokens | None]:
        """Of each content, as far as they are cached."""
        found = self.features.known(contents, encoder_id=trained_on(self.loaded))
        return [array if text else None for text, array in zip(contents, found, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class FromVotes:
    """Votes alone, before the first version. What nobody has voted on is not known."""

    first: FirstVotes
    spaces: Mapping[str, Space]

    @property
    def people(self) -> Sequence[str]:
        return self.first.annotators

    def knows(self, tasks: Sequence[Task], given: Votes) -> dict[str, Flags]:
        found = {}
        for name in self.spaces:
            voted = {given.units[code] for code in np.unique(given.of_control(name).unit)}
            found[name] = np.array([str(task.id) in voted for task in tasks], np.bool_)
        return found

    def answer(self, tasks: Sequence[Task], annotators: Sequence[str], given: Votes) -> dict[str, Answer]:
        known = self.knows(tasks, given)
        predicted = self.first.predict([str(task.id) for task in tasks], annotators, given)
        return {name: Answer(space=self.spaces[name], served=each.served, consensus=each.consensus, known=known[name])
                for name, each in predicted.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Board:
    """A project's votes and what predicts its gaps."""

    project: Project
    store: Store
    config: LabelConfig
    votes: Votes  # (N,) the current ones
    source: Source | None  # None: nothing can be predicted yet
    version: str | None  # of the model; None for votes alone
    spaces: Mapping[str, Space] = field(default_factory=dict)  # of all modelled controls, with or without predictions

    @cached_property
    def task(self) -> NDArray[np.int64]:
        """(N,) Label Studio's id of the task of each vote."""
        table = np.array([int(task_of(unit)) for unit in self.votes.units], np.int64)
        return table[self.votes.unit]

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        order = np.argsort(self.task, kind="stable")
        return order, self.task[order]

    def votes_on(self, ids: NDArray[np.int64]) -> Votes:
        """The votes on some tasks, ids ascending."""
        order, task = self._sorted
        low, high = np.searchsorted(task, ids, "left"), np.searchsorted(task, ids, "right")
        rows = [order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True) if b > a]
        return self.votes.select(np.concatenate(rows) if rows else np.empty(0, np.intp))

    def chunks(self, ids: NDArray[np.int64], annotators: Sequence[str]) -> Iterator[Chunk]:
        """Tasks of these ids (ascending) that are there, with what is predicted; `annotators` are the columns."""
        size = self._chunk_size(len(annotators))
        for begin in range(0, len(ids), size):
            part = ids[begin : begin + size]
            tasks = self.store.tasks.get(self.project.key, part.tolist())
            if not tasks:
                continue
            controls = {} if self.source is None else self.source.answer(tasks, annotators, self.votes_on(part))
            yield Chunk(tasks=tasks, controls=controls)

    def known(self, ids: NDArray[np.int64]) -> dict[str, Flags]:
        """Control -> (len(ids),) whether gaps of each of these tasks (ids ascending) are filled; predicts nothing."""
        found = {name: np.zeros(len(ids), np.bool_) for name in (self.source.spaces if self.source else ())}
        for begin in range(0, len(ids) if self.source else 0, CHUNK):
            part = ids[begin : begin + CHUNK]
            tasks = self.store.tasks.get(self.project.key, part.tolist())
            at = begin + np.searchsorted(part, [task.id for task in tasks])
            for name, flags in self.source.knows(tasks, self.votes_on(part)).items() if self.source else ():
                found[name][at] = flags
        return found

    def _chunk_size(self, annotators: int) -> int:
        if self.source is None or not self.source.spaces:
            return CHUNK
        widest = max(len(space.classes) for space in self.source.spaces.values())
        return max(1, min(CHUNK, _CELLS // max(1, widest * max(annotators, len(self.source.people)))))


def board_of(
    store: Store, features: Features, project: Project, config: LabelConfig, loaded: Loaded | None, *,
    echo_weight: float, newcomers: Newcomers | None = None,
) -> Board:
    """Read the votes, and choose what predicts."""
    votes = store.votes.current(project.key)
    spaces = config.spaces(votes, learned_of(None if loaded is None else loaded.version))
    source: Source | None
    if loaded is not None:
        people = [votes.annotators[code] for code in np.unique(votes.annotator)]
        moved = newcomers.of(project.key, loaded, config, people) if newcomers and loaded.ladder.reads else {}
        source = FromVersion(loaded=loaded, config=config, features=features, newcomers=moved)
    else:
        source = from_votes(votes, spaces, echo_weight)
    return Board(project=project, store=store, config=config, votes=votes, source=source, spaces=spaces,
                 version=None if loaded is None else loaded.version.name)


def from_votes(votes: Votes, spaces: Mapping[str, Space], echo_weight: float) -> FromVotes | None:
    """Fitted on these votes; None without any that is usable. Controls whose tables would not fit into memory are left
    out, as in the statistics."""

    def no_content(units: Sequence[str]) -> list[NDArray[np.float16]]:
        raise ModelError("votes alone need no content")

    used = {
        name: space for name, space in spaces.items() if space.classes and len(votes.of_control(name))
        and confusions_fit(len(votes.annotators) + 1, len(space.classes) if space.kind is ValueKind.CLASS else 2)
    }
    data = TrainingSet(votes=votes, spaces=used, tokens=no_content, heldout=lambda unit: False,
                       anonymous=lambda annotator: not is_account(annotator))
    try:
        return FromVotes(first=FirstVotes(data, LadderConfig(echo_weight=echo_weight)), spaces=used)
    except NotEnoughVotes:
        return None


def _nothing(tasks: int, people: int, space: Space) -> tuple[Floats, Floats]:
    classes = len(space.classes)
    return np.full((tasks, people, classes), np.nan), np.full((tasks, classes), np.nan)
