"""Walks and sweeps against a small Label Studio."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backend.errors import JobFailed, LabelStudioError
from backend.records import EVERY_TASK, OwnPrediction
from backend.services.reading import matters
from backend.services.reconcile import OVERLAP, SETTLED
from tests.backend.fakes import CHOICES
from tests.backend.services.reading_bench import Bench, bench


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        made.store.projects.ensure(made.key)
        yield made


def fill(at: Bench, tasks: int) -> list[int]:
    ids = [at.studio.add_task(at.project_id) for _ in range(tasks)]
    for task_id in ids:
        at.studio.annotate(task_id, 5, "A")
    return ids


def test_the_first_run_reads_everything(at: Bench) -> None:
    ids = fill(at, 8)
    at.studio.accounts = {"5": "five@example.com"}
    figures = at.reconcile()
    assert figures == {
        "read": 8, "tasks": 8, "changed_votes": 8, "unreadable": 0, "removed": 0, "missed": 0, "swept": True,
        "reread": False,
    }
    assert at.labels() == {(task_id, "5"): "A" for task_id in ids}
    project = at.store.projects.get(at.key)
    assert project is not None and (project.title, project.label_config) == ("A project", CHOICES)
    assert at.store.votes.activity(at.key)[0].name == "five@example.com"
    state = at.store.projects.sync_state(at.key)
    assert state.last_success == state.last_sweep == at.clock() and state.failures == 0
    assert state.cursor_time is not None and state.cursor_id == ids[-1]


def test_a_second_run_reads_the_overlap_and_changes_nothing(at: Bench) -> None:
    old = fill(at, 5)
    at.studio.now += OVERLAP + timedelta(seconds=1)
    new = fill(at, 2)
    at.reconcile()
    changes = at.store.votes.counts(at.key).changes
    figures = at.reconcile()
    assert (figures["read"], figures["tasks"], figures["changed_votes"], figures["swept"]) == (len(new), 0, 0, False)
    assert at.store.votes.counts(at.key).changes == changes and len(at.labels()) == len(old) + len(new)


def test_a_big_import_is_not_read_again_for_ever(at: Bench) -> None:
    fill(at, 7)
    at.reconcile()
    at.later += SETTLED
    assert at.reconcile()["read"] == 7  # what was under way at the first run would be seen now
    assert at.reconcile()["read"] == 1  # the task at the cursor
    at.later = timedelta(0)
    at.studio.now += SETTLED
    fill(at, 1)
    assert at.reconcile()["read"] == 2


def test_what_no_webhook_told_is_found(at: Bench) -> None:
    ids = fill(at, 4)
    at.reconcile()
    at.studio.now += timedelta(hours=1)
    annotation_id = at.studio.annotate(ids[0], 6, "B")
    at.studio.change(at.studio.tasks[ids[1]]["annotations"][0]["id"], "C")
    at.reconcile()
    assert at.labels()[ids[0], "6"] == "B" and at.labels()[ids[1], "5"] == "C"
    at.studio.now += timedelta(hours=1)
    at.studio.delete_annotation(annotation_id)
    at.reconcile()
    assert (ids[0], "6") not in at.labels()


def test_a_slow_import_that_began_before_the_cursor_is_found(at: Bench) -> None:
    fill(at, 2)
    stamped = at.studio.now.isoformat()
    at.studio.now += timedelta(seconds=60)
    fill(at, 1)
    at.reconcile()
    late = fill(at, 1)[0]
    at.studio.tasks[late]["updated_at"] = stamped  # written early, visible late
    at.reconcile()
    assert (late, "5") in at.labels()


def test_our_own_predictions_cost_a_read_but_no_change(at: Bench) -> None:
    ids = fill(at, 3)
    at.reconcile()
    changes = at.store.votes.counts(at.key).changes
    at.studio.now += timedelta(hours=1)
    for task_id in ids:  # Label Studio bumps tasks when it stores the answers of /predict
        at.studio.tasks[task_id]["updated_at"] = at.studio.now.isoformat()
    figures = at.reconcile()
    assert figures["changed_votes"] == 0 and at.store.votes.counts(at.key).changes == changes


def test_a_walk_that_was_stopped_goes_on_where_it_was(at: Bench) -> None:
    for _ in range(4):
        fill(at, 3)
        at.studio.now += OVERLAP + timedelta(seconds=1)

    class Stopped(Exception):
        pass

    def stop(fraction: float, note: str) -> None:
        if note == "read 6 tasks":
            raise Stopped

    with pytest.raises(Stopped):
        at.reconciler.run(at.key, stop)
    assert len(at.labels()) == 6
    state = at.store.projects.sync_state(at.key)
    assert state.cursor_id == 6 and state.last_success is None
    figures = at.reconcile()
    assert figures["read"] == 3 + 6  # the page at the cursor again, and the rest
    assert len(at.labels()) == 12


def test_memory_is_bounded_by_the_page(at: Bench) -> None:
    fill(at, 10)
    sizes: list[int] = []
    original = at.store.tasks.take_over

    def watched(project: str, snapshots: Any) -> int:
        rows = list(snapshots)
        sizes.append(len(rows))
        return original(project, rows)

    at.store.tasks.take_over = watched  # type: ignore[method-assign]
    at.reconcile()
    assert sizes == [3, 3, 3, 1]


def test_deletions_are_seen_by_the_sweep_when_it_is_due(at: Bench) -> None:
    ids = fill(at, 4)
    at.reconcile()
    at.store.deliveries.set_own(
        at.key, [OwnPrediction(task_id=ids[1], annotator="5", version="annotator:5@r1", digest="x")]
    )
    at.studio.delete_task(ids[1])
    assert at.reconcile()["removed"] == 0
    at.later += timedelta(seconds=at.settings.sweep_every_s)
    figures = at.reconcile()
    assert (figures["removed"], figures["swept"]) == (1, True)
    assert at.store.tasks.ids(at.key).tolist() == [ids[0], *ids[2:]] and at.store.deliveries.own(at.key) == {}


def test_the_sweep_marks_what_the_walk_could_not_see(at: Bench) -> None:
    fill(at, 2)
    at.reconcile()
    hidden = fill(at, 1)[0]
    at.studio.tasks[hidden]["updated_at"] = "2020-01-01T00:00:00+00:00"
    at.later += timedelta(seconds=at.settings.sweep_every_s)
    assert at.reconcile()["missed"] == 1
    assert at.dirty() == [hidden]
    at.sync()
    assert (hidden, "5") in at.labels()


def test_an_empty_list_of_ids_is_not_believed(at: Bench) -> None:
    fill(at, 3)
    at.reconcile()
    at.later += timedelta(seconds=at.settings.sweep_every_s)
    at.studio.task_ids = lambda project_id: iter([])  # type: ignore[method-assign]
    with pytest.raises(JobFailed):
        at.reconcile()
    assert at.store.tasks.count(at.key) == 3


def test_the_last_task_may_be_deleted(at: Bench) -> None:
    task_id = fill(at, 1)[0]
    at.reconcile()
    at.studio.delete_task(task_id)
    at.later += timedelta(seconds=at.settings.sweep_every_s)
    assert at.reconcile()["removed"] == 1 and at.store.tasks.count(at.key) == 0


def test_a_page_older_than_the_store_is_read_again_instead_of_taken_over(at: Bench) -> None:
    task_id = fill(at, 1)[0]
    original = at.studio.changed_tasks

    def overtaken(*arguments: Any, **more: Any) -> Iterator[list[dict[str, Any]]]:
        for page in original(*arguments, **more):
            at.studio.annotate(task_id, 6, "B")
            at.store.tasks.mark_dirty(at.key, [task_id])
            at.sync()  # faster than this page
            yield page

    at.reconciler._label_studio.changed_tasks = overtaken  # type: ignore[method-assign]
    figures = at.reconcile()
    assert figures["tasks"] == 0 and at.labels()[task_id, "6"] == "B"
    assert at.dirty() == [task_id]


def test_label_studio_down_is_seen_and_caught_up(at: Bench) -> None:
    fill(at, 2)
    at.studio.fail_with = LabelStudioError("Label Studio cannot be reached.", retry=True)
    with pytest.raises(JobFailed) as caught:
        at.reconcile()
    assert caught.value.retry_in_s == 5.0
    state = at.store.projects.sync_state(at.key)
    assert state.failures == 1 and "reached" in state.last_error and state.last_success is None
    at.studio.fail_with = None
    at.reconcile()
    state = at.store.projects.sync_state(at.key)
    assert (state.failures, state.last_error) == (0, "") and len(at.labels()) == 2


def test_a_reset_label_studio_is_noticed(at: Bench) -> None:
    ids = fill(at, 2)
    at.reconcile()
    at.studio.projects[at.project_id]["created_at"] = "2031-01-01T00:00:00+00:00"
    with pytest.raises(JobFailed, match="set up anew"):
        at.reconcile()
    assert len(at.labels()) == len(ids)


def test_names_that_may_not_be_listed_do_not_stop_the_walk(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(at, 1)

    def forbidden() -> dict[str, str]:
        raise LabelStudioError("Label Studio answered 403.", retry=False, http_status=403)

    monkeypatch.setattr(at.studio, "users", forbidden)
    assert at.reconcile()["tasks"] == 1


def test_a_config_changed_behind_our_back_has_all_tasks_read_again(at: Bench) -> None:
    ids = fill(at, 3)
    at.reconcile()
    at.studio.now += timedelta(hours=1)
    at.studio.projects[at.project_id]["label_config"] = CHOICES.replace('"C"', '"D"')
    at.reconcile()
    assert at.dirty() == [EVERY_TASK]
    assert at.sync()["tasks"] == len(ids)


def test_a_walk_decodes_each_page_by_the_config_of_the_moment(at: Bench) -> None:
    """All was read under the new configuration between two pages, and its marks are gone."""
    ids = fill(at, 5)
    at.store.projects.ensure(at.key, label_config=CHOICES)
    renamed = CHOICES.replace('name="label"', 'name="tone"')
    original = at.studio.changed_tasks

    def renamed_between(*arguments: Any, **more: Any) -> Iterator[list[dict[str, Any]]]:
        for number, page in enumerate(original(*arguments, **more)):
            if number == 1:
                at.studio.projects[at.project_id]["label_config"] = renamed
                at.store.projects.ensure(at.key, label_config=renamed, matters=matters)
                at.store.tasks.mark_dirty(at.key, ids)
                at.sync()
            yield page

    at.reconciler._label_studio.changed_tasks = renamed_between  # type: ignore[method-assign]
    at.reconcile()
    assert at.dirty() == [] and at.labels() == {}  # nobody answered the renamed control


def test_a_config_that_changes_while_a_page_is_decoded_has_the_page_read_again(at: Bench) -> None:
    ids = fill(at, 2)
    renamed = CHOICES.replace('name="label"', 'name="tone"')
    original = at.store.tasks.take_over

    def late(project: str, snapshots: Any) -> int:
        known = at.store.projects.get(at.key)
        if known is not None and known.label_config == CHOICES:
            at.store.projects.ensure(at.key, label_config=renamed, matters=matters)
            at.sync()  # uses up the mark of the new configuration before these tasks are known
        return original(project, snapshots)

    at.store.tasks.take_over = late  # type: ignore[method-assign]
    at.reconcile()
    assert at.dirty() == ids
    at.sync()
    assert at.labels() == {} and at.dirty() == []


def test_overrides_that_make_no_sense_do_not_stop_the_walk(at: Bench) -> None:
    fill(at, 2)
    at.store.projects.update_settings(at.key, {"no_such_setting": 1})
    assert at.reconcile()["changed_votes"] == 2


def test_new_versions_begin_above_those_that_label_studio_keeps_from_an_earlier_life(at: Bench) -> None:
    first, second = fill(at, 2)
    assert at.reconcile() and at.store.versions.next_number(at.key) == 1
    for version in ("consensus@r7", "annotator:5@r12", "consensus@r3", "another model@r99", "consensus@r1x", "r40"):
        at.studio.import_predictions(at.project_id, [{"task": first, "model_version": version, "result": []}])
    at.reconcile()
    assert at.store.versions.next_number(at.key) == 13
    at.studio.import_predictions(at.project_id, [{"task": second, "model_version": "consensus@r4", "result": []}])
    at.studio.delete_version(at.project_id, "annotator:5@r12")
    at.reconcile()
    assert at.store.versions.next_number(at.key) == 13


def test_a_list_that_leaves_many_tasks_out_removes_nothing(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = fill(at, 60)
    at.reconcile()
    at.later += timedelta(days=2)
    monkeypatch.setattr(at.studio, "task_ids", lambda project_id: iter([ids[:30]]))
    with pytest.raises(JobFailed, match="leaves out 30 of 60 known tasks"):
        at.reconcile()
    assert len(at.labels()) == 60


def test_many_tasks_that_are_gone_are_removed_after_a_second_look(at: Bench) -> None:
    ids = fill(at, 60)
    at.reconcile()
    at.later += timedelta(days=2)
    for task_id in ids[5:]:
        at.studio.delete_task(task_id)
    assert at.reconcile()["removed"] == 55
    assert sorted({task for task, _ in at.labels()}) == ids[:5]
