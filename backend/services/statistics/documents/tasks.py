"""Tasks that deserve attention, and the consensus of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.services.statistics.documents.header import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingVote:
    """Why one vote differs from the others on its unit."""

    annotator: str
    given: str
    instead: str  # what the others' votes come to
    cause: str  # "habit" of this annotator, "readings", "slip" or "cannot-tell"
    times: float  # how often they said the same elsewhere, where the others said `instead`
    of: float  # of how many such votes


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One unit on one control."""

    task: int  # Label Studio's id
    unit: str  # the task id, or "<task>/<region>"
    votes: int
    label: str | None  # the consensus: probably the majority of the whole panel
    confidence: float | None  # how probably, calibrated
    entropy: float | None  # of the votes, nats
    surprise: float | None  # disagreement that the annotators' habits do not explain, in standard errors
    ambiguity: float | None  # probability that the task can be read in two ways, given votes and habits of its givers
    cause: str  # why its votes differ, as far as it is known: a value of `model.quality.causes.Cause`
    differing: tuple[DifferingVote, ...]  # the votes that are not what the others come to


@dataclass(frozen=True, slots=True, kw_only=True)
class Camp:
    """Annotators who gave the same label."""

    label: str
    annotators: tuple[str, ...]
    weight: float  # sum of what their votes are worth: kappa, shrunk and not below 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedTask:
    """A task on which two camps stand against each other."""

    row: TaskRow
    camps: tuple[Camp, Camp]  # the heavier one first
    others: tuple[Camp, ...]
    division: float  # weight of the lighter camp: reliable votes that would have to be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLists:
    """The tasks of one control that deserve attention; each list is cut at `LISTED`."""

    hardest: tuple[TaskRow, ...]  # highest ambiguity and surprise first
    divided: tuple[DividedTask, ...]  # highest division first
    causes: Mapping[str, int]  # cause -> units, over all units with votes
    split: int  # units on which not all votes are equal; a single vote is "cannot-tell" and not among them
    few: int  # of the split ones whose cause cannot be told: those with too few votes for it
    habits: Mapping[str, int]  # annotator -> units whose cause is their habit


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """By control."""

    header: Header
    controls: Mapping[str, TaskLists]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusColumns:
    """The consensus of all units with votes on one control, as equally long columns in order of task ids."""

    units: tuple[str, ...]
    labels: tuple[str | None, ...]
    confidence: tuple[float | None, ...]
    votes: tuple[int, ...]
    dawid_skene: tuple[str | None, ...] = ()  # for those who ask: from votes alone, not calibrated
    dawid_skene_confidence: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """By control. Large: for exports, not for pages."""

    header: Header
    controls: Mapping[str, ConsensusColumns]
