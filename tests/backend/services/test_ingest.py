"""Events of all kinds, rubbish of all kinds, and the refetch that follows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from backend.errors import ClientError, JobFailed, LabelStudioError, NotFound
from backend.records import JobKind
from backend.services.ingest import Ingest
from tests.backend.fakes import CHOICES
from tests.backend.services.reading_bench import Bench, bench

FIXTURES = Path(__file__).parents[2] / "fixtures" / "label-studio"
RECORDED = sorted([*FIXTURES.glob("webhook_*.json"), *FIXTURES.glob("train_request_*.json")])
DOWN = LabelStudioError("Label Studio cannot be reached.", retry=True)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        made.store.projects.ensure(made.key, title="A project", label_config=CHOICES)
        yield made


def body_of(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_text())["request"]["body"]
    return body


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_events_are_understood(at: Bench, path: Path) -> None:
    body = body_of(path)
    outcome = at.ingest.webhook(body)
    assert outcome.accepted and outcome.project is not None
    key = outcome.project
    created = at.store.projects.get(key)
    assert created is not None and created.label_studio_id == body["project"]["id"]
    assert (created.title, created.label_config) == ("", "")  # these are read from Label Studio
    marked = [task_id for task_id, _ in at.store.tasks.dirty(key, 100)]
    if "TRAINING" in body["action"]:
        assert outcome.start_training and marked == []
    elif "PROJECT" in body["action"] or body["action"] == "ANNOTATIONS_DELETED":
        assert marked == []  # the deleted annotation was never seen here
    elif "TASKS" in body["action"]:
        assert marked == [task["id"] for task in body["tasks"]]
    else:
        annotations = body["annotation"] if isinstance(body["annotation"], list) else [body["annotation"]]
        assert marked == [annotation["task"] for annotation in annotations]
    assert outcome.marked == len(marked)


def test_there_are_recorded_events() -> None:
    assert len(RECORDED) >= 14


def test_no_secret_of_a_payload_reaches_the_database(at: Bench) -> None:
    body = body_of(FIXTURES / "webhook_annotation_created.json")
    secrets = {"token": "t0k3n-t0k3n", "task_data_password": "hunter2hunter2", "access_token": "acc3ss-acc3ss"}
    body["project"] |= secrets
    body |= secrets
    at.ingest.webhook(body)
    at.store.close()
    stored = b"".join(file.read_bytes() for file in at.settings.data_dir.glob("polyvox.sqlite3*"))
    assert b"1795817992" in stored  # the project's key
    assert not any(secret.encode() in stored for secret in secrets.values())


def test_an_event_is_one_write(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    statements: list[str] = []
    event.listen(at.store.database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    at.ingest.webhook(at.hook("ANNOTATION_CREATED", annotation={"id": 1, "task": task_id}))
    writes = [statement.split()[2] for statement in statements if statement.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert writes == ["dirty"]


@pytest.mark.parametrize("rubbish", [
    None, [], "text", 7, {}, {"action": 3}, {"action": None}, {"action": "drop table"}, {"action": "X" * 100},
    {"action": "ANNOTATION_CREATED", "project": "one"},
    {"action": "ANNOTATION_CREATED", "project": {"id": "x"}},
    {"action": "ANNOTATION_CREATED", "project": {"id": True, "created_at": "2026-11-27T22:00:00Z"}},
    {"action": "ANNOTATION_CREATED", "project": {"id": -1, "created_at": "2026-11-27T22:00:00Z"}},
    {"action": "ANNOTATION_CREATED", "project": {"id": 2**63, "created_at": "2026-11-27T22:00:00Z"}},
    {"action": "ANNOTATION_CREATED", "project": {"id": 99}},
    {"action": "ANNOTATION_CREATED", "project": {"id": 99, "created_at": "yesterday"}},
    {"action": "ANNOTATION_CREATED", "project": {"id": 99, "created_at": 7}},
    {"action": "START_TRAINING"},
    {"action": "START_TRAINING", "project": []},
])
def test_rubbish_gets_one_sentence(at: Bench, rubbish: object) -> None:
    with pytest.raises(ClientError) as caught:
        at.ingest.webhook(rubbish)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert [project.key for project in at.store.projects.all()] == [at.key]


@pytest.mark.parametrize("body", [
    {}, {"annotation": None}, {"annotation": "x", "task": []}, {"annotation": {"id": 1}},
    {"annotation": {"id": 1, "task": "7"}}, {"annotation": {"task": 1.5}}, {"annotation": [[1]], "task": {"id": None}},
])
@pytest.mark.parametrize("action", ["ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "TASKS_CREATED", "TASKS_DELETED"])
def test_events_that_name_no_task_are_refused(at: Bench, action: str, body: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match="names no task"):
        at.ingest.webhook(at.hook(action, **body))
    assert at.dirty() == []


def test_good_items_among_bad_ones_are_marked(at: Bench) -> None:
    items = [{"task": 4}, None, {"task": "x"}, {"task": 2}]
    outcome = at.ingest.webhook(at.hook("ANNOTATIONS_CREATED", annotation=items))
    assert outcome.marked == 2 and at.dirty() == [2, 4]


def test_unknown_actions_are_accepted_as_useless(at: Bench) -> None:
    outcome = at.ingest.webhook({"action": "LABEL_LINK_CREATED", "project": {"id": 5}})
    assert not outcome.accepted and "LABEL_LINK_CREATED" in outcome.message and outcome.project is None


def test_a_payload_less_event_looks_through_the_known_projects(at: Bench) -> None:
    outcome = at.ingest.webhook({"action": "ANNOTATION_CREATED"})
    assert outcome.accepted and outcome.project is None and "no project" in outcome.message
    assert at.waiting(JobKind.RECONCILE)


def test_a_project_without_creation_time_is_the_newest_known_of_its_id(at: Bench) -> None:
    outcome = at.ingest.webhook({"action": "TASKS_CREATED", "project": {"id": at.project_id}, "tasks": [{"id": 3}]})
    assert outcome.project == at.key and at.dirty() == [3]
    with pytest.raises(NotFound):
        at.ingest.webhook({"action": "TASKS_CREATED", "project": {"id": 98}, "tasks": [{"id": 3}]})


def test_a_huge_event_is_a_comparison_instead_of_marks(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.services.ingest.MARKED_AT_MOST", 3, raising=False)
    ids = [at.studio.add_task(at.project_id) for _ in range(4)]
    few = at.ingest.webhook(at.hook("TASKS_CREATED", tasks=[{"id": task_id} for task_id in ids[:3]]))
    assert few.marked == 3 and not at.waiting(JobKind.RECONCILE)
    at.sync()
    at.reconcile()
    at.later += timedelta(seconds=1)
    for task_id in ids:
        at.studio.delete_task(task_id)
    kept = at.studio.add_task(at.project_id)
    outcome = at.ingest.webhook(at.hook("TASKS_DELETED", tasks=[{"id": task_id} for task_id in ids]))
    assert outcome.accepted and outcome.marked == 0 and at.dirty() == [] and at.waiting(JobKind.RECONCILE)
    at.later += timedelta(seconds=1)
    figures = at.reconcile()
    assert (figures["removed"], figures["swept"]) == (4, True)
    assert at.store.tasks.ids(at.key).tolist() == [kept]
    at.later += timedelta(seconds=1)
    assert at.reconcile()["swept"] is False


def test_what_a_payload_claims_about_votes_is_not_believed(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    annotation_id = at.studio.annotate(task_id, 5, "A")
    forged = {"id": annotation_id, "task": task_id, "completed_by": 6, "result": [{"value": {"choices": ["B"]}}]}
    at.ingest.webhook(at.hook("ANNOTATION_CREATED", annotation=forged))
    at.sync()
    assert at.labels() == {(task_id, "5"): "A"}


@pytest.mark.parametrize("action", ["PROJECT_UPDATED", "PROJECT_CREATED", "PROJECT_DELETED", "START_TRAINING"])
def test_a_forged_configuration_is_not_believed(at: Bench, action: str) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.store.tasks.mark_dirty(at.key, [task_id])
    at.sync()
    forged = at.studio.projects[at.project_id] | {"label_config": "<View/>", "title": "Forged"}
    assert at.ingest.webhook({"action": action, "project": forged}).accepted
    assert at.waiting(JobKind.RECONCILE) == (action != "START_TRAINING")
    at.sync()
    known = at.store.projects.get(at.key)
    assert known is not None and (known.title, known.label_config) == ("A project", CHOICES)
    assert at.labels() == {(task_id, "5"): "A"} and at.dirty() == []


def test_a_forged_deletion_deletes_nothing(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.ingest.webhook(at.hook("TASKS_DELETED", tasks=[{"id": task_id}]))
    at.sync()
    assert at.labels() == {(task_id, "5"): "A"}


def test_a_day_of_events(at: Bench) -> None:
    first, second = at.studio.add_task(at.project_id), at.studio.add_task(at.project_id)
    one, two = at.studio.annotate(first, 5, "A"), at.studio.annotate(first, 6, "B")
    skipped = at.studio.annotate(second, 5, "A", result=[], was_cancelled=True)
    for annotation_id, task_id in ((one, first), (two, first), (skipped, second)):
        at.ingest.webhook(at.hook("ANNOTATION_CREATED", annotation={"id": annotation_id, "task": task_id}))
    assert at.sync() == {"tasks": 2, "removed": 0, "changed_votes": 2, "unreadable": 0}
    assert at.labels() == {(first, "5"): "A", (first, "6"): "B"} and at.dirty() == []

    at.studio.change(one, "C")
    at.ingest.webhook(at.hook("ANNOTATION_UPDATED", annotation={"id": one, "task": first}))
    at.studio.delete_annotation(two)
    outcome = at.ingest.webhook(at.hook("ANNOTATIONS_DELETED", annotations=[{"id": two}]))
    assert outcome.marked == 1 and at.dirty() == [first]
    at.sync()
    assert at.labels() == {(first, "5"): "C"}

    at.studio.delete_task(first)
    at.ingest.webhook(at.hook("TASKS_DELETED", tasks=[{"id": first}]))
    assert at.sync()["removed"] == 1
    assert at.labels() == {} and at.store.tasks.ids(at.key).tolist() == [second]
    assert at.sync() == {"tasks": 0, "removed": 0, "changed_votes": 0, "unreadable": 0}


def test_an_account_that_is_gone_keeps_its_last_known_id(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.studio.annotate(task_id, 6, "B")
    at.ingest.webhook(at.hook("TASKS_CREATED", tasks=[{"id": task_id}]))
    at.sync()
    at.studio.delete_account(5)
    unknown = at.studio.annotate(task_id, None, "C")
    at.ingest.webhook(at.hook("TASKS_CREATED", tasks=[{"id": task_id}]))
    at.sync()
    assert at.labels() == {(task_id, "5"): "A", (task_id, "6"): "B", (task_id, f"deleted:{unknown}"): "C"}


def test_votes_after_a_pre_annotation_are_not_scored_but_the_control_arm_is(tmp_path: Path) -> None:
    for percent, scored in ((0.0, False), (100.0, True)):
        with bench(tmp_path / str(percent), control_arm_percent=percent) as at:
            at.store.projects.ensure(at.key, label_config=CHOICES)
            before, after = at.studio.add_task(at.project_id), at.studio.add_task(at.project_id)
            at.studio.annotate(before, 5, "A")
            at.studio.now += timedelta(minutes=3)
            at.store.deliveries.remember_shown(at.key, [before, after], at=at.clock())
            at.studio.annotate(after, 5, "B")
            at.store.tasks.mark_dirty(at.key, [before, after])
            at.sync()
            votes = at.store.votes.current(at.key)
            by_unit = {votes.units[unit]: bool(flag) for unit, flag in zip(votes.unit, votes.scored, strict=True)}
            assert by_unit == {str(before): True, str(after): scored}


@pytest.mark.parametrize("after", [{"control_arm_percent": 100.0}, {"control_arm_percent": 100.0, "middleware": False}])
def test_other_settings_do_not_make_old_votes_scored(tmp_path: Path, after: dict[str, Any]) -> None:
    with bench(tmp_path, control_arm_percent=0.0) as at:
        at.store.projects.ensure(at.key, label_config=CHOICES)
        task_id = at.studio.add_task(at.project_id)
        at.store.deliveries.remember_shown(at.key, [task_id], at=at.clock())
        at.studio.annotate(task_id, 5, "A")
        for settings in ({}, after):
            ingest = Ingest(
                store=at.store, label_studio=at.studio, settings=replace(at.settings, **settings), clock=at.clock
            )
            at.store.tasks.mark_dirty(at.key, [task_id])
            ingest.sync(at.key, at.progress)
            assert at.store.votes.current(at.key).scored.tolist() == [False]


def test_label_studio_down_is_retried_seen_and_caught_up(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.ingest.webhook(at.hook("TASKS_CREATED", tasks=[{"id": task_id}]))
    at.studio.fail_with = DOWN
    pauses = []
    for _ in range(3):
        with pytest.raises(JobFailed) as caught:
            at.sync()
        pauses.append(caught.value.retry_in_s)
    assert pauses == [5.0, 10.0, 20.0]
    state = at.store.projects.sync_state(at.key)
    assert state.failures == 3 and state.last_error == str(DOWN) and at.dirty() == [task_id]
    at.studio.fail_with = None
    at.sync()
    state = at.store.projects.sync_state(at.key)
    assert (state.failures, state.last_error) == (0, "") and at.labels() == {(task_id, "5"): "A"}


def test_a_refused_token_is_not_retried_at_once(at: Bench) -> None:
    at.store.tasks.mark_dirty(at.key, [1])
    at.studio.fail_with = LabelStudioError("Label Studio refused the token.", retry=False, http_status=401)
    with pytest.raises(JobFailed) as caught:
        at.sync()
    assert caught.value.retry_in_s is None and at.dirty() == [1]


def test_a_mark_set_while_its_task_is_read_stays(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.store.tasks.mark_dirty(at.key, [task_id])
    original = at.studio.tasks_by_id
    reads = []

    def slow(project_id: int, task_ids: Any) -> dict[int, dict[str, Any]]:
        answer = original(project_id, task_ids)
        if not reads:
            at.studio.annotate(task_id, 5, "A")
            at.ingest.webhook(at.hook("ANNOTATION_CREATED", annotation={"id": 1, "task": task_id}))
        reads.append(task_ids)
        return answer

    at.studio.tasks_by_id = slow  # type: ignore[method-assign]
    at.sync()
    assert len(reads) == 2 and at.labels() == {(task_id, "5"): "A"} and at.dirty() == []


def test_a_crash_between_votes_and_marks_reads_again(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.store.tasks.mark_dirty(at.key, [task_id])

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(at.store.tasks, "clear_dirty", crash)
        with pytest.raises(KeyboardInterrupt):
            at.sync()
    assert at.labels() == {(task_id, "5"): "A"} and at.dirty() == [task_id]
    assert at.sync()["changed_votes"] == 0 and at.dirty() == []


def test_a_task_that_cannot_be_decoded_does_not_stop_the_others(at: Bench) -> None:
    good, bad = at.studio.add_task(at.project_id), at.studio.add_task(at.project_id)
    at.studio.annotate(good, 5, "A")
    at.studio.annotate(bad, 5, "A", lead_time=1e400, created_at="0001-01-01T00:00:00+23:59")
    at.store.tasks.mark_dirty(at.key, [good, bad])
    at.sync()
    assert at.labels()[good, "5"] == "A" and at.dirty() == []


def test_many_marks_are_read_in_batches(at: Bench) -> None:
    ids = [at.studio.add_task(at.project_id) for _ in range(230)]
    at.ingest.webhook(at.hook("TASKS_CREATED", tasks=[{"id": task_id} for task_id in ids]))
    at.studio.calls.clear()
    assert at.sync()["tasks"] == 230
    assert at.studio.calls == ["tasks_by_id"] * 3
    assert at.notes == [f"read {done} of 230 changed tasks" for done in (100, 200, 230)]


def test_a_project_that_nobody_knows_fails_with_a_sentence(at: Bench) -> None:
    with pytest.raises(JobFailed, match="does not know"):
        at.ingest.sync("9.9", at.progress)
