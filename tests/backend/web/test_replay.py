"""Every recorded request of a real Label Studio gets a 2xx, and what it means reaches the services."""

from __future__ import annotations

import logging

import pytest

from backend.app import create_app
from backend.records import JobKind
from tests.backend.web.conftest import recorded, recorded_requests

ROUTES = {"health", "setup", "predict", "versions", "webhook"}


def send(client, request, **headers):
    """Replay at our address: recordings have a path prefix, and one went to an address of its own."""
    last = request["path"].rsplit("/", 1)[-1]
    path = "/" + (last if last in ROUTES else "webhook")
    return client.open(path, method=request["method"], json=request["body"], headers=headers)


def test_all_recordings_are_found():
    names = recorded_requests()
    assert len(names) == 27 and {"health_request.json", "webhook_custom_with_header.json"} <= set(names)


@pytest.mark.parametrize("name", recorded_requests())
def test_a_recorded_request_is_answered(name, client, caplog):
    with caplog.at_level(logging.DEBUG):
        response = send(client, recorded(name))
    assert 200 <= response.status_code < 300, response.get_data(as_text=True)
    assert response.is_json and "Traceback" not in response.get_data(as_text=True)
    written = caplog.text
    assert "5ec4e7" not in written
    for text in ("Positive", "arrived on Tuesday", "I love this phone", "because it says so", "Terrible battery"):
        assert text not in written


def test_every_recording_in_turn_leaves_no_secret_on_disk(services, client, tmp_path):
    for name in recorded_requests():
        assert send(client, recorded(name)).status_code < 300
    services.store.close()
    found = [path for path in tmp_path.rglob("*") if path.is_file() and b"5ec4e7" in path.read_bytes()]
    assert found == []


def test_setup_keeps_the_project(services, client):
    request = recorded("setup_request.json")
    assert send(client, request).json == {"model_version": "consensus@r3"}
    assert services.store.projects.get("1.1795817992") is not None
    assert services.store.jobs.recent() == []


@pytest.mark.parametrize("name, count, deadline", [
    ("predict_batch_request.json", 3, "predict_batch_deadline_s"),
    ("predict_live_next_request.json", 1, "predict_deadline_s"),
    ("predict_interactive_request.json", 1, "predict_deadline_s"),
])
def test_predict_answers_each_task_with_the_consensus_last(name, count, deadline, services, client):
    request = recorded(name)
    results = send(client, request).json["results"]
    assert len(results) == count == len(request["body"]["tasks"])
    for each in results:
        assert [one["model_version"] for one in each] == ["annotator:5@r3", "consensus@r3"]
    key, config, tasks, deadline_s = services.prediction.asked[0]
    assert (key, config) == (request["body"]["project"], request["body"]["label_config"])
    assert list(tasks) == request["body"]["tasks"]
    assert deadline_s == getattr(services.settings, deadline)


def test_webhooks_mark_tasks(services, client):
    answer = send(client, recorded("webhook_annotation_created.json"))
    assert answer.json == {"marked": 1, "message": "Marked."}
    assert [task for task, _ in services.store.tasks.dirty("1.1795817992", 10)] == [2]


@pytest.mark.parametrize("connected, kind", [(False, JobKind.TRAIN), (True, JobKind.RECONCILE)])
def test_start_training_queues_a_job(connected, kind, services_with):
    settings = {"label_studio_url": "http://ls", "label_studio_api_key": "k"} if connected else {}
    services = services_with(**settings)
    answer = send(create_app(services).test_client(), recorded("train_request_webhook_START_TRAINING.json"))
    job = services.store.jobs.get(answer.json["job"])
    assert (job.kind, job.project) == (kind, "1.1795817992")


def test_train_of_old_versions_queues_a_job(services, client):
    send(client, recorded("setup_request.json"))
    for project in ("1.1795817992", 1, {"id": 1}):
        answer = client.post("/train", json={"project": project, "annotations": []})
        assert answer.status_code == 201 and services.store.jobs.get(answer.json["job"]) is not None


def test_versions_by_get_and_post(client):
    assert client.get("/versions").json == {"versions": []}
    send(client, recorded("setup_request.json"))
    assert client.get("/versions").json == {"versions": ["consensus@r3"]}
    assert client.get("/versions?project=1").json == {"versions": ["consensus@r3"]}
    assert client.post("/versions", json={"project": "1.1795817992"}).json == {"versions": ["consensus@r3"]}


def test_health_touches_nothing(services, client, monkeypatch):
    for part in ("store", "prediction", "registry", "triggers", "ingest"):
        monkeypatch.setattr(services, part, None)
    assert client.get("/health").json == {"status": "UP", "model_class": "PolyvoxBackend", "version": "0.1.0"}
    assert client.head("/health").status_code == 200 and client.head("/health").data == b""


def test_the_rest_of_the_contract(services, client):
    send(client, recorded("setup_request.json"))
    config = recorded("setup_request.json")["body"]["schema"]
    assert client.post("/validate", json={"config": config}).json["controls"] == [{"name": "label", "tag": "Choices"}]
    job = client.post("/train", json={"project": 1}).json["job"]
    assert client.post("/job_status", json={"job": job}).json["job_status"] == "queued"
    assert client.post("/job_status", json={"job": "no-such"}).status_code == 410
    assert client.get("/is_training?project=1").json == {"is_training": False}
    services.store.jobs.claim("me", lease_s=60)
    assert client.get("/is_training?project=1").json == {"is_training": True}
    assert client.post("/delete", json={"project": "1"}).json["deleted"] is False
    assert client.post("/duplicate_model", json={"project_src": "1", "project_dst": 2}).json["duplicated"] is False


def test_metrics(services, client):
    send(client, recorded("setup_request.json"))
    send(client, recorded("predict_batch_request.json"))
    client.post("/train", json={"project": 1})
    text = client.get("/metrics").get_data(as_text=True)
    assert 'polyvox_requests_total{method="POST",route="/predict",status="200"} 1.0' in text
    assert "polyvox_predictions_total 6.0" in text
    assert 'polyvox_jobs{kind="train",state="queued"} 1.0' in text and "polyvox_queue_depth 1.0" in text
    assert 'polyvox_votes{project="1.1795817992"} 0.0' in text
    client.get("/a/path/of/somebody")
    client.open("/health", method="SOMEBODY")
    text = client.get("/metrics").get_data(as_text=True)
    assert "somebody" not in text.lower() and 'method="other",route="unknown",status="405"' in text


def test_metrics_see_jobs_beyond_the_latest(services, client):
    """A long history does not hide what waits, and is not read."""
    for number in range(3):
        services.store.jobs.enqueue(JobKind.TRAIN, f"{number + 1}.1")
    services.store.jobs.recent = lambda *given, **named: pytest.fail("read job rows")
    text = client.get("/metrics").get_data(as_text=True)
    assert "polyvox_queue_depth 3.0" in text and 'state="done"' not in text


def test_two_apps_count_apart(services_with):
    one, two = (create_app(services_with()).test_client() for _ in range(2))
    one.get("/health")
    assert 'route="/health"' not in two.get("/metrics").get_data(as_text=True)
