"""The app on the services that `build_services` makes: recorded requests, bad input, one real version, gunicorn."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import torch

from backend.app import create_app
from backend.bootstrap import build_services
from backend.records import Annotation, StoredVote, Task, TaskSnapshot
from backend.settings import Settings
from model.data.spaces import Value
from model.data.votes import Provenance
from tests.backend.encoders import WordHashEncoder
from tests.backend.web.conftest import CONFIG, NOW, ROOT, recorded, recorded_requests
from tests.backend.web.test_bad_input import DOUBLE, GOOD, WRONG, refused
from tests.backend.web.test_replay import send

KEY = "1.1764288000"
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    services = build_services(Settings(data_dir=tmp_path_factory.mktemp("real")), encoder=WordHashEncoder())
    yield services
    services.close()


@pytest.fixture(scope="module")
def client(real):
    return create_app(real).test_client()


@pytest.mark.parametrize("name", recorded_requests())
def test_a_recorded_request_is_answered(name, client):
    response = send(client, recorded(name))
    assert 200 <= response.status_code < 300, response.get_data(as_text=True)
    if name.startswith("predict"):
        assert len(response.json["results"]) == len(recorded(name)["body"]["tasks"])


@pytest.mark.parametrize("path, change", WRONG, ids=[f"{path}-{index}" for index, (path, _) in enumerate(WRONG)])
def test_wrong_fields(path, change, real, client):
    before = {project.key for project in real.store.projects.all()}
    refused(client.post(path, json={**GOOD[path], **change}))
    assert {project.key for project in real.store.projects.all()} == before


def snapshots(count):
    """Annotator 1 likes what is good, annotator 2 likes everything."""
    for task_id in range(1, count + 1):
        text = "good kind words" if task_id % 2 else "bad rude words"
        given = {"1": "A" if task_id % 2 else "B", "2": "A"}
        annotations = [Annotation(
            id=task_id * 10 + int(who), task_id=task_id, annotator=who, result=[], was_cancelled=False,
            ground_truth=False, created_at=NOW, updated_at=NOW, lead_time_s=2.0, imported=False,
            parent_prediction=None) for who in given]
        votes = [StoredVote(
            unit=str(task_id), task_id=task_id, annotation_id=task_id * 10 + int(who), annotator=who, control="label",
            value=Value.of_class(choice), updated_at=NOW, lead_time_s=2.0, provenance=Provenance.MANUAL, shown=False,
            control_arm=False) for who, choice in given.items()]
        yield TaskSnapshot(
            task=Task(id=task_id, data={"text": text}, updated_at=NOW), annotations=annotations, votes=votes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A service that has published its first version."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("trained"), control_arm_percent=0, predict_deadline_s=20.0)
    services = build_services(settings, encoder=WordHashEncoder())
    services.store.projects.ensure(KEY, title="T", label_config=CONFIG)
    services.store.tasks.take_over(KEY, list(snapshots(40)))
    services.training.run(KEY, lambda fraction, note: None)
    yield services
    services.close()


def test_setup_and_predict_agree_on_the_version(trained):
    client = create_app(trained).test_client()
    version = client.post("/setup", json={"project": KEY, "schema": CONFIG}).json["model_version"]
    assert version == "consensus@r1" and client.get("/versions").json == {"versions": [version]}
    tasks = [{"id": 90, "data": {"text": "good kind words"}}, {"id": 91, "data": {}}]
    new, empty = client.post("/predict", json={"project": KEY, "label_config": CONFIG, "tasks": tasks}).json["results"]
    assert new[-1]["model_version"] == version
    assert {each["model_version"] for each in new[:-1]} == {"annotator:1@r1", "annotator:2@r1"}
    assert empty == [] or empty[-1]["model_version"] == version


@pytest.mark.parametrize("data", [
    {}, {"$undefined$": "x"}, {"text": ""}, {"text": "word " * 10_000}, {"text": None}, {"text": 5}, {"text": ["a"]},
    {"text": {"a": {"b": 1}}}, {"text": "\ud800 \x00 \u202e"}, {"text": "<b>good</b> &amp; kind"}])
def test_odd_task_data_gets_a_valid_answer(data, trained):
    body = {**GOOD["/predict"], "project": KEY, "tasks": [{"id": 95, "data": data}]}
    answer = create_app(trained).test_client().post("/predict", json=body)
    assert answer.status_code == 200 and len(answer.json["results"]) == 1
    json.dumps(answer.json, allow_nan=False)


def test_a_label_that_left_the_configuration_is_not_predicted(trained):
    config = CONFIG.replace('<Choice value="A"/>', "")
    body = {"project": KEY, "label_config": config, "tasks": [{"id": 96, "data": {"text": "good kind words"}}]}
    answer = create_app(trained).test_client().post("/predict", json=body)
    assert answer.status_code == 200 and '"A"' not in answer.get_data(as_text=True)
    refused(create_app(trained).test_client().post("/predict", json={**body, "label_config": DOUBLE}), 400)
    create_app(trained).test_client().post("/setup", json={"project": KEY, "schema": CONFIG})


def test_the_page_shows_the_figures_of_a_real_version(trained):
    client = create_app(trained).test_client()
    (project,) = client.get("/").json["projects"]
    ways = project["heldout"]["label"]["ways"]
    assert {"served", "prior"} <= set(ways) and 0.0 <= ways["served"]["accuracy"] <= 1.0
    assert "Polyvox’ predictions" in client.get("/", headers={"Accept": "text/html"}).get_data(as_text=True)


def test_gunicorn_serves_it_from_the_environment_alone(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "POLYVOX_DATA_DIR": str(tmp_path / "data"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--threads", "2", "_wsgi:app"]
    server = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert _get(f"http://127.0.0.1:{port}/health", server)["model_class"] == "PolyvoxBackend"
        assert _get(f"http://127.0.0.1:{port}/", server)["status"] == "UP"
        assert (tmp_path / "data" / "polyvox.sqlite3").exists()
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)


def _get(url, server, *, timeout_s=90.0):
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        assert server.poll() is None, server.stdout.read().decode()
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    raise AssertionError(f"{url} did not answer within {timeout_s} s")
