"""Requests while another process holds the database, or while the disk is full: nobody waits, nothing is lost."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from backend.app import create_app
from backend.bootstrap import Services
from backend.records import EVERY_TASK, JobKind
from tests.backend.holding import locked
from tests.backend.web.trained import CONFIG, KEY, trained_services


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = trained_services(tmp_path_factory.mktemp("locked"), predict_deadline_s=2.0, min_votes=8)
    yield made
    made.close()


@pytest.fixture
def client(services: Services) -> Iterator[FlaskClient]:
    yield create_app(services).test_client()
    services.late.take_in()
    services.store.tasks.clear_dirty(KEY, services.store.tasks.dirty(KEY, 10_000))


@pytest.fixture
def database(services: Services) -> Path:
    return services.settings.data_dir / "polyvox.sqlite3"


def event(action: str = "ANNOTATION_CREATED", **body: object) -> dict[str, object]:
    return {"action": action, "project": {"id": int(KEY.partition(".")[0]), "created_at": created(), "title": "",
                                          "label_config": CONFIG}, **body}


def created() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(KEY.partition(".")[2])))


def dirty(services: Services) -> set[int]:
    return {task for task, _ in services.store.tasks.dirty(KEY, 10_000)}


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def timed(ask: Callable[[], object]) -> float:
    begun = time.monotonic()
    ask()
    return time.monotonic() - begun


def test_webhooks_do_not_wait_for_a_lock_and_are_taken_in_after_it(
    client: FlaskClient, services: Services, database: Path
) -> None:
    with locked(database):
        took, answers = [], []
        for task in range(1000, 1010):
            took.append(timed(lambda task=task: answers.append(
                client.post("/webhook", json=event(annotation={"id": 5, "task": task}, task={"id": task})))))
        assert {answer.status_code for answer in answers} == {201}
        assert "is locked by another program; this is kept" in answers[0].json["message"]
        assert sorted(took)[len(took) // 2] < 0.6, "each waits a quarter of a second for the database"
        assert dirty(services) == set()
    until(lambda: dirty(services) == set(range(1000, 1010)))


def test_other_requests_answer_while_the_database_is_locked(
    client: FlaskClient, services: Services, database: Path
) -> None:
    task = {"id": 1003, "data": {"text": "love great phone 3"}, "project": 1}
    with locked(database):
        health = timed(lambda: client.get("/health"))
        begun = time.monotonic()
        answer = client.post("/predict", json={"tasks": [task], "project": KEY, "label_config": CONFIG, "params": {}})
        took = time.monotonic() - begun
        page, check = client.get("/"), client.post("/train", json={"project": KEY})
    assert health < 1.0 and took < 5.0
    assert [made["model_version"] for made in answer.json["results"][0]][-1] == "consensus@r1"
    assert page.status_code == 200
    assert check.status_code == 503 and "Retry-After" in check.headers
    assert check.json["error"] == ("The database is locked by another program, so this cannot be answered now; try "
                                   "again in a moment.")
    until(lambda: 1003 in services.store.deliveries.shown_since(KEY, [1003]))


def test_events_that_name_no_task_are_a_comparison_later(
    client: FlaskClient, services: Services, database: Path
) -> None:
    with locked(database):
        assert client.post("/webhook", json=event("PROJECT_UPDATED")).status_code == 201
        assert client.post("/webhook", json={"action": "ANNOTATION_CREATED", "annotation": {"task": "x"},
                                             "project": event()["project"]}).status_code == 400
        assert client.post("/webhook", json=event("START_TRAINING")).status_code == 503
    until(lambda: services.store.jobs.pending(KEY, JobKind.RECONCILE) is not None or not services.triggers.connected)


def test_a_full_disk_keeps_events_in_memory_and_says_so(
    client: FlaskClient, services: Services, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with locked(database):
        monkeypatch.setattr("backend.store.journal._write", full)
        for task in (1011, 1012):
            answer = client.post("/webhook", json=event(annotation={"id": 5, "task": task}, task={"id": task}))
            assert answer.status_code == 201
        said = [sentence for sentence in client.get("/").json["problems"] if "kept in memory only" in sentence]
        assert said and "No space left on device" in said[0] and "make room on the disk" in said[0]
    until(lambda: dirty(services) == {1011, 1012})
    until(lambda: not any("in memory only" in each for each in client.get("/").json["problems"]))


def test_too_many_events_are_every_task_and_the_status_says_so(
    client: FlaskClient, services: Services, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.late._journal, "_most_bytes", 3000)
    with locked(database):
        services.late.keep([["mark", KEY, list(range(2000, 3000))]])
        said = client.get("/").json["problems"]
        assert any("More events came than the journal holds" in sentence for sentence in said)
    until(lambda: EVERY_TASK in dirty(services))
    assert not any("More events came" in sentence for sentence in client.get("/").json["problems"])


def test_a_journal_that_cannot_be_read_is_named_and_the_page_is_there(client: FlaskClient, services: Services) -> None:
    """As one that another account wrote; whoever runs the tests may be allowed to read such a file, but no folder."""
    folder = services.settings.data_dir / "journal"
    folder.mkdir(exist_ok=True)
    (folder / "aside-1").mkdir()
    services.late.keep([["mark", KEY, [1013]]])
    until(lambda: 1013 in dirty(services))
    (said,) = [each for each in client.get("/").json["problems"] if "cannot be taken in" in each]
    assert "Is a directory" in said and "belong to the account that runs Polyvox" in said
    (folder / "aside-1").rmdir()
    assert not any("cannot be taken in" in each for each in client.get("/").json["problems"])


def test_entries_that_are_none_of_ours_stop_neither_the_journal_nor_the_job_process(
    client: FlaskClient, services: Services
) -> None:
    """Written by another version, or by hand; `take_in` is called at each tick, before anything is scheduled."""
    odd = [["mark"], ["all"], ["mark", KEY, [1, "a"]], ["mark", KEY, [2**70]], ["shown", KEY, ["a"], "2026-11-30"],
           ["arm", KEY, "r1", [[1]]], ["other", KEY]]
    services.late._journal.append([*odd, ["mark", KEY, [1014]]])
    services.late.take_in()
    assert 1014 in dirty(services) and not services.late._journal.waiting()
    assert any(job.kind is JobKind.RECONCILE for job in services.store.jobs.recent(KEY, limit=9))
