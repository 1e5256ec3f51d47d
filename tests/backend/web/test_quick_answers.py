"""/health, /setup and /webhook, for which an annotator waits: no HTTP call, no model built or loaded, nothing encoded,
no table walked through, a handful of statements; on real services, by spies.
"""

from __future__ import annotations

import copy
import re
import socket
from collections.abc import Iterator

import pytest
import torch
from sqlalchemy import event, text

from backend.app import create_app
from backend.bootstrap import Services
from backend.records import JobKind
from backend.registry import Registry
from backend.services.features import Features
from model.ensemble.ladder import Ladder
from tests.backend.web.conftest import recorded, recorded_requests
from tests.backend.web.test_replay import send
from tests.backend.web.trained import CONFIG, KEY, trained_services

QUICK = [name for name in recorded_requests()
         if name.startswith(("health", "setup", "webhook")) or "START_TRAINING" in name]
# They grow with a project. Projects themselves are few, and an event without payload looks at all of them.
LARGE = ("tasks", "votes", "annotations", "dirty", "jobs", "arm_log", "own_predictions", "drafts", "shown", "versions")
MOST_STATEMENTS = 10
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = trained_services(
        tmp_path_factory.mktemp("quick"), label_studio_url="http://127.0.0.1:9", label_studio_api_key="k")
    yield made
    made.close()


@pytest.fixture
def spied(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Nothing slow may happen; answers the list of statements that were run."""
    def forbid(name: str) -> object:
        return lambda *given, **named: pytest.fail(f"{name} was called while somebody waits")

    monkeypatch.setattr(socket.socket, "connect", forbid("socket.connect"))
    monkeypatch.setattr(socket, "getaddrinfo", forbid("getaddrinfo"))
    monkeypatch.setattr(torch.nn.Module, "__init__", forbid("torch.nn.Module"))
    monkeypatch.setattr(torch.nn.Module, "__call__", forbid("a network"))
    monkeypatch.setattr(Ladder, "load", forbid("Ladder.load"))
    monkeypatch.setattr(Registry, "published", forbid("Registry.published"))
    for method in ("texts", "texts_within", "cached"):
        monkeypatch.setattr(Features, method, forbid(f"Features.{method}"))
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    engine = services.store.database.engine  # type: ignore[attr-defined]
    event.listen(engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine, "before_cursor_execute", note)


def plans(services: Services, statements: list[str]) -> list[str]:
    """How SQLite goes about each statement."""
    found = []
    with services.store.database.engine.connect() as connection:  # type: ignore[attr-defined]
        for statement in set(statements):
            values = ["1"] * statement.count("?")
            rows = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, tuple(values))
            found += [f"{row[3]} <- {statement}" for row in rows]
    return found


def walks(plan: str) -> bool:
    walked = re.match(r"SCAN (\w+)", plan)
    return walked is not None and walked[1] in LARGE


def test_the_recordings_are_there() -> None:
    assert len(QUICK) == 17


@pytest.mark.parametrize("name", QUICK)
def test_nothing_slow_happens_while_somebody_waits(name: str, services: Services, spied: list[str]) -> None:
    response = send(create_app(services).test_client(), recorded(name))
    assert response.status_code < 300, response.get_data(as_text=True)
    assert len(spied) <= (0 if name.startswith("health") else MOST_STATEMENTS), spied
    assert [plan for plan in plans(services, list(spied)) if walks(plan)] == []


@pytest.mark.parametrize("body", [
    {"action": "ANNOTATION_CREATED"}, {"action": "LABEL_LINK_CREATED"}, {"action": "TASKS_UPDATED", "tasks": []}])
def test_events_without_payload_are_quick_too(body: dict[str, object], services: Services, spied: list[str]) -> None:
    assert create_app(services).test_client().post("/webhook", json=body).status_code == 201
    projects = len(services.store.projects.all())
    assert len(spied) <= 4 + 2 * projects
    assert [plan for plan in plans(services, list(spied)) if walks(plan)] == []


def test_a_changed_configuration_costs_as_much_in_a_large_project(services: Services, spied: list[str]) -> None:
    """Label Studio is to be asked, and maybe every task to be read again, which is a job's business."""
    client = create_app(services).test_client()
    setup = {"project": KEY, "schema": CONFIG.replace('name="label"', 'name="label1"')}
    update = copy.deepcopy(recorded("webhook_project_updated.json")["body"]) | {"action": "PROJECT_UPDATED"}
    marked = services.store.tasks.dirty(KEY, 1000)
    for path, body in (("/setup", setup), ("/webhook", update)):
        spied.clear()
        assert client.post(path, json=body).status_code < 300
        assert len(spied) <= MOST_STATEMENTS
        assert [plan for plan in plans(services, list(spied)) if walks(plan)] == []
        assert services.store.jobs.pending(KEY, JobKind.RECONCILE) is not None
        assert services.store.tasks.dirty(KEY, 1000) == marked


def test_the_spies_see(services: Services, spied: list[str]) -> None:
    """/predict does all of what the others must not; a walk through a table is recognised."""
    body = recorded("predict_live_next_request.json")["body"]
    with pytest.raises(pytest.fail.Exception):
        create_app(services).test_client().post("/predict", json=body)
    with services.store.database.engine.connect() as connection:  # type: ignore[attr-defined]
        connection.execute(text("SELECT count(*) FROM votes WHERE value = 'x'"))
    assert any(walks(plan) for plan in plans(services, list(spied)))
