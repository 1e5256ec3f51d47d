"""What an explanation is as data: frozen, JSON-able by the codec of the statistics.

Weights are over the `places` of a task (`model.explain.places`): `attention` says where an annotator's query looks,
`attribution` by how much the probability of their answer falls when a place is left out. A faithfulness is the area
between deletion by these weights and deletion by chance: above 0 they point at what the answer rests on, at 0 they are
no better than chance. Explained is the network from content alone; `served` is what Polyvox hands out and knows more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model.explain.places import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithful:
    """How far weights lead chance on this task."""

    attention: float
    pooled: float  # the mean attention of all annotators
    attribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One annotator on one control."""

    answer: str  # of the network, from content alone
    probability: float
    served: str  # with all that is known
    confidence: float
    vote: str | None  # what they gave; None without
    attribution: tuple[float, ...] | None  # by place; None where time ran out or there is one place only
    faithful: Faithful | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One annotator."""

    annotator: str
    name: str
    attention: tuple[float, ...]  # by place; the rest to 1 went to tokens that stand for no place
    controls: Mapping[str, Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExplanation:
    """One task."""

    project: str
    task: int
    version: str
    text: str  # what the places of kind "text" count characters of
    pieces: Mapping[str, int]  # kind -> how many images, sounds ... there are
    places: tuple[Place, ...]
    pooled: tuple[float, ...]  # mean attention of all annotators
    network_share: Mapping[str, float]  # control -> weight of the network in what is served for content alone
    annotators: tuple[Explained, ...]
    complete: bool  # False where time ran out before places could be left out


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEffect:
    """A word that moves an annotator to a label (or away from it) more than the others, over the tasks that have it."""

    word: str
    label: str
    own: float  # mean change of this annotator's probability of the label by the word
    others: float  # the same of the other annotators
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributions:
    """One annotator on one control; leads are means over tasks with 95 % intervals, beside chance."""

    tasks: int  # that words were taken from
    measured: int  # of them, those that the leads rest on
    lead: float  # by how much the answer falls faster when words go by attribution than by chance
    lead_low: float
    lead_high: float
    own_lead: float  # the same against the order that matters to all annotators together
    own_low: float
    own_high: float
    words: tuple[WordEffect, ...]  # strongest first; () where the lead is no better than chance

    @property
    def faithful(self) -> bool:
        """Whether the weights are better than chance for certain."""
        return self.lead_low > 0.0

    @property
    def personal(self) -> bool:
        """Whether this annotator's own weights explain their labels better than everybody's."""
        return self.own_low > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorAttributions:
    """All controls of one annotator, by one version."""

    project: str
    annotator: str
    version: str
    controls: Mapping[str, Attributions]
