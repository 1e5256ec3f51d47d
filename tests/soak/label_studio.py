"""The small Label Studio of the tests behind HTTP, with a clock that goes: for runs that are about Polyvox alone.

What Polyvox asks is answered as the real one does (see `backend.client`); annotators submit by `submit`. An annotation
is there before anybody is told of it, as in Label Studio.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.errors import LabelStudioError
from tests.backend.client.server import Answer, Request, Server, serving
from tests.backend.fakes import FakeLabelStudio

Raw = dict[str, Any]
KEPT_REQUESTS = 1000  # that the HTTP server may remember


class SmallLabelStudio(FakeLabelStudio):
    """Projects and tasks are put in as JSON; safe for threads where it is asked over HTTP or by `submit`."""

    def __init__(self) -> None:
        super().__init__(start=datetime.now(UTC))
        self.lock = threading.RLock()
        self._annotation_of: dict[tuple[int, int], int] = {}  # (task, annotator) -> annotation

    def put(self, project: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> None:
        """A project {id, title, label_config, created_at} and its tasks with raw annotations."""
        number = int(project["id"])
        self.projects[number] = {"model_version": "", "show_collab_predictions": True, **project}
        for task in tasks:
            moment = self._tick()
            kept = {"created_at": moment, **task, "project": number, "updated_at": moment}
            kept["annotations"] = [self._whole(each, kept["id"], number) for each in task["annotations"]]
            self.tasks[kept["id"]] = kept
            for each in kept["annotations"]:
                self._ids["annotation"] = max(self._ids["annotation"], each["id"])
                self._annotation_of[kept["id"], each["completed_by"]] = each["id"]
                self.accounts[str(each["completed_by"])] = f"annotator{each['completed_by']}@example.org"

    def submit(self, task: int, annotator: int, result: Sequence[Mapping[str, Any]]) -> None:
        """An annotator's annotation of a task, or a change of the one that is there."""
        with self.lock:
            there = self._annotation_of.get((task, annotator))
            if there is None:
                self._annotation_of[task, annotator] = self.annotate(task, annotator, "", result=list(result))
                return
            self._annotation(there).update(result=list(result), updated_at=self._tick())
            self._touch(task)

    def labels(self, project: int) -> dict[tuple[int, str], str]:
        """(task, annotator) -> the label that is there: what the votes of Polyvox must be."""
        with self.lock:
            return {(task["id"], str(each["completed_by"])): each["result"][0]["value"]["choices"][0]
                    for task in self._of(project) for each in task["annotations"]}

    def _whole(self, annotation: Mapping[str, Any], task: int, project: int) -> Raw:
        usual = {"parent_prediction": None, "import_id": None, "lead_time": 2.5, "was_cancelled": False,
                 "ground_truth": False, "created_at": self.now.isoformat(), "updated_at": self.now.isoformat()}
        return usual | dict(annotation) | {"task": task, "project": project}

    def _tick(self) -> str:
        self.now = max(self.now + timedelta(microseconds=1), datetime.now(UTC))
        return self.now.isoformat(timespec="microseconds")

    def _called(self, name: str) -> None:
        """Calls are not kept: there are many."""


@contextmanager
def over_http(label_studio: SmallLabelStudio) -> Iterator[Server]:
    """Answer Polyvox on a free port while the block runs."""
    servers: list[Server] = []

    def script(request: Request) -> Answer:
        if servers and len(servers[0].requests) > KEPT_REQUESTS:
            servers[0].requests.clear()
        with label_studio.lock:
            return _answer(label_studio, request)

    with serving(script) as server:
        servers.append(server)
        yield server


def _answer(of: SmallLabelStudio, request: Request) -> Answer:
    for method, pattern, handler in ROUTES:
        found = re.fullmatch(pattern, request.path)
        if found and method == request.method:
            try:
                body = handler(of, int(found[1]) if found.groups() else 0, request)
            except LabelStudioError as error:
                return Answer(status=error.http_status or 500, body={"detail": str(error)})
            return Answer(status=204 if body is None else 200, body=body)
    return Answer(status=404, body={"detail": "Not found."})


def _tasks(of: SmallLabelStudio, _: int, request: Request) -> Raw:
    """The Data Manager's list: filters, one order, one page."""
    query = json.loads(request.query["query"])
    rows = of._of(int(request.query["project"]))
    if chosen := query.get("selectedItems"):
        rows = [task for task in rows if task["id"] in set(chosen["included"])]
    for each in query.get("filters", {}).get("items", []):
        rows = [task for task in rows if _fits(of, task, each)]
    by = (query.get("ordering") or ["tasks:id"])[0].rpartition(":")[2]
    rows = sorted(rows, key=lambda task: (task[by], task["id"]))
    page = [dict(task) for task in rows[: int(request.query["page_size"])]]
    if "predictions_model_versions" in request.query["include"]:
        for task in page:
            task["predictions_model_versions"] = sorted(_versions(of, task["id"]))
    return {"tasks": page, "total": len(rows)}


def _fits(of: SmallLabelStudio, task: Raw, rule: Mapping[str, Any]) -> bool:
    column, value = rule["filter"].rpartition(":")[2], rule["value"]
    if column == "predictions_model_versions":
        return any(wanted in version for wanted in value for version in _versions(of, task["id"]))
    mine = task[column]
    if column == "updated_at":
        mine, value = datetime.fromisoformat(mine), datetime.fromisoformat(value)
    return {"greater_or_equal": mine >= value, "greater": mine > value, "equal": mine == value}[rule["operator"]]


def _versions(of: SmallLabelStudio, task: int) -> set[str]:
    return {each["model_version"] for each in of.predictions if each["task"] == task}


def _change_project(of: SmallLabelStudio, number: int, request: Request) -> Raw:
    of.select_version(number, request.body["model_version"])
    return of.project(number)


def _change_hook(of: SmallLabelStudio, number: int, request: Request) -> Raw:
    hook: Raw = next(each for each in of.hooks if each["id"] == number)
    hook.update(request.body)
    return hook


def _add_hook(of: SmallLabelStudio, _: int, request: Request) -> Raw:
    of.hooks.append({"id": of._next("hook"), **request.body})
    return dict(of.hooks[-1])


Handler = Callable[[SmallLabelStudio, int, Request], Any]
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/health", lambda of, _, request: {"status": "UP"}),
    ("GET", r"/api/projects/(\d+)/", lambda of, number, request: of.project(number)),
    ("PATCH", r"/api/projects/(\d+)/", _change_project),
    ("GET", r"/api/projects/(\d+)/model-versions/", lambda of, number, request: of.prediction_versions(number)),
    ("DELETE", r"/api/projects/(\d+)/model-versions/",
     lambda of, number, request: of.delete_version(number, request.body["model_version"])),
    ("POST", r"/api/projects/(\d+)/import/predictions",
     lambda of, number, request: {"created": of.import_predictions(number, request.body)}),
    ("GET", "/api/tasks", _tasks),
    ("GET", "/api/users/",
     lambda of, _, request: [{"id": int(who), "email": mail} for who, mail in of.users().items()]),
    ("GET", "/api/webhooks/", lambda of, _, request: of.webhooks(int(request.query["project"]))),
    ("POST", "/api/webhooks/", _add_hook),
    ("PATCH", r"/api/webhooks/(\d+)/", _change_hook),
    ("GET", "/api/ml/", lambda of, _, request: of.ml_backends(int(request.query["project"]))),
    ("GET", "/api/dm/views/", lambda of, _, request: []),
    ("POST", "/api/dm/views/", lambda of, _, request: {"id": 1}),
)
