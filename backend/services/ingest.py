"""Takes in what Label Studio tells: marks tasks when an event comes in, refetches them in a job.

`webhook` runs inside the annotator's own request (Label Studio waits for it, for a second at most, and never repeats
it), so it does no more than one durable write. Its payload is a hint: anyone may forge one, so nothing is read from it
but which project and which tasks to look at; tokens and passwords in it are never touched. `sync` reads those tasks
from Label Studio.

The same holds for /setup and /predict: what a project is called and how it is labelled comes from Label Studio alone.
A configuration in a request that differs from what was read there is a reason to look, and is never stored; it answers
its own request only where Label Studio cannot be asked at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from backend.errors import ClientError, JobFailed, LabelStudioError, NotFound
from backend.ports import Clock, LabelStudio, Progress, Store
from backend.records import EVERY_TASK, Project
from backend.services.late_writes import COMPARE, WEBHOOK_S, LateWrites
from backend.services.looks import Looks
from backend.services.reading import Reader, failed, key_of, matters, recovered
from backend.settings import Settings
from backend.store.journal import ALL, MARK, Entry
from backend.store.patience import AWAY, patience, why
from backend.webhook_actions import DELETE_ACTIONS, PROJECT_ACTIONS, RELEVANT_ACTIONS, START_TRAINING, TASK_ACTIONS

MARKED_AT_MOST = 2000  # by one event: each mark is a row, and the annotator waits; a comparison finds all there is
BATCH = 100  # tasks that are fetched, decoded and written at a time
MOST_UNREAD = 50  # projects that requests name and that were not read from Label Studio yet
MAX_ID = 2**63 - 1
_ACTION = re.compile(r"[A-Z_]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOutcome:
    """What came of an event."""

    accepted: bool  # False: nothing for Polyvox in it
    project: str | None  # project key; None when the event names none
    marked: int  # tasks that will be read again
    message: str  # one sentence
    start_training: bool = False


class Ingest:
    """Events in, votes out."""

    def __init__(
        self, *, store: Store, label_studio: LabelStudio, settings: Settings, clock: Clock,
        late: LateWrites | None = None,
    ) -> None:
        """`late` keeps what the database does not take in time; without it, an event waits and may fail."""
        self._store = store
        self._late = late
        self._label_studio = label_studio
        self._settings = settings
        self._looks = Looks(store.jobs, clock)
        self._connected = bool(settings.label_studio_url and settings.label_studio_api_key)
        self._reader = Reader(store=store, label_studio=label_studio, settings=settings)

    def webhook(self, payload: object) -> WebhookOutcome:
        """Take in one event. Raises ClientError, with one sentence, for what is not an event."""
        if self._late is None:
            return self._webhook(payload)
        try:
            with patience(WEBHOOK_S):
                return self._webhook(payload)
        except AWAY as error:
            found = waiting(_object(payload, "A webhook body"))
            if found is None:
                raise  # somebody pressed a button, and hears of it
            self._late.keep([found])
            return WebhookOutcome(
                accepted=True, project=None, marked=len(found[2]) if found[0] == MARK else 0,
                message=f"The database {why(error)}; this is kept until it can be taken in.")

    def _webhook(self, payload: object) -> WebhookOutcome:
        body = _object(payload, "A webhook body")
        action = body.get("action")
        if not isinstance(action, str) or not _ACTION.fullmatch(action):
            raise ClientError("A webhook body needs an action such as ANNOTATION_CREATED.")
        if action not in RELEVANT_ACTIONS:
            return WebhookOutcome(
                accepted=False, project=None, marked=0, message=f"Polyvox has no use for {action}; nothing was done."
            )
        if body.get("project") is None:
            return self._without_project(action)
        project = self._project(body["project"])
        if action == START_TRAINING:
            return WebhookOutcome(
                accepted=True, project=project.key, marked=0, message="A training is wanted.", start_training=True
            )
        if action in PROJECT_ACTIONS:
            return self._compare(project, "The project will be read from Label Studio.")
        return self._mark(action, project, body)

    def configured(self, key: str, label_config: str) -> str:
        """The configuration under which a request for this project is answered, "" for none; `label_config` is the
        request's. The project is made known when it is new. Most often one read, no write.

        Until Label Studio was asked about another configuration nothing is answered: predictions under the old one may
        hold labels that are no more. Raises ClientError when `key` is none, or too many projects wait to be read.
        """
        project = self._store.projects.introduce(key, unread=MOST_UNREAD)
        if not self._connected:
            return label_config or project.label_config
        if not label_config or not matters(project.label_config, label_config):
            return project.label_config  # "" until it is read, which is asked for elsewhere (`triggers`)
        self._looks.ask(key)
        return ""

    def sync(self, key: str, progress: Progress) -> dict[str, Any]:
        """Refetch the dirty tasks of a project and clear their marks; figures say how many.

        Raises JobFailed when Label Studio cannot be used; what was not read stays marked.
        """
        project = self._reader.known(key)
        done, totals = 0, {"tasks": 0, "removed": 0, "changed_votes": 0, "unreadable": 0}
        try:
            if not project.label_config:
                project, _ = self._reader.refresh(project)
            config = self._reader.config(project)
            while marks := self._store.tasks.dirty(key, BATCH):
                every = [mark for mark in marks if mark[0] == EVERY_TASK]
                if every:  # another configuration
                    self._reader.mark_every_task(key, every[0])
                    project = self._reader.known(key)
                    config = self._reader.config(project)
                    continue
                ids = [task_id for task_id, _ in marks]
                raw = self._label_studio.tasks_by_id(project.label_studio_id, ids)
                gone = [task_id for task_id in ids if task_id not in raw]
                taken = self._reader.take_over(project, config, list(raw.values()))
                # Marks go last: after a crash in between, the same tasks are read again, which changes nothing.
                totals["removed"] += self._store.tasks.remove(key, gone) if gone else 0
                self._store.tasks.clear_dirty(key, marks)
                totals["tasks"] += len(raw)
                totals["changed_votes"] += taken.changed_votes
                totals["unreadable"] += taken.unreadable
                done += len(marks)
                left = self._store.tasks.dirty_count(key)
                progress(done / (done + left), f"read {done} of {done + left} changed tasks")
        except (LabelStudioError, JobFailed) as error:
            raise failed(self._store, key, error) from error
        recovered(self._store, key)
        return totals

    def _project(self, value: object) -> Project:
        """The project that an event names; made known when it is new."""
        raw: Mapping[str, Any] = {"id": value} if _is_id(value) else _object(value, "project")
        project_id = raw.get("id")
        if not _is_id(project_id):
            raise ClientError("project.id is not the id of a project.")
        key = key_of(raw)
        if key is None:
            found = self._store.projects.by_label_studio_id(int(str(project_id)))
            if found is None:
                raise NotFound("Polyvox does not know this project, and the event does not say when it was created.")
            return found
        return self._store.projects.introduce(key, unread=MOST_UNREAD)

    def _compare(self, project: Project, message: str) -> WebhookOutcome:
        """Have a project compared with Label Studio, which is asked what is true."""
        if self._connected:
            self._looks.ask(project.key)
        return WebhookOutcome(accepted=True, project=project.key, marked=0, message=message)

    def _mark(self, action: str, project: Project, body: Mapping[str, Any]) -> WebhookOutcome:
        if action in DELETE_ACTIONS:
            ids = self._tasks_of_deleted(project, body)
        else:
            ids = set(_task_ids(action, body))
            if not ids:
                raise ClientError(f"{action} names no task.")
        if len(ids) > MARKED_AT_MOST:
            self._store.projects.want_sweep(project.key)
            return self._compare(project, f"{len(ids)} tasks: the project will be compared with Label Studio.")
        self._store.tasks.mark_dirty(project.key, ids)
        some = f"{len(ids)} task{'' if len(ids) == 1 else 's'} will be read again."
        message = some if ids else "Nothing of this is known here; the next comparison with Label Studio will tell."
        return WebhookOutcome(accepted=True, project=project.key, marked=len(ids), message=message)

    def _tasks_of_deleted(self, project: Project, body: Mapping[str, Any]) -> set[int]:
        """Delete events name annotations only; which tasks they belonged to is known here."""
        items = list(_items(body.get("annotations"), body.get("annotation")))
        annotation_ids = [item["id"] for item in items if _is_id(item.get("id"))]
        if not annotation_ids:
            raise ClientError("The event names no annotation.")
        known = self._store.tasks.task_of_annotation(project.key, annotation_ids)
        return set(known.values()) | {item["task"] for item in items if _is_id(item.get("task"))}

    def _without_project(self, action: str) -> WebhookOutcome:
        """The webhook sends no payload ("Send payload" is off): look through every project."""
        if action == START_TRAINING:
            raise ClientError("START_TRAINING names no project.")
        projects = self._store.projects.all() if self._connected else []
        for project in projects:
            self._looks.ask(project.key)
        message = f"{action} names no project; all {len(projects)} known projects will be compared with Label Studio."
        return WebhookOutcome(accepted=True, project=None, marked=0, message=message)


def waiting(body: Mapping[str, Any]) -> Entry | None:
    """What an event asks for, without looking into the database; None for START_TRAINING, which no one keeps.

    Raises ClientError for what is not an event.
    """
    action, raw = str(body.get("action")), body.get("project")
    if action == START_TRAINING:
        return None
    key = key_of(raw) if isinstance(raw, Mapping) else None
    if key is None or action in PROJECT_ACTIONS:
        return [COMPARE, key or ""]
    if action in DELETE_ACTIONS:  # they name annotations, and what these belonged to cannot be looked up
        items = list(_items(body.get("annotations"), body.get("annotation")))
        ids = {int(item["task"]) for item in items if _is_id(item.get("task"))}
        return [MARK, key, sorted(ids)] if items and len(ids) == len(items) else [ALL, key]
    ids = set(_task_ids(action, body))
    if not ids:
        raise ClientError(f"{action} names no task.")
    return [MARK, key, sorted(ids)] if len(ids) <= MARKED_AT_MOST else [ALL, key]


def _task_ids(action: str, body: Mapping[str, Any]) -> Iterator[int]:
    """The tasks that an event names; items of a list that are no such thing are passed over."""
    if action in TASK_ACTIONS:
        candidates: list[object] = [item.get("id") for item in _items(body.get("tasks"), body.get("task"))]
    else:
        candidates = [item.get("task") for item in _items(body.get("annotation"), body.get("annotations"))]
        candidates += [item.get("id") for item in _items(body.get("task"), body.get("tasks"))]
    for candidate in candidates:
        if isinstance(candidate, dict):
            candidate = candidate.get("id")
        if _is_id(candidate):
            yield int(str(candidate))


def _items(*values: object) -> Iterator[Mapping[str, Any]]:
    """Objects, whether they come alone or in a list; numbers stand for an object with that id."""
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield item
            elif _is_id(item):
                yield {"id": item}


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ClientError(f"{name} is a JSON object; this is something else.")
    return value


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ID
