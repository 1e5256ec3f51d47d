"""What ingest and the reconciler share: raw Label Studio tasks -> snapshots -> store, and the project's own facts.

Invariants
- Votes come only from tasks that were read from Label Studio here, never from a payload that somebody sent.
- A task that cannot be decoded is logged by its id and left as it was; it never keeps the others from being read.
- Title and configuration are those that Label Studio gave when it was asked, never a request's.
- When the labeling configuration changes in a way that matters to the model, every known task is marked to be read
  again, since stored votes were decoded by the old one: by a single mark that stands for all, in one transaction with
  the configuration; the job that reads makes many of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from backend.errors import JobFailed, LabelConfigError, LabelStudioError, PolyvoxError
from backend.labeling import LabelConfig, parse_config, read_task
from backend.ports import LabelStudio, Store
from backend.records import Project, SyncState, TaskSnapshot
from backend.settings import Settings

logger = logging.getLogger(__name__)

RETRY_FIRST_S = 5.0
RETRY_LONGEST_S = 300.0
MARKED_AT_ONCE = 2000  # so that no webhook waits long for the database meanwhile
WRITTEN_AT_ONCE = 25  # tasks in one transaction, for the same reason; some 5 ms


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of a batch of raw tasks."""

    changed_votes: int = 0
    unreadable: int = 0
    news: int = 0  # tasks that are new, or newer than what was stored; counted by `take_page` only


class Reader:
    """Reads projects and tasks of one Label Studio into one store."""

    def __init__(self, *, store: Store, label_studio: LabelStudio, settings: Settings) -> None:
        self._store = store
        self._label_studio = label_studio
        self._settings = settings

    def known(self, key: str) -> Project:
        """Raises JobFailed for a project that is not (any more) in the store."""
        project = self._store.projects.get(key)
        if project is None:
            raise JobFailed("Polyvox does not know this project.")
        return project

    def refresh(self, project: Project) -> tuple[Project, dict[str, Any]]:
        """Read title and configuration; returns the project as stored now, and Label Studio's own description.

        Raises JobFailed when Label Studio's project of this id is another one (a reset installation counts anew).
        """
        raw = self._label_studio.project(project.label_studio_id)
        key = key_of(raw)
        if key is not None and key != project.key:
            raise JobFailed("Label Studio was set up anew: its project of this id was made at another time.")
        return self.remember(project.key, title=text_of(raw.get("title")), config=text_of(raw.get("label_config"))), raw

    def remember(self, key: str, *, title: str, config: str) -> Project:
        """Store title and configuration; marks all tasks, by a single mark, when the configuration changed."""
        return self._store.projects.ensure(key, title=title, label_config=config, matters=matters)

    def mark_every_task(self, key: str, mark: tuple[int, int]) -> None:
        """Make many marks of the one that stands for all; after a crash in between that one is still there."""
        ids = self._store.tasks.ids(key).tolist()
        for begin in range(0, len(ids), MARKED_AT_ONCE):
            self._store.tasks.mark_dirty(key, ids[begin : begin + MARKED_AT_ONCE])
        self._store.tasks.clear_dirty(key, [mark])

    def config(self, project: Project) -> LabelConfig:
        """The parsed configuration. Raises JobFailed when there is none or it cannot be read."""
        if not project.label_config:
            raise JobFailed("The project has no labeling configuration yet.")
        try:
            return parse_config(project.label_config)
        except LabelConfigError as error:
            raise JobFailed(f"The labeling configuration cannot be read: {error}") from error

    def take_page(self, project: Project, config: LabelConfig, page: Sequence[Mapping[str, Any]]) -> Taken:
        """Take over tasks that were read a while ago, but for those of which the store has newer ones.

        A sync was faster than this page, or Label Studio went back to a backup. Reading the task once more tells which,
        whereas taking the page over could undo a vote; so these are marked.
        """
        ids = [task["id"] for task in page]
        stored = {task.id: task.updated_at for task in self._store.tasks.get(project.key, ids)}
        moments = {task["id"]: datetime.fromisoformat(task["updated_at"]) for task in page}
        outdated = {task_id for task_id in ids if task_id in stored and stored[task_id] > moments[task_id]}
        if outdated:
            self._store.tasks.mark_dirty(project.key, outdated)
        fresh = [task for task in page if task["id"] not in outdated]
        taken = self.take_over(project, config, fresh)
        return replace(taken, news=sum(stored.get(task["id"]) != moments[task["id"]] for task in fresh))

    def take_over(self, project: Project, config: LabelConfig, raw_tasks: Sequence[Mapping[str, Any]]) -> Taken:
        """Decode raw tasks and make the store equal to them, in several short transactions: on SQLite the webhooks of
        annotators wait for the end of each, and whoever does this is nice.

        `config` is that of `project` as it was read; where another one was stored meanwhile, the tasks are marked to be
        read again, since the mark of the new configuration may have been used up before they were there.
        """
        if not raw_tasks:
            return Taken()
        ids = [task["id"] for task in raw_tasks]
        shown = self._store.deliveries.shown_since(project.key, ids)
        annotators = self._store.tasks.known_annotator(project.key, _orphans(raw_tasks))
        settings = self._settings  # what is read here holds for all projects
        snapshots: list[TaskSnapshot] = []
        for task in raw_tasks:
            try:
                snapshot = read_task(
                    config,
                    task,
                    project_id=project.label_studio_id,
                    control_arm_percent=settings.control_arm_percent,
                    shown_since=shown.get(task["id"]),
                    known_annotators=annotators,
                    whole_task_arm=not settings.middleware,
                )
            except (PolyvoxError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                kind = type(error).__name__  # the message might quote the task
                logger.warning("task %s of project %s cannot be read: %s", task["id"], project.key, kind)
                continue
            snapshots.append(snapshot)
        changed = sum(self._store.tasks.take_over(project.key, snapshots[begin : begin + WRITTEN_AT_ONCE])
                      for begin in range(0, len(snapshots), WRITTEN_AT_ONCE))
        if matters(project.label_config, self.known(project.key).label_config):
            self._store.tasks.mark_dirty(project.key, ids)
        return Taken(changed_votes=changed, unreadable=len(raw_tasks) - len(snapshots))


def key_of(raw: Mapping[str, Any]) -> str | None:
    """The project key of Label Studio's description of a project, as /setup would name it; None without a time."""
    try:
        created = datetime.fromisoformat(raw["created_at"])
        return f"{int(raw['id'])}.{int(created.timestamp())}" if created.tzinfo is not None else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def matters(before: str, after: str) -> bool:
    """Whether votes decoded by one configuration may differ from those decoded by the other."""
    if before == after or not before:
        return False
    try:
        return parse_config(before).fingerprint != parse_config(after).fingerprint
    except LabelConfigError:
        return True


KEEPS_WAITING = "Label Studio has not finished its answer to "


def waiting_note(what: str, seconds: float) -> str:
    """What a job that waits for Label Studio tells in place of its own note."""
    return f"{KEEPS_WAITING}{what} for {seconds // 5 * 5:.0f} s"


def keeps_waiting(note: str) -> bool:
    """Whether it is such a note."""
    return note.startswith(KEEPS_WAITING)


def failed(store: Store, key: str, error: PolyvoxError) -> JobFailed:
    """Make a failed reading visible in the project's state; returns what to raise."""
    state = store.projects.sync_state(key)
    failures = state.failures + 1
    store.projects.set_sync_state(key, _with(state, last_error=str(error), failures=failures))
    if isinstance(error, JobFailed):
        return error
    retry_in_s = min(RETRY_FIRST_S * 2.0 ** min(failures - 1, 10), RETRY_LONGEST_S)
    again = isinstance(error, LabelStudioError) and error.retry
    return JobFailed(str(error), retry_in_s=retry_in_s if again else None)


def recovered(store: Store, key: str) -> None:
    """Forget an earlier failure; writes nothing where there was none."""
    state = store.projects.sync_state(key)
    if state.failures or state.last_error:
        store.projects.set_sync_state(key, _with(state, last_error="", failures=0))


def _with(state: SyncState, *, last_error: str, failures: int) -> SyncState:
    return replace(state, last_error=last_error, failures=failures)


def _orphans(raw_tasks: Iterable[Mapping[str, Any]]) -> list[int]:
    """Ids of annotations whose account is gone."""
    annotations = [each for task in raw_tasks for each in task.get("annotations") or [] if isinstance(each, dict)]
    return [each["id"] for each in annotations if each.get("completed_by") is None and isinstance(each.get("id"), int)]


def text_of(value: object) -> str:
    """The text that Label Studio sent; "" for anything else."""
    return value if isinstance(value, str) else ""
