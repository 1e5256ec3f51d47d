"""The contract of a base model, one way to answer for annotators: what it is fitted on, asked about, and kept as.

    fitted = model.fit(sample)     # on votes of one control
    fitted.scores(batch)           # (B, R, C): what everybody would say of B units
    fitted.votes(sample)           # (N, C): the same for single votes, whose givers' own votes never count for them

A ladder stacks base models by how well they foretold votes that they were fitted without; `out_of_fold` is the one loop
that finds this out. To add a base model, write a class in a file of its own and name it in `registry`: the stack,
checkpoints and the sentences for people follow from its attributes.

Shape legend: N votes, U units of a data set, B units asked about, P known annotators (arrays have P + 1 rows, the last
for anybody unknown), E givers who are not among them, R = P + E + 1 rows of answers, C classes, F features, V views.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.data.dataset import Targets, Tokens
from model.data.observed_votes import ObservedVotes
from model.data.spaces import Space

if TYPE_CHECKING:
    from model.qumab.batches import TokenStore
    from model.qumab.committee import Committee

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Votes of one control, to fit on or to be scored, with what may be known of their units."""

    targets: Targets  # N votes
    people: int  # P
    config: LadderConfig = field(default_factory=LadderConfig)
    control: str = ""
    fold: Codes | None = None  # (N,) of the unit of each vote; None where nothing is to be left out
    folds: tuple[int, ...] = ()  # those whose votes are scored by a fit without them
    features: NDArray[np.floating] | None = None  # (U, F) that `targets.unit` points into; None: no content is known
    surface: bool = False  # the last of the features are of how a text is written
    store: TokenStore | None = None  # the tokens of the same units
    visible: Flags | None = None  # (N,) which votes others on their unit may know; None: none
    stacked: Floats | None = None  # (N, C) out-of-sample scores by the stack of those that read no votes

    def __len__(self) -> int:
        return len(self.targets)

    def select(self, rows: Flags) -> Sample:
        """The chosen votes, mask (N,)."""
        return replace(
            self, targets=self.targets.select(rows), fold=None if self.fold is None else self.fold[rows],
            visible=None if self.visible is None else self.visible[rows],
            stacked=None if self.stacked is None else self.stacked[rows],
        )

    def seeing(self, visible: Flags | None) -> Sample:
        """The same votes where others (N,) are visible."""
        return replace(self, visible=visible)

    def without(self, fold: int) -> Sample:
        """The votes on units of other folds."""
        return self.select(self.fold_of_each != fold)

    def of(self, fold: int) -> Sample:
        """The votes on units of one fold."""
        return self.select(self.fold_of_each == fold)

    def to_score(self) -> Sample:
        """The votes that can be scored by a fit without their fold."""
        return self.select(np.isin(self.fold_of_each, self.folds))

    @property
    def fold_of_each(self) -> Codes:
        """(N,)"""
        assert self.fold is not None, "this sample has no folds"
        return self.fold

    @property
    def content(self) -> NDArray[np.floating]:
        """(U, F)"""
        assert self.features is not None, "nothing is known of what the units of this sample show"
        return self.features


class Reading:
    """What those who are asked for all controls at once make of some units; worked out when it is first needed."""

    def __init__(self, tokens: Sequence[Tokens], votes: Mapping[str, ObservedVotes]) -> None:
        self.tokens = tokens
        self.votes = votes
        self._made: dict[int, Any] = {}

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gives, asked for once for each key; keys are told apart by identity."""
        if id(key) not in self._made:
            self._made[id(key)] = make()
        found: T = self._made[id(key)]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """B units of one control that are asked about, and whose answers are wanted."""

    source: Codes  # (R,) whose parameters answer; the last row is of somebody unknown who gave nothing
    votes: ObservedVotes  # those the units have; column r is given by row r
    features: NDArray[np.floating] | None = None  # (B, F)
    reading: Reading | None = None  # of all controls
    reads_votes: bool = True  # False: nothing is to be made of the votes in `reading`
    stacked: Floats | None = None  # (B, R, C) scores by the stack of those that read no votes


class Fitted(ABC):
    """A base model fitted to one control. Immutable."""

    @property
    def whole(self) -> bool:
        """False for one out of a checkpoint from before all its parts were kept; a training starts it afresh."""
        return True

    @abstractmethod
    def scores(self, batch: Batch) -> Floats:
        """(B, R, C); no vote counts for whom it is by."""

    @abstractmethod
    def votes(self, sample: Sample) -> Floats:
        """(N, C): each vote foretold for who gave it, from the visible votes of everybody else."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """What a checkpoint keeps, by names that no other base model uses."""

    def numbers(self) -> dict[str, Any]:
        """What it keeps beside that, JSON-able, by names of its own."""
        return {}

    @abstractmethod
    def widened(self, people: int) -> Self:
        """For `people` annotators, the known ones first: those who came since are answered for as somebody unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One control in a checkpoint, and how to come by what all controls share."""

    control: str
    space: Space
    arrays: Arrays  # its own, by the names that `Fitted.arrays` gave
    numbers: Mapping[str, Any]
    committee: Callable[[], Committee]  # the networks in the checkpoint, built once


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A base model with its own settings chosen, and its fits without each fold."""

    model: BaseModel
    without: Mapping[int, Fitted]
    start: Fitted | None = None  # where the fit on all votes may begin


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfFold:
    """How well a base model does on votes whose fold it was fitted without, and how to fit it on all."""

    model: BaseModel
    scores: tuple[Floats, ...]  # V times (N, C)
    start: Fitted | None = None
    fitted: Fitted | None = None  # where the fits without a fold are themselves what answers

    def on_all(self, sample: Sample) -> Fitted:
        """The fit that answers from now on."""
        return self.fitted if self.fitted is not None else self.model.fit(sample, self.start)


@dataclass(frozen=True, kw_only=True)
class Course:
    """One training of all controls: what fits of single controls do not see."""

    store: TokenStore
    config: LadderConfig
    members_per_fold: int = 1
    device: str = "cpu"
    progress: Callable[[float], None] = lambda share: None
    previous: Committee | None = None  # the networks that this training goes on from
    newcomers: Flags | None = None  # (P,) with whose votes a training that goes on takes its time
    latest: Codes | None = None  # units that are gone through again in a brief training
    looked_at: Flags | None = None  # (U,) whose votes stop a training; None: all
    earlier: Mapping[str, Mapping[str, Fitted]] = field(default_factory=dict)  # control -> base model -> as it was
    shared: dict[str, Any] = field(default_factory=dict)  # what base models that are fitted together have made


class BaseModel(ABC):
    """One way to answer, with its settings; subclasses are frozen dataclasses, stateless between fits."""

    name: ClassVar[str]  # in figures, checkpoints and the API
    title: ClassVar[str]  # for people
    weight: ClassVar[float]  # in the stack where nobody has voted, before any vote has spoken; 0 if it reads votes
    weight_observed: ClassVar[float]  # the same where others have voted on the unit
    reads_content: ClassVar[bool]
    reads_votes: ClassVar[bool]  # of others on the unit
    on_stack: ClassVar[bool] = False  # starts from what the stack of those that read no votes says; see `Sample`

    @abstractmethod
    def fit(self, sample: Sample, start: Fitted | None = None) -> Fitted:
        """Fit on all votes of a sample; `start` only makes it faster."""

    @abstractmethod
    def from_arrays(self, stored: Stored) -> Fitted | None:
        """Out of a checkpoint; None where that is from before there was any. Raises KeyError for half of it."""

    def tuned(self, sample: Sample, views: Sequence[Flags | None], earlier: Fitted | None) -> Tuned:
        """The fits without each fold. One that has settings to choose tries them here."""
        return Tuned(model=self, without={fold: self.fit(sample.without(fold)) for fold in sample.folds})

    def out_of_fold(
        self, sample: Sample, views: Sequence[Flags | None], earlier: Fitted | None = None
    ) -> OutOfFold:
        """Score each vote of `sample.to_score()` by the fit without its fold, once for each view (N,) of which votes
        are visible."""
        tuned, asked = self.tuned(sample, views, earlier), sample.to_score()
        found = tuple(np.empty(asked.targets.y.shape, np.float64) for _ in views)
        for fold, fitted in tuned.without.items():
            here = asked.fold_of_each == fold
            part = asked.select(here)
            for scores, view in zip(found, views, strict=True):
                scores[here] = fitted.votes(part.seeing(None if view is None else view[here]))
        return OutOfFold(model=tuned.model, scores=found, start=tuned.start)

    def crossfit(
        self, samples: Mapping[str, Sample], views: Mapping[str, Sequence[Flags]], course: Course
    ) -> dict[str, OutOfFold]:
        """The same for all controls, one after the other. One that is fitted to all of them together overrides it."""
        return {
            name: self.out_of_fold(
                sample, views[name] if self.reads_votes else (None,), course.earlier.get(name, {}).get(self.name)
            )
            for name, sample in samples.items()
        }


def rows_of(scores: Floats, source: Codes) -> Floats:
    """Scores (B, P + 1, C) as rows (B, R, C) of who answers, known ones first; anybody beyond them is unknown."""
    if len(source) == scores.shape[1]:
        return scores
    return np.asarray(scores[:, np.minimum(source, scores.shape[1] - 1)])


def rows_for(rows: Floats, people: int) -> Floats:
    """Rows of P annotators and an unknown one, (P + 1, ...), with that of the unknown one for each newer annotator,
    (people + 1, ...)."""
    more = np.repeat(rows[-1:], people + 1 - len(rows), 0)
    return np.concatenate([rows, more])


_ENOUGH_SCORED = 20  # votes of a fold given without a pre-annotation; with fewer, all votes of the fold are looked at


def preferably_scored(targets: Targets, fold: Codes) -> NDArray[np.floating]:
    """What votes weigh where settings are chosen and trainings stopped: only those given without a pre-annotation, in
    folds (N,) with enough of them."""
    number, place = np.unique(fold, return_inverse=True)
    enough = np.bincount(place, weights=targets.scored, minlength=len(number)) >= _ENOUGH_SCORED
    return targets.weight * (targets.scored | ~enough[place])
