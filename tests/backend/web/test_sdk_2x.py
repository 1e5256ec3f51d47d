"""`PolyvoxBackend` on a base class and under a server that behave like label-studio-ml 2.x (see `standin_2x`).

Answers are those of Polyvox's own server. What differs: 2.x passes on the id of a project without its creation time, so
a project is known from its first event on; of Label Studio's events it hands on three only ("ANNOTATION_DELETED" is
never sent); errors are its own.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from flask.testing import FlaskClient

import backend.ml_backend
from backend.app import create_app
from backend.bootstrap import Services
from backend.records import JobKind
from tests.backend.web import standin_2x
from tests.backend.web.conftest import recorded, recorded_requests
from tests.backend.web.trained import CONFIG, KEY, trained_services

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = trained_services(tmp_path_factory.mktemp("two"))
    yield made
    made.close()


@pytest.fixture
def backend_class(services: Services, monkeypatch: pytest.MonkeyPatch) -> Any:
    """PolyvoxBackend as it is when 2.x is installed."""
    base = ModuleType("label_studio_ml.model")
    base.LabelStudioMLBase = standin_2x.LabelStudioMLBase  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "label_studio_ml.model", base)
    spec = importlib.util.spec_from_file_location("backend.ml_backend_on_2x", backend.ml_backend.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.PolyvoxBackend, standin_2x.LabelStudioMLBase)
    monkeypatch.setattr(module.PolyvoxBackend, "_of_process", services)
    standin_2x.LabelStudioMLBase.kept.clear()
    return module.PolyvoxBackend


@pytest.fixture
def theirs(backend_class: Any) -> FlaskClient:
    return standin_2x.server(backend_class).test_client()


@pytest.fixture
def ours(services: Services) -> FlaskClient:
    return create_app(services).test_client()


@pytest.mark.parametrize("method", ["predict", "fit"])
def test_the_signatures_take_what_2_x_gives(method: str, backend_class: Any) -> None:
    wanted = inspect.signature(getattr(standin_2x.LabelStudioMLBase, method))
    ours = inspect.signature(getattr(backend_class, method))
    positional = [each.name for each in wanted.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    ours.bind(*positional)
    ours.bind(None, **dict.fromkeys(positional[1:]), more=None)


def test_health(theirs: FlaskClient) -> None:
    assert theirs.get("/health").json == {"status": "UP", "model_class": "PolyvoxBackend"}


@pytest.mark.parametrize("name", ["setup_request.json", "setup_request_basic_auth.json"])
def test_setup(name: str, theirs: FlaskClient, ours: FlaskClient) -> None:
    """The version is text, and extra parameters that are an object are no error."""
    body = recorded(name)["body"]
    assert theirs.post("/setup", json=body).json == ours.post("/setup", json=body).json
    assert theirs.post("/setup", json=body | {"project": "77.1"}).json == {"model_version": "consensus@r0"}


@pytest.mark.parametrize("name", [name for name in recorded_requests() if name.startswith("predict")])
def test_predictions_are_the_same(name: str, theirs: FlaskClient, ours: FlaskClient) -> None:
    body = recorded(name)["body"]
    mine = ours.post("/predict", json=body).json
    assert theirs.post("/predict", json=body).json == mine and mine is not None
    assert len(mine["results"]) == len(body["tasks"]) and (body["project"] != KEY or all(mine["results"]))


def test_a_project_that_nobody_named_has_no_predictions(theirs: FlaskClient) -> None:
    body = recorded("predict_live_next_request.json")["body"] | {"project": "77.1"}
    assert theirs.post("/predict", json=body).json == {"results": [[]]}


@pytest.mark.parametrize("name", [
    "webhook_annotation_created.json", "webhook_annotation_updated.json", "train_request_webhook_START_TRAINING.json",
    "webhook_start_training_on_update.json"])
def test_events_do_the_same(name: str, theirs: FlaskClient, ours: FlaskClient, services: Services) -> None:
    store, answers = services.store, []
    for client in (ours, theirs):
        store.projects.ensure(KEY, label_config=CONFIG)  # one of the events brings another
        answer = client.post("/webhook", json=recorded(name)["body"])
        assert answer.status_code == 201
        job = store.jobs.pending(KEY, JobKind.TRAIN)
        answers.append(({task for task, _ in store.tasks.dirty(KEY, 100)}, job is not None))
        store.tasks.clear_dirty(KEY, store.tasks.dirty(KEY, 100))
        while job := store.jobs.claim("test", lease_s=60):
            store.jobs.finish(job.id, "test", figures={})
    assert answers[0] == answers[1] and (answers[0][0] or answers[0][1])


def test_a_first_event_makes_a_project_known(theirs: FlaskClient, services: Services) -> None:
    body = recorded("webhook_annotation_created.json")["body"]
    body["project"] |= {"id": 78, "label_config": CONFIG}
    assert theirs.post("/webhook", json=body).json["result"]["marked"] == 1
    known = services.store.projects.by_label_studio_id(78)
    assert known is not None and known.label_config == ""  # that is read from Label Studio
