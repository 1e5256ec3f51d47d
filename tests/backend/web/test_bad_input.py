"""Bad input, route by route: a 4xx with one sentence; nothing stored, nothing half-written, never a 500."""

from __future__ import annotations

import io
import json
import logging

import pytest

from backend.app import create_app
from backend.errors import LabelStudioError
from tests.backend.web.conftest import CONFIG, recorded

PROJECT = {"id": 1, "title": "T", "label_config": CONFIG, "created_at": "2026-11-27T22:19:52Z"}
TASKS = [{"id": 1, "data": {"text": "x"}}]
GOOD = {
    "/setup": {"project": "1.2", "schema": CONFIG},
    "/predict": {"project": "1.2", "label_config": CONFIG, "tasks": TASKS},
    "/webhook": {"action": "ANNOTATION_CREATED", "project": PROJECT, "annotation": {"id": 1, "task": 1}},
    "/train": {"project": "1.2"},
    "/versions": {"project": "1.2"},
    "/validate": {"config": CONFIG},
    "/job_status": {"job": "x"},
    "/delete": {"project": "1.2"},
    "/duplicate_model": {"project_src": "1.2", "project_dst": "2.2"},
}
RAW = [b"", b"{", b"null", b"[]", b'"x"', b"3", b"\xff\xfe\x00", b"[" * 100_000, b'{"a": Infinity}', b"<xml/>"]
DOUBLE = CONFIG.replace("</View>", '<Choices name="label" toName="text"><Choice value="C"/></Choices></View>')
WRONG = [
    ("/setup", {"project": None}), ("/setup", {"project": {"id": 1}}), ("/setup", {"project": "one"}),
    ("/setup", {"project": 77}), ("/setup", {"schema": 5}), ("/setup", {"schema": "<View><Text"}),
    ("/setup", {"schema": DOUBLE}),
    ("/setup", {"schema": '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><View>&c;</View>'}),
    ("/predict", {"project": None}), ("/predict", {"project": 77}), ("/predict", {"tasks": None}),
    ("/predict", {"tasks": {}}), ("/predict", {"tasks": [1]}), ("/predict", {"tasks": [{"data": {}}]}),
    ("/predict", {"tasks": [{"id": 1}]}), ("/predict", {"tasks": [*TASKS, {"id": 2, "data": None}]}),
    ("/predict", {"label_config": []}), ("/predict", {"label_config": DOUBLE}), ("/predict", {"params": 1}),
    ("/predict", {"params": {"context": 1}}), ("/predict", {"tasks": [{"id": 2**64, "data": {}}]}),
    ("/webhook", {"action": None}), ("/webhook", {"action": "NO_SUCH_ACTION"}), ("/webhook", {"action": 1}),
    ("/webhook", {"project": None}), ("/webhook", {"project": "1.2"}), ("/webhook", {"project": {"id": "x"}}),
    ("/webhook", {"project": {"id": 77}}), ("/webhook", {"annotation": 3}), ("/webhook", {"annotation": {"id": -1}}),
    ("/webhook", {"action": "ANNOTATIONS_DELETED", "annotation": None}),
    ("/webhook", {"action": "TASKS_DELETED", "tasks": "all"}),
    ("/train", {"project": None}), ("/train", {"project": "1.2"}), ("/train", {"project": 77}),
    ("/train", {"project": {"id": []}}),
    ("/versions", {"project": []}), ("/versions", {"project": 77}),
    ("/validate", {"config": None}), ("/validate", {"config": "<View>"}), ("/validate", {"config": DOUBLE}),
    ("/job_status", {"job": None}), ("/job_status", {"job": 3}), ("/job_status", {"job": "no such"}),
    ("/delete", {"project": None}), ("/duplicate_model", {"project_dst": None}),
]


def refused(response, *statuses):
    """The sentence of a refusal that is as it should be."""
    text = response.get_data(as_text=True)
    assert response.status_code in (statuses or range(400, 500)), (response.status_code, text)
    assert "Traceback" not in text and 'File "' not in text
    sentence = response.get_json()["error"]
    assert set(response.get_json()) == {"error"}
    assert sentence.endswith((".", ")")) and "\n" not in sentence and 15 < len(sentence) < 300
    return sentence


def nothing_stored(services):
    store = services.store
    return store.projects.all() == [] and store.jobs.recent() == [] and services.ingest.payloads in (
        [], [each for each in services.ingest.payloads if each["project"]["id"] == 77])


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_a_body_that_is_no_object(path, raw, services, client):
    refused(client.post(path, data=raw, content_type="application/json"), 400)
    assert nothing_stored(services)


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", None])
def test_another_content_type(path, content_type, services, client):
    response = client.post(path, data=json.dumps(GOOD[path]), content_type=content_type)
    assert "application/json" in refused(response, 415)
    assert nothing_stored(services)


@pytest.mark.parametrize("path, change", WRONG, ids=[f"{path}-{index}" for index, (path, _) in enumerate(WRONG)])
def test_wrong_fields(path, change, services, client, caplog):
    with caplog.at_level(logging.ERROR):
        refused(client.post(path, json={**GOOD[path], **change}))
    assert caplog.records == []
    assert nothing_stored(services)


@pytest.mark.parametrize("path", ["/predict", "/webhook"])
def test_deep_nesting_is_refused_long_before_it_breaks_anything(path, client):
    """Between what the parser can read and what the code behind it can walk through there must be no gap."""
    def send(depth):
        deep = "[" * depth + '"\\ud800"' + "]" * depth
        raw = json.dumps({**GOOD[path], "more": "DEEP"}).replace('"DEEP"', deep)
        return client.post(path, data=raw, content_type="application/json")

    assert send(150).status_code < 300 and send(199).status_code < 300
    for depth in (200, 400, *range(900, 1010, 3), 5000, 200_000):
        assert "too deeply" in refused(send(depth), 400)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_json_is_utf_8(encoding, client):
    raw = json.dumps({**GOOD["/setup"], "title": "\u00e9"}, ensure_ascii=False).encode(encoding)
    refused(client.post("/setup", data=raw, content_type="application/json"), 400)


@pytest.mark.parametrize("path", [path for path in GOOD if path != "/versions"])
def test_an_empty_object(path, services, client):
    refused(client.post(path, json={}))
    assert nothing_stored(services)


@pytest.mark.parametrize("path", GOOD)
def test_a_body_over_the_limit(path, services_with):
    services = services_with(max_body_mb=0.01)
    client = create_app(services).test_client()
    body = {**GOOD[path], "filler": "x" * 20_000}
    assert "0.01 MB" in refused(client.post(path, json=body), 413)
    assert nothing_stored(services)


@pytest.mark.parametrize("size, status", [(20_000, 413), (200, 200)])
def test_a_body_of_unstated_length_has_the_same_limit(size, status, services_with):
    client = create_app(services_with(max_body_mb=0.01)).test_client()
    raw = json.dumps({**GOOD["/setup"], "schema": None}).encode() + b" " * size
    environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    response = client.post("/setup", input_stream=io.BytesIO(raw), content_type="application/json",
                           environ_overrides=environ)
    assert response.status_code == status


def test_sixty_five_megabytes_are_refused_by_default(client):
    response = client.post("/predict", data=b'{"x": "' + b"x" * (65 * 2**20) + b'"}', content_type="application/json")
    assert "64 MB" in refused(response, 413)


@pytest.mark.parametrize("path, method, allow", [
    ("/setup", "GET", "POST"), ("/predict", "PUT", "POST"), ("/webhook", "DELETE", "POST"), ("/health", "POST", "GET"),
    ("/", "POST", "GET"), ("/job_status", "GET", "POST"),
])
def test_another_method(path, method, allow, client):
    response = client.open(path, method=method)
    refused(response, 405)
    assert allow in response.headers["Allow"]


@pytest.mark.parametrize("path", ["/nothing", "/setup/", "/static/nothing.css", "/static/../app.py", "/%00"])
def test_another_address(path, client):
    refused(client.get(path), 404)


def test_queries_are_checked(client):
    refused(client.get("/versions?project=x"), 400)
    refused(client.get("/is_training"), 400)
    refused(client.get("/is_training?project=77"), 404)


@pytest.mark.parametrize("data", [
    {}, {"other": "x"}, {"$undefined$": "x"}, {"text": ""}, {"text": "word " * 10_000}, {"text": None}, {"text": 5},
    {"text": ["a"]}, {"text": "a\x00b"}, {"text": {"a": {"b": 1}}},
])
def test_odd_task_data_gets_a_valid_answer(data, client):
    answer = client.post("/predict", json={**GOOD["/predict"], "tasks": [{"id": 1, "data": data}]})
    assert answer.status_code == 200 and len(answer.json["results"]) == 1


@pytest.mark.parametrize("config", [None, "", " "])
def test_a_project_without_configuration_is_fine(config, services, client):
    assert client.post("/setup", json={"project": "1.2", "schema": config}).status_code == 200
    answer = client.post("/predict", json={"project": "1.2", "label_config": config, "tasks": TASKS})
    assert answer.json == {"results": [[]]}
    services.store.projects.ensure("1.2", label_config=CONFIG)  # as read from Label Studio
    answer = client.post("/predict", json={"project": "1.2", "label_config": config, "tasks": TASKS})
    assert len(answer.json["results"][0]) == 2 and services.prediction.asked[0][1] == CONFIG


def test_no_tasks_no_results(client):
    assert client.post("/predict", json={**GOOD["/predict"], "tasks": []}).json == {"results": []}


def test_a_webhook_without_payload_is_a_hint_about_all_projects(services, client):
    assert client.post("/webhook", json={"action": "ANNOTATION_CREATED"}).json["message"].startswith("All projects")
    refused(client.post("/webhook", json={"action": "START_TRAINING"}), 400)


def test_actions_that_say_nothing_about_votes_are_answered(services, client):
    answer = client.post("/webhook", json={"action": "LABEL_LINK_CREATED", "label": {}})
    assert answer.status_code == 201 and answer.json["marked"] == 0
    assert nothing_stored(services)


@pytest.mark.parametrize("error", [
    KeyError("a private label"), RecursionError(), LabelStudioError("refused", retry=True), MemoryError()])
def test_what_breaks_inside_is_a_reference_to_the_log(error, services, client, caplog):
    services.prediction.broken = error
    response = client.post("/predict", json=recorded("predict_live_next_request.json")["body"])
    answer = response.get_json()
    assert response.status_code == 500 and set(answer) == {"error", "reference"}
    assert "private" not in response.get_data(as_text=True) and "Error" not in response.get_data(as_text=True)
    logged = [record for record in caplog.records if answer["reference"] in record.getMessage()]
    assert len(logged) == 1 and logged[0].exc_info[1] is error


def test_too_few_answers_are_never_sent(services, client):
    services.prediction.answer = lambda *given, **named: [[]]
    body = {**GOOD["/predict"], "tasks": [{"id": 1, "data": {}}, {"id": 2, "data": {}}]}
    assert client.post("/predict", json=body).status_code == 500
