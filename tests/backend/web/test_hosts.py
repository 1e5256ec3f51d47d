"""No web page but our own reaches Polyvox: not under its own name (DNS rebinding), not across origins, on no route."""

from __future__ import annotations

import pytest

from backend.app import create_app
from backend.settings import Settings
from tests.backend.web.test_auth import LOGIN, RIGHT
from tests.backend.web.test_auth_matrix import addresses

CONNECTED = {"label_studio_url": "https://label.example.org", "label_studio_api_key": "key"}
OURS = {"url": "https://polyvox.example.org", **CONNECTED}


@pytest.fixture
def app_with(services_with):
    return lambda **settings: create_app(services_with(**settings))


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"Host": "evil.example:9090"}, {"Host": "127.0.0.1.evil.example"},
    {"Host": "localhost.evil.example"}, {"Host": "xpolyvox"}, {"Host": "a@b@evil.example"}, {"Host": "["},
    {"Host": "evil.example, x.localhost"}, {"Host": "evil.example%2f.localhost"}, {"Host": "[::1%25evil.example]"},
    {"Host": "evil.example", **RIGHT}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://["},
    {"Origin": "http://localhost:8080"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
], ids=str)
@pytest.mark.parametrize("settings", [{}, LOGIN], ids=["open", "login"])
def test_every_route_but_health_refuses_other_sites(headers, settings, app_with):
    app = app_with(**settings)
    client, opened = app.test_client(), set()
    for method, path in addresses(app):
        answer = client.open(path, method=method, headers=headers)
        if answer.status_code != 403:
            opened.add(path)
        elif method != "HEAD":
            assert set(answer.json) == {"error"} and answer.json["error"].endswith(".")
    assert opened == {"/health"}


def test_label_studio_can_show_why(app_with):
    """It shows the reason in the status line and not the body."""
    answer = app_with().test_client().post("/setup", json={"project": "1.2"}, headers={"Host": "polyvox.example.org"})
    assert answer.status == "403 Host not allowed, set POLYVOX_ALLOWED_HOSTS"
    assert "POLYVOX_ALLOWED_HOSTS" in answer.json["error"] and "POLYVOX_URL" in answer.json["error"]


@pytest.mark.parametrize("host, settings, status", [
    ("localhost:9090", {}, 200), ("LOCALHOST", {}, 200), ("localhost.", {}, 200), ("a.localhost", {}, 200),
    ("127.0.0.1:9090", {}, 200), ("10.1.2.3", {}, 200), ("[::1]:9090", {}, 200), ("polyvox:9090", {}, 200),
    ("polyvox.internal:9090", {}, 200), ("", {}, 200), ("polyvox.example.org", {}, 403), ("ml:9090", {}, 403),
    ("polyvox.example.org", OURS, 200), ("rebound.example.net:9090", OURS, 403),
    ("polyvox.example.org", {"allowed_hosts": "ml, *.example.org"}, 200), ("ml", {"allowed_hosts": "ml,x"}, 200),
    ("example.org", {"allowed_hosts": "*.example.org"}, 403), ("anything.example", {"allowed_hosts": "*"}, 200),
])
def test_names(host, settings, status, app_with):
    client = app_with(**settings).test_client()
    for path in ("/", "/projects", "/api/projects", "/versions", "/metrics"):
        assert client.get(path, headers={"Host": host}).status_code == status, path
    assert client.post("/setup", json={"project": "1.2"}, headers={"Host": host}).status_code == status
    assert client.get("/health", headers={"Host": host}).status_code == 200


def test_this_machine_s_own_name(app_with, monkeypatch):
    monkeypatch.setattr("backend.routes.hosts.socket.gethostname", lambda: "Server-3")
    assert app_with().test_client().get("/", headers={"Host": "server-3:9090"}).status_code == 200


@pytest.mark.parametrize("headers", [
    {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"},
    {"Sec-Fetch-Site": "none"}, {}], ids=str)
def test_our_own_pages_and_programs_may_ask(headers, app_with):
    client = app_with().test_client()
    assert client.get("/versions", headers=headers).status_code == 200
    assert client.post("/setup", json={"project": "1.2"}, headers=headers).status_code == 200


def test_a_link_of_another_site_opens_pages_and_nothing_else(app_with):
    client = app_with().test_client()
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/projects", headers=link).status_code == 200
    assert client.get("/metrics", headers=link).status_code == 403
    assert client.post("/projects/1/flags", headers=link).status_code == 403
    assert client.get("/projects", headers={**link, "Sec-Fetch-Mode": "no-cors"}).status_code == 403


def test_the_log_tells_of_refused_names_once_and_names_none(app_with, caplog):
    client = app_with().test_client()
    for number in range(5):
        client.get("/", headers={"Host": f"evil{number}.example"})
    told = [record for record in caplog.records if "POLYVOX_ALLOWED_HOSTS" in record.getMessage()]
    assert len(told) == 1 and "evil" not in caplog.text


@pytest.mark.parametrize("given", ["http://x", "a/b", "a,,b", "a;b"])
def test_what_is_no_name_is_refused_at_the_start(given):
    with pytest.raises(Exception, match="POLYVOX_ALLOWED_HOSTS"):
        Settings(allowed_hosts=given)
