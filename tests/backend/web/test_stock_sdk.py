"""`PolyvoxBackend` under the server of label-studio-ml 1.0.9, in a process of its own, answers as Polyvox's own server.

Both work on one database with one published version. What is the same: every prediction, byte for byte; the status of
every answer that Label Studio needs; what an event does to the database. What differs, and cannot be helped from a
model class (`DIFFERENCES` pins it, so that a new difference fails):

- /setup: the SDK names versions itself, "INITIAL" and after the first event a number. Label Studio therefore asks again
  for tasks that it has predictions of: more requests, the same answers.
- /predict: the SDK adds its own `model_version`; predictions carry theirs, which is what Label Studio takes.
- /health and /versions tell of the SDK; GET /versions, which Label Studio sends, is 405.
- /webhook answers with a number at once; the event is handled in a process of its own, some seconds later.
- The SDK does not tell its model which project /setup was about: a project is known from its first event on, and until
  then has no predictions.
- What is wrong in a request is a 500 with a traceback in 1.0.9, not a sentence; basic auth, /validate, /job_status,
  /metrics and the status page are not there.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from flask.testing import FlaskClient

from backend.app import create_app
from backend.bootstrap import Services
from backend.ml_backend import PolyvoxBackend
from backend.records import JobKind
from tests.backend.web.conftest import ROOT, recorded, recorded_requests
from tests.backend.web.test_replay import ROUTES, send
from tests.backend.web.trained import CONFIG, KEY, trained_services

PREDICT = [name for name in recorded_requests() if name.startswith("predict")]
EVENTS = [name for name in recorded_requests() if "webhook" in name]
DIFFERENCES = {
    "health": {"model_dir", "v2", "model_class", "version"}, "setup": {"model_version"}, "predict": {"model_version"},
    "webhook": {"job_id", "marked", "message", "job"},
}
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = trained_services(tmp_path_factory.mktemp("stock"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def ours(services: Services) -> FlaskClient:
    return create_app(services).test_client()


@pytest.fixture(scope="module")
def stock(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., tuple[int, Any]]]:
    """The stock server: a function that sends a request and answers (status, JSON)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("model-dir")
    names = {each: value for each, value in os.environ.items() if not each.startswith(("POLYVOX_", "LABEL_STUDIO_"))}
    env = {
        **names, "POLYVOX_DATA_DIR": str(services.settings.data_dir), "POLYVOX_CONTROL_ARM_PERCENT": "0",
        "POLYVOX_PREDICT_DEADLINE_S": "20", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "tests/backend/web/stock_server.py", str(port), str(folder)]
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT)

    def ask(path: str, body: Any = None, method: str = "POST") -> tuple[int, Any]:
        data = None if method == "GET" else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}", data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, None

    try:
        until = time.monotonic() + 120
        while True:
            try:
                if ask("/health", method="GET")[0] == 200:
                    break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.3)
        yield ask
    finally:
        server.terminate()
        server.wait(timeout=30)


def apart(route: str, one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Fields that differ between two answers."""
    return {name for name in {*one, *other} if one.get(name) != other.get(name)} - DIFFERENCES[route]


def setup_of(predict: dict[str, Any]) -> dict[str, Any]:
    """Label Studio sends /setup before each /predict."""
    return {"project": predict["project"], "schema": predict["label_config"], "extra_params": None}


def test_health(stock: Callable[..., tuple[int, Any]], ours: FlaskClient) -> None:
    status, answer = stock("/health", method="GET")
    assert status == 200 and answer["status"] == "UP"
    assert apart("health", answer, ours.get("/health").json or {}) == set()
    assert stock("/versions", method="GET")[0] == 405


@pytest.mark.parametrize("name", ["setup_request.json", "setup_request_basic_auth.json"])
def test_setup(name: str, stock: Callable[..., tuple[int, Any]], ours: FlaskClient) -> None:
    request = recorded(name)
    status, answer = stock("/setup", request["body"])
    assert status == 200 and apart("setup", answer, send(ours, request).json or {}) == set()


@pytest.mark.parametrize("name", PREDICT)
def test_predictions_are_the_same(name: str, stock: Callable[..., tuple[int, Any]], ours: FlaskClient) -> None:
    body = recorded(name)["body"]
    assert stock("/setup", setup_of(body))[0] == 200
    status, theirs = stock("/predict", body)
    mine = ours.post("/predict", json=body).json
    assert status == 200 and mine is not None and apart("predict", theirs, mine) == set()
    assert len(theirs["results"]) == len(body["tasks"])
    if body["project"] == KEY:
        versions = [one["model_version"] for each in theirs["results"] for one in each]
        assert versions.count("consensus@r1") == len(body["tasks"]) and "annotator:6@r1" in versions


def test_another_project_s_configuration_is_not_taken(
    stock: Callable[..., tuple[int, Any]], services: Services,
) -> None:
    """1.0.9 has one model for all projects, made by the latest /setup."""
    assert stock("/setup", recorded("setup_request_basic_auth.json")["body"])[0] == 200
    status, answer = stock("/predict", recorded("predict_live_next_request.json")["body"])
    assert status == 200 and answer["results"][0][-1]["result"][0]["value"]["choices"][0] in CONFIG
    project = services.store.projects.get(KEY)
    assert project is not None and project.label_config == CONFIG


def effect_of_events(services: Services) -> tuple[Any, ...]:
    """Marks, jobs and what is known of projects; then all is as before."""
    store, keys = services.store, [project.key for project in services.store.projects.all()]
    marks = {key: {task for task, _ in store.tasks.dirty(key, 10_000)} for key in keys}
    jobs = {(key, kind) for key in keys for kind in JobKind if store.jobs.pending(key, kind)}
    known = {project.key: (project.title, project.label_config) for project in store.projects.all()}
    for key in keys:
        store.tasks.clear_dirty(key, store.tasks.dirty(key, 10_000))
    while job := store.jobs.claim("test", lease_s=60):
        store.jobs.finish(job.id, "test", figures={})
    store.projects.ensure(KEY, title="Text choices", label_config=CONFIG)
    return marks, jobs, known


@pytest.mark.parametrize("name", EVENTS)
def test_events_do_the_same(name: str, services: Services, ours: FlaskClient, tmp_path: Path) -> None:
    """What the SDK's process for an event runs, here: the same marks and jobs as our server."""
    from label_studio_ml.model import SimpleJobManager

    effect_of_events(services)
    assert send(ours, recorded(name)).status_code == 201
    before = effect_of_events(services)
    data = recorded(name)["body"]
    event = data.pop("action")
    PolyvoxBackend._of_process = services
    try:
        SimpleJobManager(str(tmp_path)).job(PolyvoxBackend, event, data, "1795818010")
    finally:
        PolyvoxBackend._of_process = None
    assert effect_of_events(services) == before


def test_an_event_of_a_real_process_arrives(
    stock: Callable[..., tuple[int, Any]], services: Services,
) -> None:
    """Training by events works in the stock server too, also Label Studio's "Start training", which 1.0.9 ignores."""
    request = recorded("webhook_annotation_created.json")["body"]
    services.store.tasks.clear_dirty(KEY, services.store.tasks.dirty(KEY, 10_000))
    status, answer = stock("/webhook", request)
    assert status == 201 and set(answer) <= DIFFERENCES["webhook"]
    until = time.monotonic() + 120
    while request["task"]["id"] not in dict(services.store.tasks.dirty(KEY, 10_000)):
        assert time.monotonic() < until, "the event did not arrive"
        time.sleep(0.3)
    assert stock("/webhook", recorded("train_request_webhook_START_TRAINING.json")["body"])[0] == 201
    while services.store.jobs.pending(KEY, JobKind.TRAIN) is None:
        assert time.monotonic() < until + 120, "the wish to train did not arrive"
        time.sleep(0.3)


def test_every_recording_is_replayed() -> None:
    routes = {name.split("_")[0] for name in recorded_requests()}
    assert routes == {"health", "setup", "predict", "versions", "webhook", "train"} and {"webhook", "predict"} <= ROUTES
    assert len(PREDICT) == 9 and len(EVENTS) == 14
