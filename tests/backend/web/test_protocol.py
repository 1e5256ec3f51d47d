"""Parsing is total: a request or one sentence, whatever comes in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import ClientError
from backend.protocol import (
    MAX_ID,
    RELEVANT_ACTIONS,
    ProjectRef,
    parse_predict,
    parse_project,
    parse_setup,
    parse_train,
    parse_webhook,
    prediction_results,
    project_key,
    read_json,
)
from tests.backend.web.conftest import SECRETS, recorded, recorded_requests

PROJECT = {"id": 1, "title": "T", "label_config": "<View/>", "created_at": "2026-11-27T22:19:52.718718Z"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8)


def test_setup_and_webhooks_name_a_project_alike():
    asked = parse_setup(recorded("setup_request.json")["body"])
    told = parse_webhook(recorded("webhook_annotation_created.json")["body"])
    assert asked.project == told.project == ProjectRef(label_studio_id=1, key="1.1795817992")
    assert asked.label_config.startswith("<View>")


@pytest.mark.parametrize("value, ref", [
    ("12.1764288000", ProjectRef(label_studio_id=12, key="12.1764288000")),
    ("12", ProjectRef(label_studio_id=12, key=None)),
    (12, ProjectRef(label_studio_id=12, key=None)),
])
def test_projects_come_in_three_shapes(value, ref):
    assert parse_project(value) == ref
    assert parse_train({"project": value}) == ref


def test_train_takes_the_whole_project_as_well():
    assert parse_train({"project": PROJECT}) == ProjectRef(label_studio_id=1, key="1.1795817992")


@pytest.mark.parametrize("value", [
    None, "", "x", "1.2.3", "1.", ".1", "-1", "0", 0, -3, True, 1.5, [], {}, "1 ", "١", "1" * 40, MAX_ID + 1, "1\n"])
def test_other_projects_are_refused(value):
    with pytest.raises(ClientError, match=r"^project .*expected"):
        parse_project(value)


@pytest.mark.parametrize("value, text", [(None, ""), ("", ""), ("<View/>", "<View/>"), ("a\x00b", "ab")])
def test_a_configuration_may_be_missing(value, text):
    assert parse_setup({"project": "1.2", "schema": value}).label_config == text


@pytest.mark.parametrize("params, context", [
    (None, None), ({}, None), ({"context": None}, None), ({"context": {"result": []}}, {"result": []})])
def test_the_context_may_be_null(params, context):
    body = {"project": "1.2", "tasks": [], "label_config": None, "params": params}
    assert parse_predict(body).context == context


@pytest.mark.parametrize("change, where", [
    ({"tasks": None}, "tasks "), ({"tasks": {"id": 1}}, "tasks "), ({"tasks": "x"}, "tasks "),
    ({"tasks": [None]}, "tasks[0] "), ({"tasks": [{"data": {}}]}, "tasks[0].id "),
    ({"tasks": [{"id": "1", "data": {}}]}, "tasks[0].id "), ({"tasks": [{"id": 1}]}, "tasks[0].data "),
    ({"tasks": [{"id": 1, "data": {}}, {"id": 2, "data": "x"}]}, "tasks[1].data "),
    ({"tasks": [{"id": 2**63, "data": {}}]}, "tasks[0].id "), ({"params": []}, "params "),
    ({"params": {"context": "x"}}, "params.context "), ({"label_config": 5}, "label_config "),
    ({"project": None}, "project "),
])
def test_what_is_wrong_with_predict_is_said_with_its_place(change, where):
    body = {"project": "1.2", "tasks": [{"id": 1, "data": {}}], "label_config": "<View/>", "params": {}}
    parse_predict(body)
    with pytest.raises(ClientError) as refusal:
        parse_predict({**body, **change})
    assert str(refusal.value).startswith(where) and "expected" in str(refusal.value)


@pytest.mark.parametrize("change, where", [
    ({"action": None}, "action "), ({"action": "NO_SUCH"}, "action "), ({"action": ["x"]}, "action "),
    ({"project": None}, "project "), ({"project": 1}, "project "), ({"project": {}}, "project.id "),
    ({"project": {**PROJECT, "created_at": "yesterday"}}, "project.created_at "),
    ({"project": {**PROJECT, "created_at": "2026-11-27T22:19:52"}}, "project.created_at "),
    ({"project": {**PROJECT, "title": 3}}, "project.title "), ({"annotation": None}, "annotation "),
    ({"annotation": []}, None), ({"annotation": {"id": "x", "task": 1}}, "annotation.id "),
    ({"annotation": {"id": 1}, "task": None}, "annotation.task "), ({"task": {"id": None}}, "task.id "),
    ({"annotation": [{"id": 1}], "task": None}, "annotation[].task "),
    ({"action": "TASKS_DELETED"}, "tasks "), ({"action": "TASKS_CREATED", "tasks": [{}]}, "tasks[0].id "),
    ({"action": "ANNOTATIONS_DELETED"}, None), ({"action": "ANNOTATIONS_DELETED", "annotation": None}, "annotations "),
    ({"action": "ANNOTATIONS_DELETED", "annotations": [3]}, "annotations[0] "),
])
def test_what_is_wrong_with_a_webhook_is_said_with_its_place(change, where):
    body = {"action": "ANNOTATION_CREATED", "project": PROJECT, "annotation": {"id": 1, "task": 2}, "task": {"id": 2}}
    parse_webhook(body)
    if where is None:
        if change.get("annotation") == []:
            change = {**change, "task": []}
        parse_webhook({**body, **change})
        return
    with pytest.raises(ClientError) as refusal:
        parse_webhook({**body, **change})
    assert str(refusal.value).startswith(where) and "expected" in str(refusal.value)


def test_a_webhook_may_send_no_payload_at_all():
    assert parse_webhook({"action": "ANNOTATION_CREATED"}).payload == {"action": "ANNOTATION_CREATED"}
    for half in ({"action": "ANNOTATION_CREATED", "annotation": {"id": 1}}, {"action": "START_TRAINING"}):
        with pytest.raises(ClientError, match="project is missing or null"):
            parse_webhook(half)


def test_other_actions_need_nothing():
    assert not parse_webhook({"action": "LABEL_LINK_CREATED"}).relevant
    assert "TASKS_UPDATED" not in RELEVANT_ACTIONS


@pytest.mark.parametrize("name, ids", [
    ("webhook_annotation_created.json", {"annotation": {"id": 2, "task": 2}, "task": {"id": 2}}),
    ("webhook_annotations_created_bulk.json", {"annotation": [{"id": 9, "task": 6}], "task": [{"id": 6}]}),
    ("webhook_annotations_deleted.json", {"annotations": [{"id": 4}]}),
    ("webhook_tasks_deleted.json", {"tasks": [{"id": 26}]}),
    ("train_request_webhook_START_TRAINING.json", {}),
])
def test_a_webhook_is_reduced_to_ids_and_the_project(name, ids):
    payload = parse_webhook(recorded(name)["body"]).payload
    assert {key: value for key, value in payload.items() if key not in ("action", "project")} == ids
    assert set(payload["project"]) == {"id", "title", "label_config", "created_at"}


@pytest.mark.parametrize("name", recorded_requests())
def test_secrets_are_dropped_while_parsing(name):
    body = recorded(name)["body"]
    if body is None:
        return
    if "params" in body:
        body["params"] |= {"login": "5ec4e7login", "password": "5ec4e7password"}
    if isinstance(body["project"], dict):
        body["project"] |= {"task_data_login": "5ec4e7login", "task_data_password": "5ec4e7password"}
    parse = parse_webhook if "action" in body else parse_predict if "tasks" in body else parse_setup
    assert "5ec4e7" in json.dumps(body)
    assert "5ec4e7" not in repr(parse(body))
    assert all(secret.startswith("5ec4e7") for secret in SECRETS.values())


def test_task_data_is_passed_on_whatever_it_is_called():
    data = {"token": "a word", "password": "another", "$undefined$": "x"}
    body = {"project": "1.2", "tasks": [{"id": 1, "data": data}]}
    assert parse_predict(body).tasks[0]["data"] == data


@pytest.mark.parametrize("raw, said", [
    (b"", "not valid JSON"), (b"{", "not valid JSON"), (b"[]", "a list"), (b"null", "null"), (b'"x"', "a string"),
    (b"1", "a number"), (b"true", "a boolean"), (b"\xff\xfe\xfa", "not valid JSON"), (b'{"a": NaN}', "not valid JSON"),
    (b'{"a": ' + b"1" * 5000 + b"}", "not valid JSON"), (b"[" * 200_000, "nested too deeply"),
])
def test_a_body_that_is_no_object_is_refused(raw, said):
    with pytest.raises(ClientError, match=said):
        read_json(raw)


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert read_json(b'{"a": "x\\ud800y", "b": "\\ud83d\\ude00"}') == {"a": "x?y", "b": "😀"}


def test_project_keys_are_whole_seconds():
    assert project_key(7, "2026-11-27T22:19:52.999999Z") == "7.1795817992"
    assert project_key(7, "2026-11-28T00:19:52+02:00") == "7.1795817992"
    assert project_key(7, None) is None


def test_as_many_results_as_tasks_or_an_error():
    assert prediction_results([[], [{"score": 1}]], asked=2) == {"results": [[], [{"score": 1}]]}
    with pytest.raises(RuntimeError, match="1 answers for 2 tasks"):
        prediction_results([[]], asked=2)


@settings(max_examples=150, deadline=None)
@given(value=json_values, field=st.sampled_from(["action", "project", "annotation", "task", "tasks", "annotations"]),
       action=st.sampled_from(sorted(RELEVANT_ACTIONS)))
def test_webhook_parsing_is_total(value, field, action):
    body = {"action": action, "project": PROJECT, "annotation": {"id": 1, "task": 2}, "task": {"id": 2},
            "annotations": [{"id": 1}], "tasks": [{"id": 1}], field: value}
    _parsed_or_refused(parse_webhook, body)


@settings(max_examples=150, deadline=None)
@given(value=json_values, field=st.sampled_from(["project", "tasks", "label_config", "params", "schema"]))
def test_predict_setup_and_train_parsing_is_total(value, field):
    body = {"project": "1.2", "tasks": [{"id": 1, "data": {}}], "label_config": "", "params": {}, field: value}
    for parse in (parse_predict, parse_setup, parse_train):
        _parsed_or_refused(parse, body)


def _parsed_or_refused(parse, body):
    try:
        parse(body)
    except ClientError as refusal:
        sentence = str(refusal)
        assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 200
