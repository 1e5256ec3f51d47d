"""Protocols between the services and what they stand on. `bootstrap` is the one place that picks implementations.

Every store method is one short transaction, safe to call from several threads and processes, and raises nothing but
`PolyvoxError` or a database error. `project` arguments are project keys (see `records`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend import records
from model.data.votes import Votes

Clock = Callable[[], datetime]  # timezone-aware UTC
Progress = Callable[[float, str], None]  # fraction done, note for people; may raise to stop the job


def utc_now() -> datetime:
    """The clock of everything that is given no other."""
    return datetime.now(UTC)


class ProjectStore(Protocol):
    """Projects, their overrides of settings, and how far each was read."""

    def ensure(
        self, key: str, *, title: str = "", label_config: str = "", matters: Callable[[str, str], bool] | None = None,
    ) -> records.Project:
        """Get the project, making it if new; a non-empty title or config that differs is stored. Where `matters` says
        so of the config before and after, the mark EVERY_TASK is set in the same transaction."""
    def introduce(self, key: str, *, unread: int) -> records.Project:
        """Get the project that a request names; a new one is made without title and configuration. Of those of which
        nothing was read yet at most `unread` are kept: one that could not be read makes room, else TooMany is raised.
        """
    def get(self, key: str) -> records.Project | None: ...
    def by_label_studio_id(self, label_studio_id: int) -> records.Project | None:
        """The newest project with this id (webhooks may carry no creation time), of those that were read if any was."""
    def all(self) -> list[records.Project]: ...
    def update_settings(self, key: str, changes: Mapping[str, Any]) -> None: ...
    def sync_state(self, key: str) -> records.SyncState: ...
    def set_sync_state(self, key: str, state: records.SyncState) -> None:
        """All of it but `sweep_wanted` and what belongs to a reread, which others may set meanwhile."""
    def want_sweep(self, key: str) -> None:
        """Ask for a comparison of all task ids by the next run that begins."""
    def set_reread(self, key: str, *, last: datetime | None, begun: datetime | None = None, after: int = 0) -> None:
        """How far every task is read again: `last_reread`, `reread_begun` and `reread_after`."""
    def want_reread(self) -> None:
        """Ask for every task of every project to be read again: there is one Label Studio, and it failed."""
    def findings(self, key: str) -> list[str]:
        """Sentences of all checks of the project, for people; [] where nothing is wrong."""
    def set_findings(self, key: str, check: str, sentences: Sequence[str]) -> None:
        """What a check found; replaces what it found before."""


class TaskStore(Protocol):
    """Tasks, and marks of those that must be read again."""

    def take_over(self, project: str, snapshots: Iterable[records.TaskSnapshot]) -> int:
        """Make tasks, annotations and current votes equal the snapshots, in one transaction; returns changed votes.

        Earlier revisions of votes stay in the history. Annotations that a snapshot lacks are marked deleted.
        """
    def mark_dirty(self, project: str, task_ids: Iterable[int]) -> None:
        """One write that survives a killed process; a task that is marked already gets a new sequence number. (After a
        power cut the comparison at the start finds what a mark stood for.)"""
    def dirty(self, project: str, limit: int) -> list[tuple[int, int]]:
        """(task id, sequence number), oldest first."""
    def clear_dirty(self, project: str, cleared: Iterable[tuple[int, int]]) -> None:
        """Forget marks; one that was renewed since (higher sequence number) stays."""
    def dirty_count(self, project: str) -> int: ...
    def newest_mark(self, project: str) -> int:
        """Highest sequence number of a mark; 0 without any. A new or renewed mark always raises it."""
    def task_of_annotation(self, project: str, annotation_ids: Iterable[int]) -> dict[int, int]:
        """annotation id -> task id, for those known (delete events carry no task)."""
    def known_annotator(self, project: str, annotation_ids: Iterable[int]) -> dict[int, str]:
        """annotation id -> the annotator last known for it (accounts may be deleted since)."""
    def remove(self, project: str, task_ids: Iterable[int]) -> int:
        """Tasks that are gone from Label Studio; their votes leave the current view. Returns how many were known."""
    def ids(self, project: str) -> NDArray[np.int64]:
        """Sorted ids of all present tasks."""
    def get(self, project: str, task_ids: Sequence[int]) -> list[records.Task]:
        """Those that are known, in the order asked for."""
    def annotations(self, project: str, task_ids: Sequence[int]) -> list[records.Annotation]:
        """The raw annotations on these tasks that still are there, skipped ones left out; by task and id."""
    def iterate(self, project: str, *, after_id: int = 0, batch: int = 500) -> Iterator[list[records.Task]]: ...
    def count(self, project: str) -> int: ...


class VoteStore(Protocol):
    """Votes, current and past."""

    def current(self, project: str) -> Votes:
        """The latest vote per (unit, annotator, control); read column-wise, no object per row."""
    def of_tasks(self, project: str, task_ids: Sequence[int]) -> list[records.StoredVote]:
        """Current votes on these tasks."""
    def differing(self, project: str, control: str, pair: tuple[str, str], *, offset: int, limit: int
                  ) -> tuple[int, list[records.Difference]]:
        """How many units two annotators answered differently, and some of them in the order of tasks."""
    def of_annotators(self, project: str, names: Sequence[str]) -> list[records.StoredVote]:
        """Current votes of these annotators, in order of time."""
    def counts(self, project: str) -> records.VoteCounts: ...
    def activity(self, project: str) -> list[records.AnnotatorActivity]:
        """Most active first."""
    def voters(self, project: str) -> Sequence[str]:
        """Annotators with current votes, most active first."""
    def set_names(self, project: str, names: Mapping[str, str]) -> None:
        """Display names of annotators."""
    def log_arm(self, project: str, pairs: Collection[tuple[int, str]], *, version: str) -> None:
        """Record that pre-annotations were withheld from these (task, annotator) pairs; repeats are ignored."""


class JobStore(Protocol):
    """The queue."""

    def enqueue(
        self, kind: records.JobKind, project: str, *, payload: Mapping[str, Any] | None = None,
        not_before: datetime | None = None, replace: bool = True,
    ) -> records.Job:
        """Queue a job. With `replace`, a queued job of the same kind and project is kept (its earlier start wins,
        the payload is renewed) instead of a second one being made."""
    def claim(
        self, owner: str, *, lease_s: float, kinds: Sequence[records.JobKind] | None = None, job_id: str | None = None,
    ) -> records.Job | None:
        """Atomically take the oldest due job (with `job_id` this one only, if it is due); never a second running one of
        the same kind and project. Jobs whose lease ran out count as queued again (attempts + 1); after the last attempt
        they fail."""
    def due(self, kinds: Sequence[records.JobKind], *, limit: int) -> list[str]:
        """Ids of the jobs that a claim could take now, longest due first; writes nothing."""
    def release(self, process: str, *, error: str) -> int:
        """Take back the running jobs of a process that is known to be gone (owners are "<process>:<lane>"), as if their
        leases had run out. Returns how many there were."""
    def heartbeat(self, job_id: str, owner: str, *, progress: float, note: str, lease_s: float) -> bool:
        """False when the job is not ours any more; then stop working on it."""
    def finish(self, job_id: str, owner: str, *, figures: Mapping[str, Any]) -> None: ...
    def fail(self, job_id: str, owner: str, *, error: str, retry_at: datetime | None) -> None: ...
    def give_back(self, job_id: str, owner: str, *, error: str) -> None:
        """Queue a running job again as if it had not been claimed: the attempt does not count."""
    def get(self, job_id: str) -> records.Job | None: ...
    def recent(
        self, project: str | None = None, *, kind: records.JobKind | None = None, limit: int = 20,
    ) -> list[records.Job]:
        """Newest first."""
    def last_ended(self, project: str) -> list[records.Job]:
        """Of each kind the newest job that has ended, well or not."""
    def interrupted(self, project: str, *, since: datetime) -> list[records.Job]:
        """Jobs that were cut off (their process died, was stopped or went silent), the last to be so first: those that
        are open, and those that ended since then."""
    def prune(self, before: datetime, *, limit: int = 1000) -> int:
        """Delete jobs that ended before that time, at most `limit` of them; of each kind and project the last to end
        well and the last to fail stay. Returns how many went."""
    def counts(self, states: Sequence[records.JobState]) -> dict[tuple[records.JobKind, records.JobState], int]:
        """Jobs of all projects in these states; combinations without a job are missing. Reads no finished job."""
    def pending(self, project: str, kind: records.JobKind) -> records.Job | None:
        """The queued or running job of this kind."""


class VersionStore(Protocol):
    """Trained versions, and which one answers."""

    def next_number(self, project: str) -> int:
        """One more than the highest there is, and than the highest that `reserve` was told of."""
    def reserve(self, project: str, number: int) -> None:
        """Numbers up to this one were given by an earlier life of Polyvox; writes only what is news."""
    def add(self, version: records.Version) -> None:
        """Record a version; when its verdict is PUBLISHED the project's pointer moves in the same transaction."""
    def published(self, project: str) -> records.Version | None: ...
    def recent(
        self, project: str, *, limit: int = 20, verdict: records.Verdict | None = None
    ) -> list[records.Version]:
        """Newest first; with `verdict` only those that were judged so."""


class DeliveryStore(Protocol):
    """What was sent to Label Studio and could be seen there."""

    def latest(self, project: str) -> records.Delivery | None: ...
    def save(self, delivery: records.Delivery) -> None: ...
    def own(self, project: str) -> dict[tuple[int, str], records.OwnPrediction]:
        """What was delivered last, by (task id, annotator)."""
    def set_own(self, project: str, predictions: Iterable[records.OwnPrediction]) -> None: ...
    def remember_shown(self, project: str, task_ids: Iterable[int], *, at: datetime) -> None:
        """Pre-annotations of ours exist on these tasks from now on (the first time counts)."""
    def shown_since(self, project: str, task_ids: Sequence[int]) -> dict[int, datetime]: ...


class TokenStore(Protocol):
    """Annotators' own tokens, sealed."""

    def put(self, token: records.AnnotatorToken) -> None:
        """One per (scope, annotator); a second one takes the place of the first."""
    def of(self, project: str) -> list[records.AnnotatorToken]:
        """Those for this project, of each annotator one: the project's own rather than the one for all projects."""
    def all(self) -> list[records.AnnotatorToken]: ...
    def remove(self, scope: str, annotator: str) -> bool:
        """False when there was none."""
    def set_problem(self, scope: str, annotator: str, problem: str) -> None: ...


class DraftStore(Protocol):
    """Drafts that Polyvox made."""

    def of(self, project: str) -> dict[tuple[int, str], records.Draft]:
        """By (task id, annotator)."""
    def put(self, project: str, draft: records.Draft) -> None: ...
    def forget(self, project: str, pairs: Iterable[tuple[int, str]]) -> None: ...


class StatisticsStore(Protocol):
    """Documents of statistics, and what people said of flagged votes."""

    def replace(
        self, project: str, version: str, bodies: Mapping[tuple[str, str], str], *, kinds: Collection[str] | None = None
    ) -> None:
        """Put documents (kind, part) -> JSON in the place of all that were there, or of all of some `kinds`, in one
        transaction."""
    def version(self, project: str, kind: str, part: str = "") -> str | None:
        """Version of a stored document; reads no body."""
    def body(self, project: str, kind: str, part: str = "") -> tuple[str, str] | None:
        """(version, JSON) of a document."""
    def history(self, project: str) -> records.VoteHistory:
        """The latest revision of every annotation's votes, deleted and repeated ones too, read column-wise."""
    def drawn(self, project: str) -> Iterator[records.DrawnAnnotation]:
        """Annotations that are there and were not skipped, by task and annotator, the newest last."""
    def annotations_made(self, project: str) -> int:
        """Differs after each change of annotations, also of those without a vote."""
    def checks(self, project: str) -> list[records.Check]:
        """In order of (unit, annotator, control)."""
    def check(self, project: str, check: records.Check) -> None:
        """One per (unit, annotator, control); a second one takes the place of the first."""
    def uncheck(self, project: str, unit: str, annotator: str, control: str) -> bool:
        """False when there was none."""
    def checks_made(self, project: str) -> int:
        """Microseconds since the epoch of the last check, plus how many there are: differs after each change."""


class StampStore(Protocol):
    """Stored instants that lie ahead of the clock, and notices of what became of it."""

    def ahead_s(self, *, by_s: float) -> float:
        """How far the furthest stamp lies ahead of the clock, in seconds; 0 when none does by more than `by_s`."""
    def put_right(self, *, by_s: float, shift_s: float = 0.0) -> None:
        """Move the stamps that lie more than `by_s` ahead back by one span: by `shift_s` (negative) where it is known
        by how much the clock was set, and at least so far that none is ahead. Jobs that wait for such an instant are
        due at once."""
    def note(self, name: str, sentence: str) -> None:
        """Keep a notice; a second one of the same name takes the place of the first."""
    def notices(self) -> list[records.Notice]: ...


class InstanceStore(Protocol):
    """Which instance this database is (see `services.identity`)."""

    def get(self) -> records.Instance: ...
    def contest(self, address: str) -> None:
        """Note who else is this instance, or took our webhook over; it stays until `adopt`."""
    def adopt(self) -> records.Instance:
        """Become an instance of its own, here: another id, and nothing is left of marks and contenders."""
    def mark(self, project: str) -> records.WebhookMark | None: ...
    def offer_mark(self, project: str, mark: str) -> None:
        """Note a mark before it is written on the webhook."""
    def settle_mark(self, project: str) -> None:
        """The offered mark was written."""


class Store(Protocol):
    """All of the state; one database."""

    @property
    def projects(self) -> ProjectStore: ...
    @property
    def tasks(self) -> TaskStore: ...
    @property
    def votes(self) -> VoteStore: ...
    @property
    def jobs(self) -> JobStore: ...
    @property
    def versions(self) -> VersionStore: ...
    @property
    def deliveries(self) -> DeliveryStore: ...
    @property
    def tokens(self) -> TokenStore: ...
    @property
    def drafts(self) -> DraftStore: ...
    @property
    def statistics(self) -> StatisticsStore: ...
    @property
    def stamps(self) -> StampStore: ...
    @property
    def instance(self) -> InstanceStore: ...
    def refuses(self, *, wait_s: float) -> str:
        """Why the database takes no write, for the middle of a sentence, after `wait_s` of waiting for its turn; ""
        when it takes one. Changes nothing."""
    def close(self) -> None: ...


class LabelStudio(Protocol):
    """The Label Studio API, as far as Polyvox uses it. Raises `LabelStudioError`, which says whether to retry."""

    def waits_for(self, thread: int | None) -> tuple[str, float] | None:
        """What a thread (by its ident) asked long ago and was not answered yet, such as ("GET /api/tasks", 25.0)."""
    def project(self, project_id: int) -> dict[str, Any]: ...
    def tasks_by_id(self, project_id: int, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """With raw annotations (`completed_by` an int or null), in as few calls as possible; ids that are gone are
        missing from the answer."""
    def changed_tasks(
        self, project_id: int, since: datetime | None, *, page_size: int = 100,
    ) -> Iterator[list[dict[str, Any]]]:
        """Pages of tasks with `updated_at >= since`, ordered by (updated_at, id), with raw annotations."""
    def task_ids(self, project_id: int) -> Iterator[list[int]]:
        """Ids of all tasks, in pages."""
    def users(self) -> dict[str, str]:
        """annotator id -> e-mail."""
    def import_predictions(self, project_id: int, predictions: Sequence[Mapping[str, Any]]) -> int:
        """Bulk import of {task, result, score, model_version} that are not there yet; returns how many are there now.
        Tasks that are gone are left out."""
    def prediction_versions(self, project_id: int) -> dict[str, int]:
        """model_version -> number of predictions."""
    def predicted_tasks(self, project_id: int, version: str) -> set[int]:
        """Ids of the tasks that have a prediction of this version (to resume an interrupted import)."""
    def select_version(self, project_id: int, version: str) -> None: ...
    def selected_version(self, project_id: int) -> str: ...
    def delete_version(self, project_id: int, version: str) -> None: ...
    def webhooks(self, project_id: int) -> list[dict[str, Any]]: ...
    def ml_backends(self, project_id: int) -> list[dict[str, Any]]: ...
    def register_webhook(self, project_id: int, url: str, headers: Mapping[str, str]) -> None: ...
    def views(self, project_id: int) -> list[dict[str, Any]]:
        """Tabs of the Data Manager, whoever made them: {id, data: {title, filters ...}}."""
    def save_view(self, project_id: int, view_id: int | None, data: Mapping[str, Any]) -> None:
        """Make a tab, or change the one of this id."""
    def delete_view(self, view_id: int) -> None:
        """One that is gone already is no error."""


class Desk(Protocol):
    """Label Studio as one annotator, by their own token. Raises `LabelStudioError`."""

    def who(self) -> tuple[str, str]:
        """(id, e-mail) of the token's owner."""
    def drafts(self, task_id: int) -> list[dict[str, Any]]:
        """Drafts on a task, of all annotators; `user` is an e-mail."""
    def create_draft(self, task_id: int, result: Sequence[Mapping[str, Any]]) -> dict[str, Any]: ...
    def annotate(self, task_id: int, result: Sequence[Mapping[str, Any]]) -> None:
        """Submit an annotation."""
    def update_draft(self, draft_id: int, result: Sequence[Mapping[str, Any]]) -> dict[str, Any]: ...
    def delete_draft(self, draft_id: int) -> None:
        """One that is gone already is no error."""


OpenDesk = Callable[[str], Desk]  # token -> desk; makes no request


class TokenSource(Protocol):
    """Encoded content, cached by content and encoder."""

    def texts(self, texts: Sequence[str], *, progress: Progress | None = None) -> list[NDArray[np.float16]]:
        """Tokens (T_i, D) of each text, encoding what is not cached, in batches."""
    def cached(self, texts: Sequence[str]) -> list[bool]: ...
