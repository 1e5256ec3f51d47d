"""Every route x every kind of credentials x every set-up: open where it should be, 401 and nothing written elsewhere.

Label Studio proves itself in two ways: ML requests (/setup, /predict, START_TRAINING to /webhook) carry basic auth
where the model connection has it, webhooks carry the headers that are stored with them, and so the secret.
"""

from __future__ import annotations

import base64
import hmac
import sqlite3
from types import SimpleNamespace

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, run_wsgi_app

import backend.app as app_module
from backend.app import allowed, create_app
from backend.services.webhook_check import SECRET_HEADER
from backend.settings import Settings
from tests.backend.web.conftest import recorded

LOGIN, SECRET = {"basic_auth_user": "me", "basic_auth_pass": "pässword"}, {"webhook_secret": "hush"}
SET_UPS = {"login and secret": {**LOGIN, **SECRET}, "login": LOGIN, "secret": SECRET, "nothing": {}}
START = recorded("train_request_webhook_START_TRAINING.json")["body"]


def basic(text):
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


CREDENTIALS = {
    "none": {},
    "right": basic("me:pässword"),
    "wrong": basic("me:password"),
    "empty": basic(":"),
    "secret": {SECRET_HEADER: "hush"},
    "wrong secret": {SECRET_HEADER: "hus"},
    "empty secret": {SECRET_HEADER: ""},
    "password as secret": {SECRET_HEADER: "pässword".encode().decode("latin-1")},
    "secret as password": basic("me:hush"),
    "right and wrong secret": {**basic("me:pässword"), SECRET_HEADER: "hus"},
    "wrong and secret": {**basic("me:password"), SECRET_HEADER: "hush"},
}


def opens(path, set_up, credentials):
    """What should be: written without a look at the code."""
    if path == "/health" or set_up == "nothing":
        return True
    if set_up == "secret" and path != "/webhook":
        return True
    if "login" in set_up and credentials in ("right", "right and wrong secret"):
        return True
    return path == "/webhook" and "secret" in set_up and credentials in ("secret", "wrong and secret")


def addresses(app):
    """(method, path) of every route, and of one that does not exist."""
    found = {(method, rule.rule.replace("<path:filename>", "status.css"))
             for rule in app.url_map.iter_rules() for method in rule.methods or ()}
    return sorted({*found, ("GET", "/nothing"), ("POST", "/nothing"), ("PUT", "/predict"), ("DELETE", "/")})


@pytest.mark.parametrize("set_up", SET_UPS)
def test_every_route_and_credentials(set_up, services_with):
    services = services_with(**SET_UPS[set_up])
    app = create_app(services, SimpleNamespace(**dict.fromkeys(("setup", "predict", "receive"))))
    client = app.test_client()
    routes = addresses(app)
    assert len({path for _, path in routes}) >= 14
    wrong = []
    for method, path in routes:
        for name, headers in CREDENTIALS.items():
            refused = client.open(path, method=method, headers=headers).status_code == 401
            if refused is opens(path, set_up, name):
                wrong.append((method, path, name, "refused" if refused else "open"))
    assert wrong == []


@pytest.mark.parametrize("set_up", SET_UPS)
@pytest.mark.parametrize("credentials", CREDENTIALS)
def test_start_training(credentials, set_up, services_with):
    """Label Studio's button: /webhook with basic auth if the model connection has it, and without the secret header.
    A secret alone therefore refuses it; the status page says so (`problems.of_service`)."""
    services = services_with(**SET_UPS[set_up])
    file = sqlite3.connect(services.settings.data_dir / "polyvox.sqlite3")
    before = list(file.iterdump())
    answer = create_app(services).test_client().post("/webhook", json=START, headers=CREDENTIALS[credentials])
    if opens("/webhook", set_up, credentials):
        assert answer.status_code == 201 and services.store.jobs.get(answer.json["job"]) is not None
    else:
        assert answer.status_code == 401 and services.ingest.payloads == []
        assert list(file.iterdump()) == before
    file.close()


def test_a_refused_body_is_not_read(services_with):
    """Nobody without credentials makes Polyvox parse 64 MB."""
    class Untouchable:
        def __getattr__(self, name):
            raise AssertionError(f"the body was touched: {name}")

    app = create_app(services_with(**SET_UPS["login and secret"]), SimpleNamespace())
    for path in ("/webhook", "/predict", "/setup", "/train"):
        environ = EnvironBuilder(path=path, method="POST", content_type="application/json").get_environ()
        environ |= {"wsgi.input": Untouchable(), "CONTENT_LENGTH": "60000000"}
        assert run_wsgi_app(app, environ)[1].startswith("401")


@pytest.mark.parametrize("set_up", ["login and secret", "login", "secret"])
def test_comparing_takes_the_same_steps_whatever_is_given(set_up, monkeypatch):
    """All comparisons are made, each of them in constant time, so that the time tells nothing."""
    compared = []
    monkeypatch.setattr(app_module, "hmac", SimpleNamespace(compare_digest=lambda given, wanted: (
        compared.append(wanted), hmac.compare_digest(given, wanted))[1]))
    settings, steps = Settings(**SET_UPS[set_up]), set()
    for headers in CREDENTIALS.values():
        compared.clear()
        allowed("/webhook", Headers(headers), settings)
        steps.add(tuple(compared))
    assert len(steps) == 1
    assert len(steps.pop()) == 2 * ("login" in set_up) + ("secret" in set_up)


def test_no_command_takes_a_secret_as_an_argument():
    """Arguments are seen by everybody on the machine; secrets come from the environment or from files."""
    from backend.cli import build_parser

    def options(parser):
        for action in parser._actions:
            yield from action.option_strings
            for sub in (action.choices.values() if isinstance(action.choices, dict) else ()):
                yield from options(sub)

    found = set(options(build_parser()))
    assert "--json" in found
    secret = [each for each in found if any(word in each for word in ("secret", "password", "api-key", "token"))]
    assert [each for each in secret if not each.endswith("-file")] == []


def test_no_request_hands_over_a_token(services_with):
    """/setup carries the access token of the project's creator; it is dropped, not used, and not kept."""
    services = services_with(label_studio_url="http://ls", label_studio_api_key="ours")
    body = recorded("setup_request.json")["body"]
    assert body["access_token"].startswith("5ec4e7")
    assert create_app(services).test_client().post("/setup", json=body).status_code == 200
    services.store.close()
    for file in services.settings.data_dir.rglob("*"):
        assert not file.is_file() or b"5ec4e7" not in file.read_bytes()
