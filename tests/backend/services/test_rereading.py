"""What Label Studio stored and never told is found, whatever was interrupted, and nobody waits for it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backend.errors import JobFailed, LabelStudioError
from backend.records import JobKind
from backend.services import rereading
from backend.services.reconcile import OVERLAP
from backend.services.rereading import REREAD_EVERY, REREAD_RATE
from tests.backend.services.reading_bench import Bench, bench

DOWN = LabelStudioError("Label Studio cannot be reached.", retry=True)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        made.store.projects.ensure(made.key)
        yield made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece is a batch, and that is two tasks."""
    monkeypatch.setattr(rereading, "PIECE_S", -1.0)
    monkeypatch.setattr(rereading, "BATCH", 2)


def fill(at: Bench, tasks: int) -> list[int]:
    ids = [at.studio.add_task(at.project_id) for _ in range(tasks)]
    for task_id in ids:
        at.studio.annotate(task_id, 5, "A")
    return ids


def change_unstamped(at: Bench, ids: list[int]) -> None:
    """Label Studio stores an annotation, deletes one and changes one, and is killed each time before it stamps."""
    stamps = {task_id: at.studio.tasks[task_id]["updated_at"] for task_id in ids}
    at.studio.now += timedelta(hours=1)
    at.studio.annotate(ids[0], 6, "B")
    at.studio.delete_annotation(at.studio.tasks[ids[1]]["annotations"][0]["id"])
    at.studio.change(at.studio.tasks[ids[2]]["annotations"][0]["id"], "C")
    for task_id, stamp in stamps.items():
        at.studio.tasks[task_id]["updated_at"] = stamp


def unstamped(at: Bench) -> list[int]:
    ids = fill(at, 3)
    at.studio.now += OVERLAP + timedelta(seconds=1)
    fill(at, 1)
    at.reconcile()
    change_unstamped(at, ids)
    return ids


def caught_up(at: Bench, ids: list[int]) -> bool:
    labels = at.labels()
    return (ids[0], "6") in labels and (ids[1], "5") not in labels and labels[ids[2], "5"] == "C"


def outage(at: Bench) -> None:
    at.store.projects.want_reread()
    at.studio.now += timedelta(seconds=1)


def job(at: Bench) -> dict[str, Any]:
    """Do the job that waits, as a job process does."""
    claimed = at.store.jobs.claim("me", lease_s=60, kinds=[JobKind.REREAD])
    assert claimed is not None
    figures = at.reread()
    at.store.jobs.finish(claimed.id, "me", figures=figures)
    return figures


def test_after_an_outage_changes_that_were_not_stamped_are_found(at: Bench) -> None:
    ids = unstamped(at)
    assert at.reconcile()["reread"] is False and not at.waiting(JobKind.REREAD)
    assert not caught_up(at, ids)  # as no walk can see them
    outage(at)
    assert at.reconcile()["reread"] is True
    assert not at.dirty()  # nothing stands before an annotator's new votes
    assert job(at)["read"] == 4 and caught_up(at, ids)
    at.studio.now += timedelta(hours=1)
    assert at.reconcile()["reread"] is False


def test_once_a_day_every_task_is_read_again(at: Bench) -> None:
    ids = unstamped(at)
    at.later = REREAD_EVERY
    assert at.reconcile()["reread"] is True
    job(at)
    assert caught_up(at, ids)
    assert at.reconcile()["reread"] is False


def test_an_outage_in_the_first_walk_is_not_forgotten(at: Bench) -> None:
    ids = fill(at, 3)
    at.studio.now += OVERLAP + timedelta(seconds=1)
    fill(at, 4)
    original = at.studio.changed_tasks

    def killed(*arguments: Any, **more: Any) -> Iterator[list[dict[str, Any]]]:
        for number, page in enumerate(original(*arguments, **more)):
            if number == 2:
                raise DOWN
            yield page

    at.reconciler._label_studio.changed_tasks = killed  # type: ignore[method-assign]
    with pytest.raises(JobFailed):
        at.reconcile()
    change_unstamped(at, ids)
    at.reconciler._label_studio.changed_tasks = original  # type: ignore[method-assign]
    outage(at)
    assert at.reconcile()["reread"] is True  # it went on in the middle
    job(at)
    assert caught_up(at, ids)
    assert at.reconcile()["reread"] is False


def test_a_project_that_was_read_before_rereads_were_kept_is_read_whole(at: Bench) -> None:
    ids = unstamped(at)
    at.store.projects.set_reread(at.key, last=None)  # as the migration leaves it
    assert at.reconcile()["reread"] is True
    job(at)
    assert caught_up(at, ids)


def test_an_outage_that_another_job_noticed_during_the_first_walk_has_all_read_again(at: Bench) -> None:
    fill(at, 2)
    at.store.projects.want_reread()  # another project's job failed meanwhile
    at.reconcile()
    at.studio.now += timedelta(hours=1)
    assert at.reconcile()["reread"] is True


@pytest.mark.usefixtures("small")
def test_it_goes_in_pieces_and_none_begins_while_one_is_unfinished(at: Bench) -> None:
    ids = fill(at, 5)
    at.reconcile()
    outage(at)
    began = at.clock()
    assert at.reconcile()["reread"] is True
    first = job(at)
    assert (first["read"], first["left"]) == (2, 3)
    outage(at)  # Label Studio goes on failing
    state = at.store.projects.sync_state(at.key)
    assert (state.reread_begun, state.reread_after) == (began, ids[2] - 1)
    assert at.reconcile()["reread"] is True  # a job got lost: the next one goes on
    assert at.reconcile()["reread"] is False  # one waits
    assert [job(at)["left"], at.reread()["left"]] == [1, 0]
    state = at.store.projects.sync_state(at.key)
    assert (state.last_reread, state.reread_begun, state.reread_after) == (began, None, 0)
    at.studio.now += timedelta(hours=1)
    assert at.reconcile()["reread"] is True  # for what failed meanwhile
    assert at.reread()["left"] == 3


@pytest.mark.usefixtures("small")
def test_a_piece_that_failed_goes_on_where_it_was(at: Bench) -> None:
    ids = fill(at, 5)
    at.reconcile()
    at.reread()
    at.studio.fail_with = DOWN
    with pytest.raises(JobFailed) as caught:
        at.reread()
    assert caught.value.retry_in_s == 5.0 and at.store.projects.sync_state(at.key).reread_after == ids[2] - 1
    at.studio.fail_with = None
    assert at.reread()["left"] == 1 and at.store.projects.sync_state(at.key).last_error == ""


def test_outages_one_after_the_other_do_not_keep_label_studio_busy(at: Bench) -> None:
    fill(at, 40)
    at.reconcile()
    at.studio.now += timedelta(seconds=40 / REREAD_RATE - 0.5)
    at.store.projects.want_reread()
    assert at.reconcile()["reread"] is False
    at.studio.now += timedelta(seconds=0.5)
    assert at.reconcile()["reread"] is True  # it was not forgotten


def test_newer_votes_are_not_undone_and_tasks_that_are_gone_are_left_to_the_sweep(at: Bench) -> None:
    ids = fill(at, 3)
    at.reconcile()
    original = at.studio.tasks_by_id

    def overtaken(*arguments: Any) -> dict[int, dict[str, Any]]:
        found = original(*arguments)
        at.studio.tasks_by_id = original  # type: ignore[method-assign]
        at.studio.now += timedelta(seconds=1)
        at.studio.annotate(ids[0], 6, "B")
        at.store.tasks.mark_dirty(at.key, [ids[0]])
        at.sync()  # faster than this batch
        return found

    at.studio.tasks_by_id = overtaken  # type: ignore[method-assign]
    at.studio.delete_task(ids[2])
    assert at.reread()["read"] == 3
    assert at.labels()[ids[0], "6"] == "B" and at.dirty() == [ids[0]]
    assert at.store.tasks.count(at.key) == 3


def test_a_label_studio_that_was_set_up_anew_is_not_read_as_the_old_one(at: Bench) -> None:
    fill(at, 2)
    at.reconcile()
    at.studio.projects[at.project_id]["created_at"] = "2031-01-01T00:00:00+00:00"
    with pytest.raises(JobFailed, match="set up anew"):
        at.reread()


def test_a_task_at_which_label_studio_fails_keeps_no_other_from_being_read(at: Bench) -> None:
    ids = unstamped(at)
    original, asked = at.studio.tasks_by_id, []

    def fails(project_id: int, task_ids: Any) -> dict[int, dict[str, Any]]:
        asked.append(list(task_ids))
        if ids[1] in task_ids:
            raise LabelStudioError("Label Studio answered 500.", retry=True)
        return original(project_id, task_ids)

    at.studio.tasks_by_id = fails  # type: ignore[method-assign]
    outage(at)
    assert at.reconcile()["reread"] is True
    assert job(at) | {"pause_s": 0.0} == {"read": 3, "changed_votes": 2, "unreadable": 1, "left": 0, "pause_s": 0.0}
    assert (ids[0], "6") in at.labels() and at.labels()[ids[2], "5"] == "C"
    assert len(asked) <= 7
    at.studio.now += timedelta(hours=1)
    assert at.reconcile()["reread"] is False


def test_while_label_studio_is_away_nothing_is_left_out(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = unstamped(at)
    outage(at)
    assert at.reconcile()["reread"] is True

    def away(*arguments: Any) -> Any:
        raise DOWN

    with monkeypatch.context() as patch:
        patch.setattr(at.studio, "tasks_by_id", away)
        patch.setattr(at.studio, "project", away)
        with pytest.raises(JobFailed):
            at.reread()
    job(at)
    assert caught_up(at, ids)


def test_a_piece_ends_where_label_studio_fails_at_every_task(
    at: Bench, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(at, 8)
    at.reconcile()
    outage(at)
    at.reconcile()

    def fails(project: int, ids: list[int]) -> list[dict[str, Any]]:
        raise LabelStudioError("Label Studio answered 500.", retry=True)

    monkeypatch.setattr(at.studio, "tasks_by_id", fails)
    figures = job(at)
    assert (figures["read"], figures["unreadable"], figures["left"]) == (0, 2, 6)
