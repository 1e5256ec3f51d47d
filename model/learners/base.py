"""The contract of a learner: of one kind of answer it fits, judges, predicts, saves and loads.

    fitted = learner.fit(data)                        # raises NotEnoughVotes
    verdict = learner.judge(fitted, published, data)  # is it published?
    learned = learner.learned(fitted)
    found = learned.answers(question)                 # control -> what everybody is foretold to say
    about = learned.save(folder)                      # a folder, and what is kept beside it
    again = learner.load(folder, about)

A control says by which learner its votes are learned; a version holds what each learner has learned. What a learner
knows beyond this contract (probabilities of classes, scores of items) is asked of its own class.

Shape legend: B units, A annotators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from model.data.dataset import Tokens, TrainingSet
from model.data.judgement import Judgement
from model.data.spaces import Value
from model.data.votes import Votes

Progress = Callable[[float, str], None]


def silent(fraction: float, note: str) -> None:
    """The progress callback of callers who do not care."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """B units, A annotators, and what is known of the units."""

    units: Sequence[str]
    annotators: Sequence[str]
    votes: Votes | None = None  # that there are on the units
    tokens: Sequence[Tokens] | None = None  # (T, D) of each unit; None: no content
    texts: Sequence[str] | None = None
    items: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)  # control -> what each unit lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What is foretold about one control."""

    own: Sequence[Mapping[str, Value]]  # B times annotator -> theirs; without who voted there
    consensus: Sequence[Value | None]  # (B,)


class Learned(ABC):
    """What a learner has learned of the controls of its kind. Immutable."""

    @property
    @abstractmethod
    def annotators(self) -> tuple[str, ...]:
        """Those whom it knows."""

    @property
    @abstractmethod
    def controls_learned(self) -> tuple[str, ...]:
        """Those that it can answer for."""

    @abstractmethod
    def answers(self, question: Question) -> dict[str, Answers]:
        """By control. A vote on a unit never comes back to who gave it."""

    @abstractmethod
    def save(self, folder: Path) -> dict[str, Any]:
        """Keep it: in a new folder, and in what is given back, which is JSON-able and stands among the figures of a
        version. Raises CheckpointError."""


L = TypeVar("L", bound=Learned)
F = TypeVar("F")


class Learner(ABC, Generic[F, L]):
    """How one kind of answer is learned; F is what a fit gives, L what of it is published."""

    name: ClassVar[str]  # controls name it

    @abstractmethod
    def fit(
        self, data: TrainingSet, previous: L | None = None, *, progress: Progress = silent, device: str = "cpu"
    ) -> F:
        """Learn from the votes on units that are not held out; `previous` is gone on from where that is possible.

        Raises NotEnoughVotes where there is too little to learn from."""

    @abstractmethod
    def learned(self, fitted: F) -> L:
        """What of a fit answers from now on."""

    @abstractmethod
    def judge(self, fitted: F, published: L | None, data: TrainingSet) -> Judgement:
        """Whether it replaces what is published, by votes on units that neither was fitted on."""

    @abstractmethod
    def load(self, folder: Path, about: Mapping[str, Any], *, device: str = "cpu") -> L:
        """Inverse of `Learned.save`. Raises CheckpointError where it is missing or damaged."""
