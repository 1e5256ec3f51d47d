"""Who may ask what: basic auth for everything but /health, a secret header for webhooks."""

from __future__ import annotations

import base64

import pytest

from backend.app import create_app
from backend.services.webhook_check import SECRET_HEADER
from tests.backend.web.conftest import recorded

LOGIN = {"basic_auth_user": "me", "basic_auth_pass": "pässword"}
EVENT = recorded("webhook_annotation_created.json")["body"]


def basic(text, encoding="utf-8"):
    return {"Authorization": "Basic " + base64.b64encode(text.encode(encoding)).decode()}


RIGHT = basic("me:pässword")
SECRET = {SECRET_HEADER: "hush"}


@pytest.fixture
def guarded(services_with):
    return lambda **settings: create_app(services_with(**settings)).test_client()


@pytest.mark.parametrize("method, path", [
    ("GET", "/"), ("GET", "/versions"), ("GET", "/metrics"), ("POST", "/setup"), ("POST", "/predict"),
    ("POST", "/webhook"), ("POST", "/train"), ("POST", "/job_status"), ("GET", "/nothing"),
    ("GET", "/static/status.css"), ("OPTIONS", "/setup"), ("HEAD", "/"),
])
@pytest.mark.parametrize("headers", [
    {}, basic("me:wrong"), basic("me:"), basic(""), basic("you:pässword"), {"Authorization": "Basic !!"},
    {"Authorization": "Bearer x"}, {"Authorization": ""}, {SECRET_HEADER: ""}, {SECRET_HEADER: "hush"},
])
def test_nothing_opens_without_the_right_login(method, path, headers, guarded):
    response = guarded(**LOGIN).open(path, method=method, headers=headers)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Basic")
    assert method == "HEAD" or "Credentials" in response.json["error"]


@pytest.mark.parametrize("headers", [RIGHT, basic("me:pässword", "latin-1")])
def test_the_right_login_opens(headers, guarded):
    client = guarded(**LOGIN)
    assert client.get("/", headers=headers).status_code == 200
    assert client.post("/setup", json={"project": "1.2"}, headers=headers).status_code == 200
    assert client.post("/webhook", json=EVENT, headers=headers).status_code == 201


@pytest.mark.parametrize("password", ["пароль-9", "密码", "p\N{EURO SIGN}ss", "\udcff\udcfe"])
def test_a_question_mark_stands_for_no_character(password, guarded):
    """What an encoding lacks is not replaced by something that anybody can type."""
    client = guarded(basic_auth_user="me", basic_auth_pass=password)
    for encoding in ("utf-8", "latin-1"):
        wrong = password.encode(encoding, "replace")
        if b"?" in wrong:
            header = {"Authorization": "Basic " + base64.b64encode(b"me:" + wrong).decode()}
            assert client.get("/", headers=header).status_code == 401
    right = base64.b64encode(b"me:" + password.encode("utf-8", "surrogateescape")).decode()
    assert client.get("/", headers={"Authorization": "Basic " + right}).status_code == 200


def test_health_is_open(guarded):
    assert guarded(**LOGIN, webhook_secret="hush").get("/health").status_code == 200


def test_webhooks_open_by_login_or_secret(guarded):
    client = guarded(**LOGIN, webhook_secret="hush")
    assert client.post("/webhook", json=EVENT, headers=SECRET).status_code == 201
    assert client.post("/webhook", json=EVENT, headers=RIGHT).status_code == 201
    assert client.post("/webhook", json=EVENT, headers={SECRET_HEADER: "hus"}).status_code == 401
    assert client.post("/webhook", json=EVENT).status_code == 401
    assert client.get("/", headers=SECRET).status_code == 401


def test_a_secret_alone_guards_webhooks_only(guarded):
    client = guarded(webhook_secret="hush")
    assert client.get("/").status_code == 200
    refusal = client.post("/webhook", json=EVENT)
    assert refusal.status_code == 401 and SECRET_HEADER in refusal.json["error"]
    assert client.post("/webhook", json=EVENT, headers=SECRET).status_code == 201
    assert client.post("/webhook", json=EVENT, headers={SECRET_HEADER: "hüsh"}).status_code == 401


def test_what_is_refused_is_not_stored(services_with):
    services = services_with(webhook_secret="hush")
    create_app(services).test_client().post("/webhook", json=EVENT)
    assert services.ingest.payloads == []


def test_an_open_instance_asks_for_nothing(client):
    assert client.post("/webhook", json=EVENT).status_code == 201
