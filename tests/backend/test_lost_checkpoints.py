"""Every checkpoint of a project is deleted: the status says so at once, a training is queued, a new version answers.

Real store, real files, a real training; ticks and jobs as the job process does them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from backend.app import create_app
from backend.bootstrap import Services
from backend.jobs import run_job
from backend.records import JobKind, JobState
from model.ensemble.ladder import Judgement
from tests.backend.services.workshop import HASTY
from tests.backend.web.trained import CONFIG, KEY, trained_services

TASK = {"id": 1003, "data": {"text": "love great phone 3"}, "project": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = trained_services(tmp_path_factory.mktemp("lost"), min_votes=8, job_attempts=1)
    made.training._ladder = replace(HASTY, folds=2)
    yield made
    made.close()


def answers(client: FlaskClient) -> list[str]:
    body = {"tasks": [TASK], "project": KEY, "label_config": CONFIG, "params": {}}
    return [each["model_version"] for each in client.post("/predict", json=body).json["results"][0]]


def said(client: FlaskClient) -> tuple[str, list[str]]:
    """Which version answers, and the problems of the project."""
    project = client.get("/").json["projects"][0]
    return project["says"][0], project["problems"]


def queued(services: Services) -> list[dict[str, object]]:
    return [dict(job.payload) for job in services.triggers.tick() if job.kind is JobKind.TRAIN]


def work(services: Services) -> JobState:
    job = services.store.jobs.claim("test", lease_s=60, kinds=[JobKind.TRAIN])
    assert job is not None
    run_job(services, job, owner="test")
    ended = services.store.jobs.get(job.id)
    assert ended is not None
    return ended.state


def test_checkpoints_that_are_gone_are_replaced_by_themselves(made: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    client = create_app(made).test_client()
    assert answers(client)[-1] == "consensus@r1" and queued(made) == []  # loaded into memory, and nothing to do
    shutil.rmtree(made.settings.model_dir)
    assert answers(client) == []
    words, problems = said(client)
    assert words.startswith("No version answers, since the checkpoint of r1 is missing or damaged")
    assert "The checkpoint of version r1 is missing or damaged: a training that replaces it follows by itself." in (
        problems[0])
    monkeypatch.setattr("backend.services.triggers.LOST_EVERY_S", 0.0)
    (payload,) = queued(made)
    assert payload["full"] is True and queued(made) == []
    assert "a training that replaces it is queued" in said(client)[1][0]
    made.settings.model_dir.write_text("a file where the folder should be")  # so the training fails
    assert work(made) is JobState.FAILED
    assert queued(made) == []  # not in a loop: it waits after a failure
    assert any("a training that replaces it follows by itself" in each for each in said(client)[1])
    made.settings.model_dir.unlink()
    made.triggers.train_now(KEY)
    assert work(made) is JobState.DONE
    assert answers(client)[-1] == "consensus@r2" and queued(made) == []
    words, problems = said(client)
    assert words.startswith("Version r2 answers") and problems == []


def test_an_earlier_version_stands_in_and_the_lost_one_is_replaced(
    made: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.services.triggers.LOST_EVERY_S", 0.0)
    client = create_app(made).test_client()
    loaded = made.registry.published(KEY)
    assert loaded is not None
    first = loaded.version.number
    verdict = Judgement(publish=True, reason="The test wants it.", figures={})
    newest = made.registry.save(KEY, loaded.ladder, verdict, loaded.version.figures, loaded.version.changes)
    shutil.rmtree(made.settings.model_dir / newest.path)
    words, problems = said(client)
    assert words == f"Version r{first} answers, since the checkpoint of {newest.name} is missing or damaged."
    assert f"The checkpoint of version {newest.name} is missing or damaged" in problems[0]
    (payload,) = queued(made)
    assert payload["full"] is True
    assert work(made) is JobState.DONE


def test_a_folder_that_is_whole_is_looked_at_seldom(made: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(made.triggers, "_usable", lambda version: not looks.append(version.path))
    made.triggers._looked.clear()
    for _ in range(5):
        made.triggers.tick()
    assert len(looks) == 1
