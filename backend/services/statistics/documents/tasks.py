"""Tasks that deserve attention, and the consensus of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.services.statistics.documents.header import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One unit on one control."""

    task: int  # Label Studio's id
    unit: str  # the task id, or "<task>/<region>"
    votes: int
    label: str | None  # Dawid-Skene consensus
    confidence: float | None
    entropy: float | None  # of the votes, nats
    surprise: float | None  # disagreement that the annotators' habits do not explain, in standard errors
    ambiguity: float | None  # probability that the task can be read in two ways, given votes and habits of its givers
    cause: str  # "ambiguous", "careless" (the votes differ by habits and slips), "agreed", "unclear" (too few votes)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """By control."""

    header: Header
    controls: Mapping[str, TaskLists]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusColumns:
    """Dawid-Skene labels of all units with votes on one control, as equally long columns in order of task ids."""

    units: tuple[str, ...]
    labels: tuple[str | None, ...]
    confidence: tuple[float | None, ...]
    votes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """By control. Large: for exports, not for pages."""

    header: Header
    controls: Mapping[str, ConsensusColumns]
