"""Label configs that change, come late or are missing while events are worked off."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from backend.errors import JobFailed
from backend.records import EVERY_TASK, JobKind
from backend.services.ingest import Ingest
from backend.services.reading import Reader
from tests.backend.fakes import CHOICES
from tests.backend.services.reading_bench import Bench, bench


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        made.store.projects.ensure(made.key, title="A project", label_config=CHOICES)
        yield made


def read_changed(at: Bench, config: str) -> None:
    """Label Studio's configuration is another one, and is read."""
    at.studio.projects[at.project_id]["label_config"] = config
    reader = Reader(store=at.store, label_studio=at.studio, settings=at.settings)
    reader.refresh(reader.known(at.key))


def test_a_changed_config_has_all_tasks_read_again(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.store.tasks.mark_dirty(at.key, [task_id])
    at.sync()
    project = at.studio.projects[at.project_id]
    project["title"] = "Renamed"
    project["label_config"] = CHOICES.replace("<View>", "<View> ")
    at.ingest.webhook(at.hook("PROJECT_UPDATED"))
    assert at.waiting(JobKind.RECONCILE)
    at.reconcile()
    assert at.dirty() == []  # nothing that matters to votes
    project["label_config"] = CHOICES.replace('name="label"', 'name="tone"')
    at.ingest.webhook(at.hook("PROJECT_UPDATED"))
    at.reconcile()
    assert at.dirty() == [EVERY_TASK]
    known = at.store.projects.get(at.key)
    assert known is not None and known.title == "Renamed"
    at.sync()
    assert at.labels() == {}  # no annotation has an answer for the new control
    assert at.dirty() == []


def test_a_config_that_changes_while_marks_are_read_is_read_by_once(at: Bench) -> None:
    ids = [at.studio.add_task(at.project_id) for _ in range(3)]
    at.store.tasks.mark_dirty(at.key, ids)
    original, reads = at.studio.tasks_by_id, []

    def changing(project_id: int, task_ids: Any) -> dict[int, dict[str, Any]]:
        assert len(reads) < 10
        if not reads:
            read_changed(at, CHOICES.replace('name="label"', 'name="tone"'))
        reads.append(task_ids)
        return original(project_id, task_ids)

    at.studio.tasks_by_id = changing  # type: ignore[method-assign]
    at.sync()
    assert len(reads) == 2 and at.dirty() == []


def test_setup_and_predict_may_hear_of_a_changed_config_first(at: Bench) -> None:
    """Nothing is answered under it until Label Studio was asked."""
    ids = [at.studio.add_task(at.project_id) for _ in range(3)]
    for task_id in ids:
        at.studio.annotate(task_id, 5, "A")
    at.store.tasks.mark_dirty(at.key, ids)
    at.sync()
    changed = CHOICES.replace('name="label"', 'name="tone"')
    at.studio.projects[at.project_id]["label_config"] = changed
    assert at.ingest.configured(at.key, changed) == "" and at.waiting(JobKind.RECONCILE)
    at.reconcile()
    assert at.ingest.configured(at.key, changed) == changed
    assert at.sync()["tasks"] == 3 and at.labels() == {}
    assert at.ingest.configured(at.key, "") == changed and at.dirty() == []


def test_a_forged_config_leads_to_one_look_and_nothing_else(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.studio.annotate(task_id, 5, "A")
    at.reconcile()
    for number in range(20):
        forged = CHOICES.replace('name="label"', f'name="tone{number}"')
        assert at.ingest.configured(at.key, forged) == ""
        at.ingest.webhook({**at.hook("PROJECT_UPDATED"), "project": {
            **at.studio.projects[at.project_id], "label_config": forged, "title": "Forged"}})
    known = at.store.projects.get(at.key)
    assert known is not None and (known.label_config, known.title) == (CHOICES, "A project")
    assert at.ingest.configured(at.key, CHOICES) == CHOICES == at.ingest.configured(at.key, CHOICES + " ")
    assert [job.kind for job in at.store.jobs.recent(at.key)] == [JobKind.RECONCILE] and at.dirty() == []
    at.reconcile()
    assert at.labels() == {(task_id, "5"): "A"} and at.dirty() == []


def test_where_label_studio_cannot_be_asked_a_config_answers_its_own_request_only(at: Bench) -> None:
    alone = Ingest(store=at.store, label_studio=at.studio, settings=replace(at.settings, label_studio_api_key=""),
                   clock=at.clock)
    changed = CHOICES.replace('name="label"', 'name="tone"')
    assert alone.configured(at.key, changed) == changed
    assert alone.configured(at.key, "") == CHOICES
    assert at.store.jobs.recent(at.key) == [] and at.dirty() == []


def test_a_crash_while_a_changed_config_is_stored_leaves_all_of_it_or_nothing(at: Bench) -> None:
    task_id = at.studio.add_task(at.project_id)
    at.store.tasks.mark_dirty(at.key, [task_id])
    at.sync()
    changed = CHOICES.replace('name="label"', 'name="tone"')

    def crash(*arguments: Any) -> None:
        if arguments[2].startswith("INSERT INTO dirty"):
            raise KeyboardInterrupt

    event.listen(at.store.database.engine, "before_cursor_execute", crash)
    with pytest.raises(KeyboardInterrupt):
        read_changed(at, changed)
    event.remove(at.store.database.engine, "before_cursor_execute", crash)
    known = at.store.projects.get(at.key)
    assert known is not None and known.label_config == CHOICES and at.dirty() == []
    read_changed(at, changed)
    assert at.dirty() == [EVERY_TASK]


def test_a_crash_while_all_tasks_are_marked_forgets_none(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [at.studio.add_task(at.project_id) for _ in range(5)]
    at.store.tasks.mark_dirty(at.key, ids)
    at.sync()
    read_changed(at, CHOICES.replace('"C"', '"D"'))
    mark_dirty, marked = at.store.tasks.mark_dirty, []

    def crash(key: str, task_ids: list[int]) -> None:
        if len(marked) == 2:
            raise RuntimeError("the process dies")
        marked.append(task_ids)
        mark_dirty(key, task_ids)

    monkeypatch.setattr("backend.services.reading.MARKED_AT_ONCE", 2)
    with monkeypatch.context() as patch:
        patch.setattr(at.store.tasks, "mark_dirty", crash)
        with pytest.raises(RuntimeError):
            at.sync()
    assert at.dirty() == [EVERY_TASK, *ids[:4]]
    assert at.sync()["tasks"] == 5 and at.dirty() == []


def test_a_project_first_heard_of_by_an_event_reads_its_config_itself(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        task_id = at.studio.add_task(at.project_id)
        at.studio.annotate(task_id, 5, "A")
        created = at.studio.projects[at.project_id]["created_at"]
        at.ingest.webhook({
            "action": "TASKS_CREATED", "project": {"id": at.project_id, "created_at": created},
            "tasks": [{"id": task_id}],
        })
        at.sync()
        assert at.labels() == {(task_id, "5"): "A"}


@pytest.mark.parametrize("config", ["", "<View"])
def test_without_a_usable_config_marks_wait_with_a_sentence(tmp_path: Path, config: str) -> None:
    with bench(tmp_path) as at:
        at.studio.projects[at.project_id]["label_config"] = config
        at.store.projects.ensure(at.key)
        at.store.tasks.mark_dirty(at.key, [1])
        with pytest.raises(JobFailed, match="configuration"):
            at.sync()
        assert at.dirty() == [1] and "configuration" in at.store.projects.sync_state(at.key).last_error
