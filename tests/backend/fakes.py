"""A small Label Studio in memory, for tests of services: `ports.LabelStudio`, and what annotators do.

Faithful in what matters to Polyvox (facts measured on 1.23.2):
- `updated_at` of a task moves when an annotation of it is made, changed or deleted, and not on bulk predictions;
- tasks carry raw annotations with `completed_by` as a number (or null, once `delete_account` was called);
- deleted tasks are simply missing; an import of predictions for them stores the others;
- predictions are never unique: an import twice stores twice;
- a version can be selected only while there is a prediction of it, and deleting the selected version unselects it.

`fail_with` makes every call raise (Label Studio down); `calls` lists the methods called, in order. Time is the fake's
own: each thing that happens takes a millisecond.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.errors import LabelStudioError

CHOICES = (
    '<View><Text name="text" value="$text"/><Choices name="label" toName="text">'
    '<Choice value="A"/><Choice value="B"/><Choice value="C"/></Choices></View>'
)


def choice(label: str, *, control: str = "label", **more: Any) -> list[dict[str, Any]]:
    """The result of an annotation that chose one label."""
    return [
        {
            "id": "r1", "from_name": control, "to_name": "text", "type": "choices",
            "value": {"choices": [label]}, "origin": "manual",
        }
        | more
    ]


class FakeLabelStudio:
    """Implements `ports.LabelStudio`."""

    def __init__(self, *, start: datetime = datetime(2026, 11, 27, 12, tzinfo=UTC)) -> None:
        self.now = start
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self.predictions: list[dict[str, Any]] = []
        self.accounts: dict[str, str] = {}
        self.hooks: list[dict[str, Any]] = []
        self.backends: list[dict[str, Any]] = []
        self.fail_with: LabelStudioError | None = None
        self.calls: list[str] = []
        self._ids = {"project": 0, "task": 0, "annotation": 0, "hook": 0}

    # What people do

    def add_project(self, *, title: str = "A project", label_config: str = CHOICES) -> int:
        project_id = self._next("project")
        self.projects[project_id] = {
            "id": project_id, "title": title, "label_config": label_config, "model_version": "",
            "created_at": self._tick(), "show_collab_predictions": True,
        }
        return project_id

    def key(self, project_id: int) -> str:
        """The project key as /setup would name it."""
        return f"{project_id}.{int(datetime.fromisoformat(self.projects[project_id]['created_at']).timestamp())}"

    def add_task(self, project_id: int, **data: Any) -> int:
        task_id = self._next("task")
        moment = self._tick()
        self.tasks[task_id] = {
            "id": task_id, "project": project_id, "data": data or {"text": f"text {task_id}"},
            "created_at": moment, "updated_at": moment, "annotations": [],
        }
        return task_id

    def annotate(self, task_id: int, annotator: int | None, label: str, **more: Any) -> int:
        """Add an annotation (`more` overwrites its fields); returns its id."""
        annotation_id = self._next("annotation")
        moment = self._tick()
        annotation = {
            "id": annotation_id, "task": task_id, "project": self.tasks[task_id]["project"],
            "result": choice(label), "completed_by": annotator, "was_cancelled": False, "ground_truth": False,
            "created_at": moment, "updated_at": moment, "lead_time": 2.5, "parent_prediction": None, "import_id": None,
        }
        self.tasks[task_id]["annotations"].append(annotation | more)
        self._touch(task_id)
        return annotation_id

    def change(self, annotation_id: int, label: str) -> None:
        annotation = self._annotation(annotation_id)
        annotation |= {"result": choice(label), "updated_at": self._tick()}
        self._touch(annotation["task"])

    def delete_annotation(self, annotation_id: int) -> None:
        task_id = self._annotation(annotation_id)["task"]
        kept = [each for each in self.tasks[task_id]["annotations"] if each["id"] != annotation_id]
        self.tasks[task_id]["annotations"] = kept
        self._touch(task_id)

    def delete_task(self, task_id: int) -> None:
        del self.tasks[task_id]
        self.predictions = [each for each in self.predictions if each["task"] != task_id]

    def delete_account(self, annotator: int) -> None:
        """The account is gone; its annotations stay with `completed_by` null."""
        self.accounts.pop(str(annotator), None)
        for task in self.tasks.values():
            for annotation in task["annotations"]:
                if annotation["completed_by"] == annotator:
                    annotation["completed_by"] = None
                    self._touch(task["id"])

    # ports.LabelStudio

    def project(self, project_id: int) -> dict[str, Any]:
        self._called("project")
        if project_id not in self.projects:
            raise LabelStudioError("Label Studio answered 404.", retry=False, http_status=404)
        number = sum(task["project"] == project_id for task in self.tasks.values())
        return copy.deepcopy(self.projects[project_id]) | {"task_number": number}

    def tasks_by_id(self, project_id: int, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        self._called("tasks_by_id")
        return {task["id"]: copy.deepcopy(task) for task in self._of(project_id) if task["id"] in set(task_ids)}

    def changed_tasks(
        self, project_id: int, since: datetime | None, *, page_size: int = 100
    ) -> Iterator[list[dict[str, Any]]]:
        after = (since.isoformat() if since else "", 0)
        while True:
            self._called("changed_tasks")
            rows = sorted(self._of(project_id), key=_position)
            page = [task for task in rows if _position(task) > after][:page_size]
            if not page:
                return
            yield copy.deepcopy(page)
            after = _position(page[-1])

    def task_ids(self, project_id: int) -> Iterator[list[int]]:
        self._called("task_ids")
        ids = sorted(task["id"] for task in self._of(project_id))
        for start in range(0, len(ids), 1000):
            yield ids[start : start + 1000]

    def users(self) -> dict[str, str]:
        self._called("users")
        return dict(self.accounts)

    def waits_for(self, thread: int | None) -> None:
        return None

    def import_predictions(self, project_id: int, predictions: Sequence[Mapping[str, Any]]) -> int:
        self._called("import_predictions")
        here = {task["id"] for task in self._of(project_id)}
        rows = [copy.deepcopy(dict(each)) for each in predictions if each["task"] in here]
        self.predictions += rows
        return len(rows)

    def prediction_versions(self, project_id: int) -> dict[str, int]:
        self._called("prediction_versions")
        counts: dict[str, int] = {}
        for prediction in self._predictions_of(project_id):
            version = prediction["model_version"]
            counts[version] = counts.get(version, 0) + 1
        return counts

    def predicted_tasks(self, project_id: int, version: str) -> set[int]:
        self._called("predicted_tasks")
        return {each["task"] for each in self._predictions_of(project_id) if each["model_version"] == version}

    def select_version(self, project_id: int, version: str) -> None:
        self._called("select_version")
        if not any(each["model_version"] == version for each in self._predictions_of(project_id)):
            raise LabelStudioError("Label Studio answered 400.", retry=False, http_status=400)
        self.projects[project_id]["model_version"] = version

    def selected_version(self, project_id: int) -> str:
        return str(self.project(project_id)["model_version"] or "")

    def delete_version(self, project_id: int, version: str) -> None:
        self._called("delete_version")
        mine = {id(each) for each in self._predictions_of(project_id) if each["model_version"] == version}
        self.predictions = [each for each in self.predictions if id(each) not in mine]
        if self.projects[project_id]["model_version"] == version:
            self.projects[project_id]["model_version"] = ""

    def webhooks(self, project_id: int) -> list[dict[str, Any]]:
        self._called("webhooks")
        return [copy.deepcopy(hook) for hook in self.hooks if hook["project"] == project_id]

    def ml_backends(self, project_id: int) -> list[dict[str, Any]]:
        self._called("ml_backends")
        return [copy.deepcopy(backend) for backend in self.backends if backend["project"] == project_id]

    def register_webhook(self, project_id: int, url: str, headers: Mapping[str, str]) -> None:
        self._called("register_webhook")
        for hook in self.hooks:
            if hook["project"] == project_id and hook["url"] == url:
                hook["headers"] = dict(headers)
                return
        new = {"id": self._next("hook"), "project": project_id, "url": url, "headers": dict(headers)}
        self.hooks.append(new)

    # Inside

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.fail_with is not None:
            raise self.fail_with

    def _of(self, project_id: int) -> list[dict[str, Any]]:
        if project_id not in self.projects:
            raise LabelStudioError("Label Studio answered 404.", retry=False, http_status=404)
        return [task for task in self.tasks.values() if task["project"] == project_id]

    def _predictions_of(self, project_id: int) -> list[dict[str, Any]]:
        here = {task["id"] for task in self._of(project_id)}
        return [prediction for prediction in self.predictions if prediction["task"] in here]

    def _annotation(self, annotation_id: int) -> dict[str, Any]:
        return next(
            each for task in self.tasks.values() for each in task["annotations"] if each["id"] == annotation_id
        )

    def _touch(self, task_id: int) -> None:
        self.tasks[task_id]["updated_at"] = self._tick()

    def _tick(self) -> str:
        self.now += timedelta(milliseconds=1)
        return self.now.isoformat(timespec="microseconds")

    def _next(self, kind: str) -> int:
        self._ids[kind] += 1
        return self._ids[kind]


def _position(task: Mapping[str, Any]) -> tuple[str, int]:
    return task["updated_at"], task["id"]
