"""The client against a server that behaves like the Data Manager: filters, one ordering column, no stable ties."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.client import LabelStudioClient
from backend.errors import LabelStudioError
from backend.settings import Settings
from tests.backend.client.server import Answer, Request, Server, serving

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def stamp(seconds: float) -> str:
    """As Label Studio writes times: a Z, and no fraction where it is zero."""
    return (NOON + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


class Studio:
    """What Label Studio 1.23.2 does with the requests that the client makes."""

    def __init__(self) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.project: dict[str, Any] = {"id": 1, "title": "P", "model_version": "live backend"}
        self.versions = {"a": 3, "live backend": 1}
        self.hooks: list[dict[str, Any]] = []
        self.imported: list[list[dict[str, Any]]] = []
        self.refuse_imports = False
        self.stores_before_it_refuses = 0  # a part of it where a flag of Label Studio has it check part by part
        self.before_page = lambda: None
        self.page_cap = 10_000  # tasks in one answer, whatever was asked for
        self.ignores_filters = False

    def __call__(self, request: Request) -> Answer:
        match request.method, request.path:
            case "GET", "/api/tasks":
                self.before_page()
                return self.list_tasks(request)
            case "GET", "/api/projects/1/":
                return Answer(body=self.project)
            case "PATCH", "/api/projects/1/":
                if request.body["model_version"] not in self.versions:
                    return Answer(status=400, body={})
                self.project |= request.body
                return Answer(body=self.project)
            case "GET", "/api/projects/1/model-versions/":
                return Answer(body=self.versions)
            case "DELETE", "/api/projects/1/model-versions/":
                if self.project["model_version"] in (request.body["model_version"], "live backend"):
                    self.project["model_version"] = None  # Label Studio's trap
                return Answer(body={"deleted_predictions": self.versions.pop(request.body["model_version"])})
            case "GET", "/api/users/":
                named = {"id": 5, "email": "", "username": "five"}
                return Answer(body=[{"id": 1, "email": "a@example.com"}, named, {"id": 6}])
            case "GET", "/api/webhooks/":
                return Answer(body=self.hooks)
            case "POST", "/api/webhooks/":
                self.hooks.append(request.body | {"id": 9})
                return Answer(status=201, body=self.hooks[-1])
            case "PATCH", "/api/webhooks/9/":
                self.hooks[-1] |= request.body
                return Answer(body=self.hooks[-1])
            case "POST", "/api/projects/1/import/predictions":
                known = {task["id"] for task in self.tasks}
                if self.refuse_imports or not {row["task"] for row in request.body} <= known:
                    self.store(request.body[: self.stores_before_it_refuses])
                    return Answer(status=400, body={"detail": "Validation error"})
                self.imported.append(request.body)
                self.store(request.body)
                return Answer(status=201, body={"created": len(request.body)})
            case _:
                return Answer(status=404, body={})

    def list_tasks(self, request: Request) -> Answer:
        if request.query["project"] != "1":
            return Answer(status=404, body={"detail": "No Project matches the given query."})
        assert "page" not in request.query and request.query["resolve_uri"] == "false"
        query = json.loads(request.query["query"])
        rows = [task for task in self.tasks if self.ignores_filters or self.fits(task, query)]
        random.Random(len(rows)).shuffle(rows)  # ties come in any order
        column = query.get("ordering", ["tasks:id"])[0].removeprefix("tasks:")
        rows.sort(key=lambda task: datetime.fromisoformat(task[column]) if column == "updated_at" else task[column])
        names = request.query["include"].split(",")
        page = [{name: task[name] for name in names if name in task} for task in rows]
        most = min(int(request.query["page_size"]), self.page_cap)
        return Answer(body={"total": len(rows), "tasks": page[:most]})

    @staticmethod
    def fits(task: dict[str, Any], query: dict[str, Any]) -> bool:
        if "selectedItems" in query:
            return task["id"] in query["selectedItems"]["included"]
        for item in query["filters"]["items"]:
            column, value = item["filter"].removeprefix("filter:tasks:"), item["value"]
            if item["operator"] == "contains":
                if not any(text in task[column] for text in value):
                    return False
                continue
            have = task[column]
            if item["type"] == "Datetime":
                have = datetime.fromisoformat(have)
                value = datetime.strptime(value, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
            tests = {"greater": have > value, "greater_or_equal": have >= value, "equal": have == value}
            if not tests[item["operator"]]:
                return False
        return True

    def store(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            (task,) = [each for each in self.tasks if each["id"] == row["task"]]
            versions = [*filter(None, task["predictions_model_versions"].split(",")), row["model_version"]]
            task["predictions_model_versions"] = ",".join(versions)
            self.versions[row["model_version"]] = self.versions.get(row["model_version"], 0) + 1

    def add(self, task_id: int, seconds: float, versions: str = "") -> None:
        self.tasks.append({
            "id": task_id, "updated_at": stamp(seconds), "created_at": stamp(0), "data": {"text": "x"},
            "annotations": [], "predictions": ["big"], "predictions_model_versions": versions,
        })


@pytest.fixture
def studio() -> Studio:
    return Studio()


@pytest.fixture
def server(studio: Studio) -> Iterator[Server]:
    with serving(studio) as running:
        yield running


@pytest.fixture
def client(server: Server) -> LabelStudioClient:
    settings = Settings(label_studio_url=server.url, label_studio_api_key="0" * 40)
    return LabelStudioClient(settings, backoff_s=0.001)


@pytest.mark.parametrize("page_size", [1, 2, 3, 5, 7, 100])
def test_changed_tasks_come_once_each_in_order_whatever_the_ties(
    client: LabelStudioClient, studio: Studio, page_size: int
) -> None:
    moments = [0, 0, 0, 0, 0, 1, 2.5, 2.5, 3, 3, 3, 3.000001, 9]
    for task_id, seconds in zip(random.Random(3).sample(range(1, 99), len(moments)), moments, strict=True):
        studio.add(task_id, seconds)
    pages = list(client.changed_tasks(1, None, page_size=page_size))
    assert all(0 < len(page) <= page_size for page in pages)
    keys = [(datetime.fromisoformat(task["updated_at"]), task["id"]) for page in pages for task in page]
    assert keys == sorted(keys) and len(set(keys)) == len(moments)
    assert "predictions" not in pages[0][0] and "annotations" in pages[0][0]


def test_changed_tasks_since_a_moment_include_it(client: LabelStudioClient, studio: Studio) -> None:
    for task_id in range(1, 6):
        studio.add(task_id, task_id + 0.000007)
    pages = client.changed_tasks(1, NOON + timedelta(seconds=3, microseconds=7))
    assert [task["id"] for page in pages for task in page] == [3, 4, 5]
    assert list(client.changed_tasks(1, NOON + timedelta(seconds=100))) == []


def test_tasks_that_change_during_the_walk_hide_no_others(client: LabelStudioClient, studio: Studio) -> None:
    for task_id in range(1, 21):
        studio.add(task_id, task_id)
    late = iter(range(1000, 2000))

    def annotate_the_first() -> None:
        studio.tasks[0] |= {"updated_at": stamp(next(late))}
        studio.tasks.append(studio.tasks.pop(0))

    studio.before_page = annotate_the_first
    pages = client.changed_tasks(1, None, page_size=4)
    seen = [next(pages) for _ in range(7)]
    assert set(range(5, 21)) <= {task["id"] for page in seen for task in page}


def test_tasks_by_id_leave_out_what_is_gone_and_ask_in_bulk(
    client: LabelStudioClient, studio: Studio, server: Server
) -> None:
    for task_id in range(1, 251):
        studio.add(task_id, 0)
    assert sorted(client.tasks_by_id(1, [*range(1, 251), 999])) == list(range(1, 251))
    assert len(server.requests) == 3
    assert client.tasks_by_id(1, [7, 999, 7])[7]["id"] == 7
    assert client.tasks_by_id(1, []) == {}


def test_a_missing_project_is_an_error_and_not_an_empty_one(client: LabelStudioClient) -> None:
    for read in (lambda: client.tasks_by_id(2, [1]), lambda: list(client.task_ids(2)), lambda: client.project(2)):
        with pytest.raises(LabelStudioError) as caught:
            read()
        assert caught.value.http_status == 404 and not caught.value.retry


def test_task_ids_come_in_pages(
    client: LabelStudioClient, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.client.tasks._ID_PAGE", 4)
    for task_id in (9, 3, 5, 1, 2, 8, 30, 4):
        studio.add(task_id, 0)
    assert list(client.task_ids(1)) == [[1, 2, 3, 4], [5, 8, 9, 30]]


def test_predicted_tasks_have_exactly_the_version(client: LabelStudioClient, studio: Studio) -> None:
    studio.add(1, 0, "consensus@r12,annotator:5@r1")
    studio.add(2, 0, "annotator:5@r1,consensus@r1")
    studio.add(3, 0)
    assert client.predicted_tasks(1, "consensus@r1") == {2}
    assert client.predicted_tasks(1, "consensus@r12") == {1}


def test_an_import_leaves_out_tasks_that_are_gone(
    client: LabelStudioClient, studio: Studio, server: Server
) -> None:
    studio.add(1, 0)
    rows = [{"task": task_id, "result": [], "score": 0.5, "model_version": f"v{number}"}
            for number in range(50) for task_id in (1, 2)]
    assert client.import_predictions(1, rows) == 50
    assert len(server.requests) == 4  # refused; the tasks; the versions, of which none is there; sent again
    assert client.import_predictions(1, rows[1:2]) == 0
    assert client.import_predictions(1, []) == 0
    assert studio.imported == [rows[::2]]


def test_what_was_stored_before_an_import_was_refused_is_not_sent_again(
    client: LabelStudioClient, studio: Studio
) -> None:
    """The other way of importing, behind a flag of Label Studio, stores batches of 500 until one has a task that is
    gone."""
    for task_id in range(1, 7):
        studio.add(task_id, 0)
    rows = [{"task": task_id, "result": [], "score": 0.5, "model_version": version}
            for task_id in range(1, 8) for version in ("v", "w")]
    studio.stores_before_it_refuses = 5
    assert client.import_predictions(1, rows) == 12
    assert [task["predictions_model_versions"] for task in studio.tasks] == ["v,w"] * 6
    assert [len(call) for call in studio.imported] == [7]
    studio.stores_before_it_refuses = 12
    studio.tasks = [task | {"predictions_model_versions": ""} for task in studio.tasks]
    assert client.import_predictions(1, rows) == 12
    assert [task["predictions_model_versions"] for task in studio.tasks] == ["v,w"] * 6


def test_an_import_that_is_refused_for_another_reason_is_an_error(client: LabelStudioClient, studio: Studio) -> None:
    studio.add(1, 0)
    studio.refuse_imports = True
    with pytest.raises(LabelStudioError) as caught:
        client.import_predictions(1, [{"task": 1, "result": "odd", "score": 0.5, "model_version": "v"}])
    assert caught.value.http_status == 400 and studio.imported == []


def test_versions_are_listed_selected_and_deleted_without_losing_the_selection(
    client: LabelStudioClient, studio: Studio
) -> None:
    assert client.prediction_versions(1) == {"a": 3, "live backend": 1}
    assert client.selected_version(1) == "live backend"
    client.delete_version(1, "a")
    assert client.selected_version(1) == "live backend" and client.prediction_versions(1) == {"live backend": 1}
    with pytest.raises(LabelStudioError):
        client.select_version(1, "unknown")
    client.delete_version(1, "live backend")
    assert client.selected_version(1) == ""


def test_annotators_have_names(client: LabelStudioClient) -> None:
    assert client.users() == {"1": "a@example.com", "5": "five", "6": "6"}


def test_a_webhook_is_made_once_and_gets_the_headers(
    client: LabelStudioClient, studio: Studio, server: Server
) -> None:
    for secret in ("one", "one", "two"):
        client.register_webhook(1, "http://polyvox:9090/webhook", {"X-Polyvox-Secret": secret})
    assert len(studio.hooks) == 1 and studio.hooks[0]["headers"] == {"X-Polyvox-Secret": "two"}
    assert studio.hooks[0]["send_for_all_actions"] and studio.hooks[0]["project"] == 1
    assert [request.method for request in server.requests] == ["GET", "POST", "GET", "GET", "PATCH"]
    assert client.webhooks(1) == studio.hooks


@pytest.mark.parametrize("cap", [1, 3, 7])
def test_pages_that_are_capped_hide_no_task(client: LabelStudioClient, studio: Studio, cap: int) -> None:
    for task_id in range(1, 21):
        studio.add(task_id, task_id // 4)
    studio.page_cap = cap
    walked = [task["id"] for page in client.changed_tasks(1, None, page_size=10) for task in page]
    assert sorted(walked) == list(range(1, 21)) and len(set(walked)) == len(walked)
    assert [each for page in client.task_ids(1) for each in page] == list(range(1, 21))
    assert sorted(client.tasks_by_id(1, range(1, 30))) == list(range(1, 21))


def test_filters_that_are_ignored_end_a_walk(client: LabelStudioClient, studio: Studio) -> None:
    for task_id in range(1, 21):
        studio.add(task_id, task_id)
    studio.page_cap, studio.ignores_filters = 5, True
    for walk in (client.task_ids(1), client.changed_tasks(1, NOON + timedelta(seconds=9), page_size=5),
                 client.changed_tasks(1, None, page_size=5)):
        with pytest.raises(LabelStudioError, match="filters seem to be ignored"):
            for _ in zip(range(50), walk, strict=False):
                pass


def test_a_list_that_is_empty_although_there_are_tasks_is_an_error(client: LabelStudioClient, studio: Studio) -> None:
    studio.add(1, 0)
    studio.page_cap = 0
    with pytest.raises(LabelStudioError, match="none of 1 tasks"):
        list(client.task_ids(1))


@pytest.mark.parametrize("odd", [
    None, 1, "1", [], {}, {"id": "1"}, {"id": True}, {"id": 0}, {"id": 2**63}, {"id": 1.5}, {"id": 1},
    {"id": 1, "updated_at": None, "annotations": []}, {"id": 1, "updated_at": "soon", "annotations": []},
    {"id": 1, "updated_at": "2026-11-27T12:00:00", "annotations": []},
    {"id": 1, "updated_at": "0001-01-01T00:00:00+14:00", "annotations": []},
    {"id": 1, "updated_at": "9999-12-31T23:59:59-14:00", "annotations": []},
    {"id": 1, "updated_at": "2026-11-27T12:00:00Z", "annotations": None},
], ids=repr)
def test_a_list_with_something_that_is_no_task_is_refused_whole(odd: object) -> None:
    """What it leaves out would count as deleted."""
    fine = {"id": 2, "updated_at": "2026-11-27T12:00:00Z", "annotations": []}
    with serving(lambda request: Answer(body={"total": 2, "tasks": [odd, fine]})) as server:
        asked = LabelStudioClient(Settings(label_studio_url=server.url, label_studio_api_key="0" * 40))
        with pytest.raises(LabelStudioError, match="without an id, a time or a list of annotations"):
            asked.tasks_by_id(1, [1, 2])
        with pytest.raises(LabelStudioError, match="without an id, a time or a list of annotations"):
            list(asked.changed_tasks(1, None))


def test_a_task_listed_twice_does_not_stand_for_another() -> None:
    fine = {"id": 2, "updated_at": "2026-11-27T12:00:00Z", "annotations": []}
    with serving(lambda request: Answer(body={"total": 2, "tasks": [fine, fine]})) as server:
        asked = LabelStudioClient(Settings(label_studio_url=server.url, label_studio_api_key="0" * 40))
        with pytest.raises(LabelStudioError, match="not asked for"):
            asked.tasks_by_id(1, [1, 2])


@pytest.mark.parametrize("walk", [
    lambda client: list(client.changed_tasks(1, None)),
    lambda client: list(client.changed_tasks(1, NOON + timedelta(seconds=3))),
    lambda client: list(client.task_ids(1)),
])
def test_a_walk_over_lists_in_another_order_ends(walk: Callable[[LabelStudioClient], object]) -> None:
    """It goes on from the last row; the same rows would come again for ever."""
    rows = [{"id": each, "updated_at": stamp(each), "annotations": []} for each in (5, 3)]
    with serving(lambda request: Answer(body={"total": 9, "tasks": rows})) as server:
        asked = LabelStudioClient(Settings(label_studio_url=server.url, label_studio_api_key="0" * 40))
        with pytest.raises(LabelStudioError, match="not asked for"):
            walk(asked)


@pytest.mark.parametrize("answer", [
    True, 1, "text", {"id": 1}, [1], [None], [{}], [{"id": "1"}], {"a": None}, {"a": "x"},
])
def test_answers_of_another_shape_are_an_error_with_a_sentence(answer: object) -> None:
    with serving(lambda request: Answer(body=answer, status=200)) as server:
        asked = LabelStudioClient(Settings(label_studio_url=server.url, label_studio_api_key="0" * 40))
        for ask in (asked.webhooks, asked.ml_backends, asked.views, lambda _: asked.users(), asked.prediction_versions):
            if ask == asked.prediction_versions and answer == {"id": 1}:
                continue
            with pytest.raises(LabelStudioError, match="Label Studio answered"):
                ask(1)


def test_what_is_looked_into_has_the_type_that_was_promised() -> None:
    odd = [{"id": 1, "url": 5, "headers": ["a"], "actions": 3}, {"id": 2, "url": None, "headers": {"a": 1, "b": "c"}}]
    with serving(lambda request: Answer(body=odd)) as server:
        asked = LabelStudioClient(Settings(label_studio_url=server.url, label_studio_api_key="0" * 40))
        assert asked.webhooks(1) == [
            {"id": 1, "url": "", "headers": {}, "actions": []}, {"id": 2, "url": "", "headers": {"b": "c"}}]
        assert [each["url"] for each in asked.ml_backends(1)] == ["", ""]
