"""Frozen records that cross the borders between the parts of the backend. No behaviour, no imports of other parts.

Identity: a project is keyed by "<Label Studio id>.<created epoch>" (`project key`), since a reset Label Studio reuses
ids. A unit is "<task id>" or "<task id>/<region id>"; an annotator is the Label Studio user id as a string, or
"deleted:<annotation id>" where the account is gone and nobody knows who it was.
All times are timezone-aware UTC datetimes; durations carry their unit in the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Value
from model.data.votes import Provenance, Votes

EVERY_TASK = 0  # a dirty mark that stands for all tasks of a project; no task has this id


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A Label Studio project as Polyvox knows it."""

    key: str  # "12.1764288000"
    label_studio_id: int
    title: str
    label_config: str  # XML as Label Studio sent it last; "" until known
    version: str | None  # name of the published version ("r12"), None before the first
    settings: Mapping[str, Any]  # overrides of the service-wide settings (shadow_mode, min_votes ...)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncState:
    """How far the reconciler has read a project."""

    cursor_time: datetime | None = None  # `updated_at` of the last task taken over
    cursor_id: int = 0  # its id; ties on updated_at are broken by id
    last_sweep: datetime | None = None  # beginning of the run that last compared all ids
    sweep_wanted: datetime | None = None  # when a comparison was last asked for; only `want_sweep` changes it
    last_reread: datetime | None = None  # beginning of the last reading of every task; only `set_reread` changes it
    reread_begun: datetime | None = None  # beginning of the one that is not finished yet; as above
    reread_after: int = 0  # the task, by id, up to which that one came; as above
    reread_wanted: datetime | None = None  # when Label Studio last failed; only `want_reread` changes it
    last_success: datetime | None = None
    last_error: str = ""  # sentence for the status page; "" when the last try went well
    failures: int = 0  # in a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of a project."""

    id: int
    data: Mapping[str, Any]
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A raw Label Studio annotation, kept so that a later label type can be read out of it without refetching."""

    id: int
    task_id: int
    annotator: str
    result: Sequence[Mapping[str, Any]]
    was_cancelled: bool
    ground_truth: bool
    created_at: datetime
    updated_at: datetime
    lead_time_s: float | None
    imported: bool  # came with a task import
    parent_prediction: int | None
    predicted: Sequence[Mapping[str, Any]] | None = None  # regions of the prediction on the screen, where it says so
    timed: bool = True  # it says itself when it was made or changed; False: the times are those of its task


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnAnnotation:
    """What an annotation draws, without what else is known of it."""

    task_id: int
    annotator: str
    result: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVote:
    """One decoded label of one annotator on one unit with one control."""

    unit: str
    task_id: int
    annotation_id: int
    annotator: str
    control: str
    value: Value
    updated_at: datetime
    lead_time_s: float | None
    provenance: Provenance
    shown: bool  # a pre-annotation of ours could have been seen before the vote was given
    control_arm: bool  # the (task, annotator) pair is in the control arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A unit that two annotators answered differently."""

    task: int
    unit: str
    first: Value
    second: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot:
    """A task with everything read from it; the store takes it over as a whole."""

    task: Task
    annotations: Sequence[Annotation]
    votes: Sequence[StoredVote]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCounts:
    """What the training trigger and the status page need to know, without reading the votes."""

    total: int
    tasks_with_votes: int
    annotators: int
    # Distinct answers of the control that has most; free texts are none. Where there are only rankings, 2: an order
    # tells of several items, so that something is to be learned even of one that everybody gives.
    classes: int
    last_change: datetime | None  # when a vote was last stored or removed
    changes: int  # grows by one with each stored, changed or removed vote, for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorActivity:
    """How much and how lately somebody labelled."""

    annotator: str
    name: str  # e-mail or name where known, else the id
    votes: int
    last_vote: datetime


class JobKind(StrEnum):
    """What a job does."""

    SYNC = "sync"  # refetch the dirty tasks of a project
    RECONCILE = "reconcile"  # walk updated_at, sweep ids
    REREAD = "reread"  # read every task again, a piece of them at a time
    ENCODE = "encode"  # fill the feature cache
    TRAIN = "train"
    DELIVER = "deliver"
    STATISTICS = "statistics"  # consensus, annotators, tasks and flags of a project, for people
    GAPS = "gaps"  # what is filled, and what to ask for next


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row of the queue; the row is the queue."""

    id: str  # UUID
    kind: JobKind
    project: str  # project key
    payload: Mapping[str, Any]
    state: JobState
    progress: float  # 0..1
    note: str  # what it is doing, for people
    error: str
    figures: Mapping[str, Any]
    attempts: int
    created_at: datetime
    not_before: datetime
    started_at: datetime | None
    finished_at: datetime | None
    lease_until: datetime | None
    lease_owner: str
    interrupted_at: datetime | None = None  # when a try of it was cut off last


class Verdict(StrEnum):
    """What the gate said of a version."""

    PUBLISHED = "published"
    REJECTED = "rejected"  # the gate held it back; `reason` says why


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A trained checkpoint and what the gate said about it."""

    project: str
    name: str  # "r12"
    number: int
    path: str  # relative to the checkpoint folder
    verdict: Verdict
    reason: str  # one sentence
    figures: Mapping[str, Any]  # held-out figures and weights of base models, counts, seconds
    changes: int  # VoteCounts.changes at the time the votes were read
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrediction:
    """What was last delivered to one annotator for one task; `digest` identifies the content."""

    task_id: int
    annotator: str
    version: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorToken:
    """An annotator's own access token, given of their own accord so that Polyvox may make drafts for them."""

    scope: str  # project key; "" for all projects
    annotator: str
    email: str
    sealed: str  # encrypted; only `backend.services.annotator_tokens` reads it
    added_at: datetime
    problem: str = ""  # sentence; "" while it works


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft that Polyvox made for an annotator, as it left it."""

    task_id: int
    annotator: str
    draft_id: int | None  # None until Label Studio has said so
    version: str  # that wrote it ("r12")
    digest: str  # identifies what the annotator sees
    written: str  # hash of the result as it was written; "" before the first
    pending: str = ""  # hash of the result that is being written, "-" while it is being removed, else ""
    updated_at: str = ""  # Label Studio's stamp after our last write, as text
    theirs: bool = False  # the annotator changed or discarded it: never touched again


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a person said of a vote after looking at it again."""

    unit: str
    annotator: str
    control: str
    value: str  # JSON of the vote's value then (`Value.to_json`); says nothing about a vote that changed since
    verdict: str  # "fine" or "slip"
    checked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VoteHistory:
    """N votes with what `Votes` does not carry; of every annotation the latest revision."""

    votes: Votes  # (N,); weight 1, and `scored` as in the current view
    current: NDArray[np.bool_]  # (N,) in the current view
    lead_time_s: NDArray[np.float64]  # (N,) NaN where unknown
    shown: NDArray[np.bool_]  # (N,) a pre-annotation could be seen
    control_arm: NDArray[np.bool_]  # (N,)


class DeliveryStep(StrEnum):
    """Where a delivery stands; a crash resumes at the recorded step."""

    IMPORT = "import"
    SELECT = "select"
    DELETE = "delete"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """State of the latest delivery of a project."""

    project: str
    version: str  # the consensus prediction version in Label Studio, e.g. "consensus@r12"
    step: DeliveryStep
    started_at: datetime
    finished_at: datetime | None
    imported_through: int = 0  # highest task id whose consensus was imported, so that a resumed import makes no doubles
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something to be said of the service as a whole, for a while."""

    name: str
    sentence: str
    noticed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Which Polyvox a database is. A copy has the id of the one that it was copied from, until it is adopted."""

    id: str
    moved: bool  # it lies elsewhere than where it got its id
    contested: str  # address of another Polyvox with the same id, or one that took our webhook over; "" without


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookMark:
    """What we wrote on our webhook of a project; after a crash it may be either of the two."""

    mark: str  # "" before the first was settled
    offered: str
    written_at: datetime
