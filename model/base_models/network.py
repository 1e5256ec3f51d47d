"""The query network (QuMAB), which reads content, alone and with the votes that a unit already has: two base models.

Both are answers of one committee of networks (`model.qumab`), which is fitted to all controls and folds together, in
`joint`: the network is the one base model that is not fitted control by control, so `crossfit` is its own. The members
of a fold never learned from it, and all members together are what answers; nothing is fitted once more on everything.

No torch is loaded before something is fitted or asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from model.base_models.base import (
    Arrays,
    BaseModel,
    Batch,
    Course,
    Fitted,
    Flags,
    Floats,
    OutOfFold,
    Reading,
    Sample,
    Stored,
    rows_of,
)

if TYPE_CHECKING:
    from model.qumab.committee import Committee


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedNetwork(Fitted):
    """What a committee says of one control from content alone."""

    control: str
    committee: Committee

    def scores(self, batch: Batch) -> Floats:
        alone, _ = read(self.committee, batch.reading)
        return rows_of(alone[self.control], batch.source)

    def votes(self, sample: Sample) -> Floats:
        from model.base_models.joint import scores_of_votes

        return scores_of_votes(self.committee, {self.control: sample}, {self.control: ()})[0][self.control]

    def arrays(self) -> Arrays:
        """Nothing of its own: `Ladder.save` keeps the committee, once for all controls."""
        return {}

    def widened(self, people: int) -> Self:
        """The same: the generic query answers for whom the committee does not know, until a training grows it."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConditioned(FittedNetwork):
    """What it says where it may read the votes of others."""

    def scores(self, batch: Batch) -> Floats:
        alone, conditioned = read(self.committee, batch.reading)
        return rows_of((conditioned if batch.reads_votes else alone)[self.control], batch.source)

    def votes(self, sample: Sample) -> Floats:
        from model.base_models.joint import scores_of_votes

        if sample.visible is None:
            return FittedNetwork.votes(self, sample)
        views = {self.control: (sample.visible,)}
        return scores_of_votes(self.committee, {self.control: sample}, views)[1][0][self.control]


def read(committee: Committee, reading: Reading | None) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
    """control -> scores (B, P + 1, C), from content alone and with the observed votes read; content is read once."""
    from model.base_models.joint import columns

    assert reading is not None, "the tokens of the units are needed"
    return reading.once(committee, lambda: committee.scores_given(
        reading.tokens, {name: columns(votes) for name, votes in reading.votes.items() if votes.has.any()}))


@dataclass(frozen=True, kw_only=True)
class Network(BaseModel):
    """The network alone."""

    name: ClassVar[str] = "network"
    title: ClassVar[str] = "Neural network that knows each annotator"
    weight: ClassVar[float] = 0.6
    weight_observed: ClassVar[float] = 0.08
    reads_content: ClassVar[bool] = True
    reads_votes: ClassVar[bool] = False

    def fit(self, sample: Sample, start: Fitted | None = None) -> Fitted:
        """A committee for one control, the members of each fold stopped early on it; `start` is not used."""
        from model.base_models.joint import committee_of

        return self._of(sample.control, committee_of(sample))

    def crossfit(
        self, samples: Mapping[str, Sample], views: Mapping[str, Sequence[Flags]], course: Course
    ) -> dict[str, OutOfFold]:
        from model.base_models.joint import trained

        found = trained(samples, views, course)
        return {name: OutOfFold(
            model=self, fitted=self._of(name, found.committee),
            scores=tuple(each[name] for each in (found.conditioned if self.reads_votes else (found.alone,))),
        ) for name in samples}

    def from_arrays(self, stored: Stored) -> Fitted | None:
        return self._of(stored.control, stored.committee())

    def _of(self, control: str, committee: Committee) -> Fitted:
        return FittedNetwork(control=control, committee=committee)


@dataclass(frozen=True, kw_only=True)
class Conditioned(Network):
    """The network that has read the votes of others on the unit."""

    name: ClassVar[str] = "conditioned"
    title: ClassVar[str] = "Neural network that has read the others\u2019 labels"
    weight: ClassVar[float] = 0.0
    weight_observed: ClassVar[float] = 0.24
    reads_votes: ClassVar[bool] = True

    def from_arrays(self, stored: Stored) -> Fitted | None:
        """None in a checkpoint from before networks read votes."""
        return self._of(stored.control, stored.committee()) if "gaps" in stored.numbers else None

    def _of(self, control: str, committee: Committee) -> Fitted:
        return FittedConditioned(control=control, committee=committee)
