"""What all documents have in common: the header, and figures with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

NOTHING_CHOSEN = "(nothing chosen)"
LISTED = 300  # rows that a list of tasks or flags has at most


class DocumentKind(StrEnum):
    """What is stored; PROFILE is there once for each annotator, all others once a project."""

    OVERVIEW = "overview"
    ANNOTATORS = "annotators"
    PROFILE = "profile"
    TASKS = "tasks"
    FLAGS = "flags"
    CONSENSUS = "consensus"
    REGIONS = "regions"
    ALIKE = "alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a document was made from."""

    project: str  # project key
    version: str  # changes exactly when the content may have changed: good as an ETag
    computed_at: datetime  # UTC
    changes: int  # VoteCounts.changes when the votes were read
    model_version: str | None  # published version whose out-of-sample predictions were used ("r12"); None without
    votes: int  # current votes that were read


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its 95 % interval; low and high are None where no interval can be given."""

    value: float | None
    low: float | None = None
    high: float | None = None


ALONE = "votes alone"  # instead of a version
UNKNOWN = Figure(value=None)
