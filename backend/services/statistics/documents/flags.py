"""Votes worth a second look, with what speaks against each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backend.services.statistics.documents.header import Header


class ReasonKind(StrEnum):
    """Why a vote is worth a second look."""

    OWN_MODEL = "own-model"  # unlike what this annotator's own out-of-sample model expects
    OTHERS = "others"  # unlike what the other votes say, through this annotator's habits
    CONTRADICTION = "contradiction"  # they said something else of a nearly equal task
    SPEED = "speed"  # far quicker than they usually are


class Checked(StrEnum):
    """What a person said of a flag after looking."""

    FINE = "fine"  # the vote is meant as it stands; it is not flagged again and counts more in training
    SLIP = "slip"  # a mistake; it counts little in training until it is changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that speaks against a vote."""

    kind: ReasonKind
    strength: float  # log-odds in nats that it adds; higher is more suspicious
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A vote worth a second look. It is named by (unit, annotator, control, given)."""

    task: int
    unit: str
    annotator: str
    name: str
    control: str
    given: str  # the label that was given
    value: str  # the same as canonical JSON of the value: what `check` wants back
    expected: str | None  # the label that the evidence points to
    score: float  # log-odds of being a slip, in nats; ranks the list
    reasons: tuple[Reason, ...]  # strongest first
    twin: int | None  # the nearly equal task of a contradiction
    checked: str  # "" or a `Checked`
    cause: str  # why the vote differs, a value of `model.quality.causes.Cause`; those named "slip" are all flagged


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Most suspicious first; cut at `LISTED`. Votes that were checked stay in the list as long as they stand."""

    header: Header
    rows: tuple[Flag, ...]
    votes: int  # that were judged
    checked: int  # of the votes that stand
    uses: tuple[str, ...]  # kinds of evidence that were there: `ReasonKind` values
