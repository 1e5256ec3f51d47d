"""The served object as any label-studio-ml server would use it: 1.0.9's, and one that behaves like 2.x."""

from __future__ import annotations

import sys

import pytest

from backend.errors import ClientError
from backend.ml_backend import PolyvoxBackend
from tests.backend.web.conftest import CONFIG, recorded

EVENT = recorded("webhook_annotation_created.json")["body"]
TASKS = recorded("predict_batch_request.json")["body"]["tasks"]


@pytest.fixture
def backend(services):
    return PolyvoxBackend(project_id="11.1795818327", label_config=CONFIG, services=services)


def test_it_is_a_label_studio_ml_model(backend):
    assert isinstance(backend, sys.modules["label_studio_ml.model"].LabelStudioMLBase)
    assert backend.model_version == "consensus@r3" == backend.setup()


@pytest.mark.parametrize("call", [
    lambda backend, data: backend.fit("ANNOTATION_CREATED", data),
    lambda backend, data: backend.fit(event="ANNOTATION_CREATED", data=data, job_id="x"),
    lambda backend, data: backend.fit((), workdir="/x", event="ANNOTATION_CREATED", data=data, job_id="x"),
    lambda backend, data: backend.fit((), "/x", event="ANNOTATION_CREATED", data=data),
    lambda backend, data: backend.process_event("ANNOTATION_CREATED", data, "x", {"workdir": "/x"}),
], ids=["2.x positional", "2.x named", "1.0.9", "1.0.9 positional workdir", "process_event"])
def test_fit_takes_both_signatures(call, backend, services):
    without_action = {name: value for name, value in EVENT.items() if name != "action"}
    assert call(backend, without_action)["marked"] == 1
    assert [task for task, _ in services.store.tasks.dirty("1.1795817992", 10)] == [2]


@pytest.mark.parametrize("given", [{}, {"event": "ANNOTATION_CREATED"}, {"event": "ANNOTATION_CREATED", "data": []}])
def test_fit_refuses_what_is_no_event(given, backend):
    with pytest.raises(ClientError, match="payload"):
        backend.fit(**given)


def test_predict_finds_the_project_of_its_instance(backend, services):
    answers = backend.predict(TASKS, context=None, login=None, password=None)
    assert len(answers) == len(TASKS)
    assert services.prediction.asked[0][:2] == ("11.1795818327", CONFIG)


@pytest.mark.parametrize("context", [None, {}, {"result": None}, {"result": "x"}, {"result": [3, None]}])
def test_a_context_without_regions_says_nothing(context, backend, services):
    backend.predict(TASKS, context=context)
    assert services.prediction.drawn == []


def test_regions_of_the_context_are_handed_on(backend, services):
    region = {"from_name": "span", "to_name": "t", "value": {"start": 0, "end": 2}}
    backend.predict(TASKS, context={"result": [region, 3]})
    assert services.prediction.drawn == [region]


def test_predict_finds_the_project_by_its_tasks(services):
    services.store.projects.ensure("11.1795818327", label_config=CONFIG)
    PolyvoxBackend(services=services).predict(TASKS, {"result": []})
    assert services.prediction.asked[0][:2] == ("11.1795818327", CONFIG)


def test_tasks_of_nobody_are_refused(services):
    with pytest.raises(ClientError, match=r"tasks\[0\]\.project"):
        PolyvoxBackend(services=services).predict([{"id": 1, "data": {}}])


def test_the_stock_server_of_1_0_9_runs_it(services, monkeypatch, tmp_path):
    from label_studio_ml.api import init_app

    monkeypatch.setattr(PolyvoxBackend, "_of_process", services)
    client = init_app(model_class=PolyvoxBackend, model_dir=str(tmp_path / "stock")).test_client()
    setup = recorded("setup_request.json")["body"]
    assert client.post("/setup", json=setup).status_code == 200
    predict = recorded("predict_live_next_request.json")["body"]
    assert client.post("/predict", json=predict).json["results"] == [[]]  # it did not tell the class of the project
    PolyvoxBackend(services=services).fit("PROJECT_UPDATED", recorded("webhook_project_updated.json")["body"])
    known = services.store.projects.by_label_studio_id(predict["tasks"][0]["project"])
    services.store.projects.ensure(known.key, label_config=predict["label_config"])  # as read from Label Studio
    answer = client.post("/predict", json=predict)
    assert [each["model_version"] for each in answer.json["results"][0]] == ["annotator:5@r3", "consensus@r3"]


def test_a_base_that_behaves_like_2_x(services, monkeypatch):
    """2.x's constructor asks for model_version, resets project_id and calls setup() without arguments."""
    called = []

    def construct(self, project_id=None, label_config=None):
        self.project_id = project_id or ""
        called.append(self.model_version)
        self.setup()

    monkeypatch.setattr(sys.modules["label_studio_ml.model"].LabelStudioMLBase, "__init__", construct)
    backend = PolyvoxBackend(project_id="11.1795818327", label_config=CONFIG, services=services)
    assert called == ["consensus@r3"]
    assert len(backend.predict(TASKS)) == len(TASKS)
