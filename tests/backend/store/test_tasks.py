"""Snapshots become tasks, annotations, current votes and history; marks say what to read again."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event, select

from backend.errors import NotFound
from backend.records import OwnPrediction
from backend.store import SqlStore, open_store
from backend.store.schema import votes
from model.data.spaces import Value
from model.data.votes import Provenance
from tests.backend.store.conftest import FakeClock
from tests.backend.store.samples import KEY, NOON, minutes, snapshot, vote


def labels(store: SqlStore, task_id: int) -> dict[str, str]:
    return {each.annotator: str(each.value.data) for each in store.votes.of_tasks(KEY, [task_id])}


def history(store: SqlStore) -> list[tuple[str, str, bool]]:
    """(annotator, value, is it live) of every revision, oldest first."""
    statement = select(votes.c.annotator, votes.c.value, votes.c.ended_at.is_(None)).order_by(votes.c.id)
    with store.database.read() as connection:
        return [(annotator, value, bool(live)) for annotator, value, live in connection.execute(statement)]


def test_the_newest_mark_rises_with_each_mark(store: SqlStore) -> None:
    assert store.tasks.newest_mark(KEY) == 0
    seen = [0]
    for ids in ([1], [2, 3], [1], [1]):
        store.tasks.mark_dirty(KEY, ids)
        seen.append(store.tasks.newest_mark(KEY))
    assert seen == sorted(set(seen))


def test_a_snapshot_is_taken_over_and_again_changes_nothing(store: SqlStore) -> None:
    first = [snapshot(1, [vote(1, "5", "A"), vote(1, "6", "B")]), snapshot(2)]
    assert store.tasks.take_over(KEY, first) == 2
    assert store.tasks.take_over(KEY, iter(first)) == 0
    assert labels(store, 1) == {"5": "A", "6": "B"}
    assert store.votes.of_tasks(KEY, [1])[0] == vote(1, "5", "A")
    assert store.tasks.ids(KEY).tolist() == [1, 2] and store.tasks.ids(KEY).dtype == np.int64
    assert store.tasks.count(KEY) == 2


def test_a_changed_vote_ends_the_old_revision_and_keeps_it(store: SqlStore, clock: FakeClock) -> None:
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A"), vote(1, "6", "B")])])
    clock.move(60)
    changed = store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "C", updated_at=NOON + minutes(1))])])
    assert changed == 2  # one changed, one gone
    assert labels(store, 1) == {"5": "C"}
    assert history(store) == [("5", '"A"', False), ("6", '"B"', False), ("5", '"C"', True)]
    assert store.votes.counts(KEY).changes == 4
    assert store.votes.counts(KEY).last_change == clock.now


def test_another_time_or_control_arm_corrects_the_row_without_counting(store: SqlStore) -> None:
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")])])
    touched = vote(1, "5", "A", updated_at=NOON + minutes(1), control_arm=True, shown=True)
    assert store.tasks.take_over(KEY, [snapshot(1, [touched], at=NOON + minutes(1))]) == 0
    assert store.votes.of_tasks(KEY, [1]) == [touched]
    assert len(history(store)) == 1


def test_what_was_judged_when_a_vote_was_given_stays_when_its_task_is_read_again(store: SqlStore) -> None:
    given = [vote(1, "5", "A", shown=True), vote(1, "6", "A", control_arm=True), vote(1, "7", "A")]
    store.tasks.take_over(KEY, [snapshot(1, given)])
    other_settings = [
        vote(1, "5", "A", control_arm=True), vote(1, "6", "A", shown=True), vote(1, "7", "A", shown=True),
    ]
    assert store.tasks.take_over(KEY, [snapshot(1, other_settings, at=NOON + minutes(1))]) == 0
    assert store.votes.of_tasks(KEY, [1]) == given
    changed = vote(1, "5", "B", control_arm=True)  # another answer is judged by itself
    store.tasks.take_over(KEY, [snapshot(1, [changed, *other_settings[1:]])])
    assert store.votes.of_tasks(KEY, [1]) == [changed, *given[1:]]


def test_another_provenance_is_a_change(store: SqlStore) -> None:
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")])])
    assert store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A", provenance=Provenance.ACCEPTED)])]) == 1


def test_of_two_annotations_of_one_annotator_the_latest_counts(store: SqlStore) -> None:
    early = vote(1, "5", "A", annotation_id=10, updated_at=NOON)
    late = vote(1, "5", "B", annotation_id=9, updated_at=NOON + minutes(1))
    assert store.tasks.take_over(KEY, [snapshot(1, [late, early])]) == 2
    assert labels(store, 1) == {"5": "B"}
    assert store.votes.counts(KEY).total == 1
    assert store.tasks.take_over(KEY, [snapshot(1, [early])]) == 1  # the later annotation was deleted
    assert labels(store, 1) == {"5": "A"}


def test_a_tie_in_time_goes_to_the_higher_annotation_id(store: SqlStore) -> None:
    same = [vote(1, "5", "A", annotation_id=9), vote(1, "5", "B", annotation_id=10)]
    store.tasks.take_over(KEY, [snapshot(1, same)])
    assert labels(store, 1) == {"5": "B"}


def test_odd_values_survive(store: SqlStore) -> None:
    odd = ["", " spaces ", "😀", "a\x00b", "\ud800", '"quoted"', "&amp;", "x" * 20_000]
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, str(i), label) for i, label in enumerate(odd, 1)])])
    assert labels(store, 1) == {str(i): label for i, label in enumerate(odd, 1)}
    chosen = vote(2, "5", "A", value=Value.of_classes(["b", "a"]))
    store.tasks.take_over(KEY, [snapshot(2, [chosen])])
    assert store.votes.of_tasks(KEY, [2])[0].value == Value.of_classes(["a", "b"])


def test_units_with_text_that_no_database_takes_are_found_again(store: SqlStore) -> None:
    region = [vote(1, "5", "A", unit="1/a\x00\ud800")]
    assert store.tasks.take_over(KEY, [snapshot(1, region)]) == 1
    assert store.tasks.take_over(KEY, [snapshot(1, region)]) == 0


def test_writes_do_not_grow_with_the_number_of_rows(store: SqlStore) -> None:
    statements: list[str] = []
    event.listen(
        store.database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2])
    )
    store.tasks.take_over(KEY, [snapshot(i, [vote(i, "5", "A")]) for i in range(1, 11)])
    few, statements[:] = len(statements), []
    store.tasks.take_over(KEY, [snapshot(i, [vote(i, "5", "B"), vote(i, "6", "B")]) for i in range(1, 191)])
    assert len(statements) <= few + 1  # one more: old revisions end


def test_an_unknown_project_is_an_error_to_write_and_empty_to_read(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        store.tasks.take_over("9.9", [snapshot(1)])
    with pytest.raises(NotFound):
        store.tasks.mark_dirty("9.9", [1])
    assert store.tasks.count("9.9") == store.tasks.dirty_count("9.9") == 0
    assert len(store.tasks.ids("9.9")) == 0


def test_a_failing_take_over_leaves_nothing(store: SqlStore) -> None:
    bad = vote(2, "5", "A", updated_at=NOON.replace(tzinfo=None))
    with pytest.raises(ValueError, match="zone"):
        store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")]), snapshot(2, [bad])])
    assert store.tasks.count(KEY) == 0 and store.votes.counts(KEY).changes == 0


def test_projects_do_not_see_each_other(store: SqlStore) -> None:
    store.projects.ensure("8.1", title="another")
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")])])
    store.tasks.take_over("8.1", [snapshot(1, [vote(1, "5", "B")])])
    store.tasks.remove("8.1", [1])
    assert labels(store, 1) == {"5": "A"} and store.tasks.count("8.1") == 0


def test_tasks_are_read_in_the_order_asked_and_in_batches(store: SqlStore) -> None:
    store.tasks.take_over(KEY, [snapshot(i) for i in range(1, 8)])
    assert [task.id for task in store.tasks.get(KEY, [5, 99, 2])] == [5, 2]
    pages = store.tasks.iterate(KEY, after_id=1, batch=4)
    assert [[task.id for task in page] for page in pages] == [[2, 3, 4, 5], [6, 7]]
    task = store.tasks.get(KEY, [3])[0]
    assert task.data == {"text": "text 3"} and task.updated_at == NOON


def test_removed_tasks_leave_with_their_votes_marks_and_predictions(store: SqlStore) -> None:
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")]), snapshot(2, [vote(2, "5", "B")])])
    store.tasks.mark_dirty(KEY, [1])
    store.deliveries.set_own(KEY, [OwnPrediction(task_id=1, annotator="5", version="annotator:5@r1", digest="x")])
    assert store.tasks.remove(KEY, [1, 77]) == 1
    assert store.tasks.remove(KEY, [1]) == 0
    assert store.tasks.ids(KEY).tolist() == [2] and store.tasks.get(KEY, [1]) == []
    assert store.votes.counts(KEY).total == 1 and store.votes.counts(KEY).changes == 3
    assert store.tasks.dirty_count(KEY) == 0 and store.deliveries.own(KEY) == {}
    assert store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A")])]) == 1  # it came back
    assert store.tasks.count(KEY) == 2


def test_annotations_are_remembered_after_their_deletion(store: SqlStore) -> None:
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A", annotation_id=40)])])
    store.tasks.take_over(KEY, [snapshot(1)])
    assert store.tasks.task_of_annotation(KEY, [40, 41]) == {40: 1}
    assert store.tasks.known_annotator(KEY, [40, 41]) == {40: "5"}


def test_marks_come_oldest_first_and_a_renewed_one_stays(store: SqlStore) -> None:
    store.tasks.mark_dirty(KEY, [3, 1])
    store.tasks.mark_dirty(KEY, [2])
    marks = store.tasks.dirty(KEY, 10)
    assert [task_id for task_id, _ in marks] == [1, 3, 2]
    store.tasks.mark_dirty(KEY, [3])
    store.tasks.clear_dirty(KEY, marks)
    assert [task_id for task_id, _ in store.tasks.dirty(KEY, 10)] == [3]
    assert store.tasks.dirty(KEY, 0) == [] and store.tasks.dirty_count(KEY) == 1
    store.tasks.mark_dirty(KEY, [])


def test_a_mark_set_again_after_clearing_is_another_one(store: SqlStore) -> None:
    store.tasks.mark_dirty(KEY, [1])
    old = store.tasks.dirty(KEY, 10)
    store.tasks.clear_dirty(KEY, old)
    time.sleep(0.001)
    store.tasks.mark_dirty(KEY, [1])
    store.tasks.clear_dirty(KEY, old)  # a slow process that read the first mark
    assert store.tasks.dirty_count(KEY) == 1


def test_raw_annotations_come_back_while_they_are_there_and_not_skipped(store: SqlStore) -> None:
    kept, skipped, gone = (snapshot(task, [vote(task, "5", "A")]) for task in (1, 2, 3))
    skipped = replace(skipped, annotations=[replace(each, was_cancelled=True) for each in skipped.annotations])
    store.tasks.take_over(KEY, [kept, skipped, gone])
    store.tasks.take_over(KEY, [snapshot(3)])
    assert store.tasks.annotations(KEY, [3, 2, 1, 9]) == list(kept.annotations)


def test_writers_take_turns_instead_of_failing(store: SqlStore) -> None:
    """A transaction that reads before it writes fails on SQLite when another one wrote in between, unless it began
    with the write lock."""

    def work(first: int) -> None:
        for task_id in range(first, first + 15):
            store.tasks.mark_dirty(KEY, [task_id])
            store.tasks.take_over(KEY, [snapshot(task_id, [vote(task_id, "5", "A")])])
            store.tasks.clear_dirty(KEY, store.tasks.dirty(KEY, 1))

    with ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(work, 100 * number) for number in range(1, 5)]:
            result.result(timeout=60)
    assert store.tasks.count(KEY) == store.votes.counts(KEY).changes == 60


WRITER = """
import sys
from backend.store import open_store
from tests.backend.store.samples import KEY, snapshot, vote
store = open_store(sys.argv[1])
for round in range(1000):
    label = "AB"[round % 2]
    store.tasks.mark_dirty(KEY, [round + 1])
    print(round + 1, flush=True)  # the event was answered
    store.tasks.take_over(KEY, [snapshot(i, [vote(i, "5", label), vote(i, "6", label)]) for i in range(1, 301)])
"""


def test_kill_9_leaves_a_consistent_state_and_loses_no_mark(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'polyvox.sqlite3'}"
    store = open_store(url)
    store.projects.ensure(KEY)
    for attempt in range(3):
        process = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        answered = [int(process.stdout.readline()) for _ in range(3 + attempt)]
        time.sleep(0.02 * attempt)
        process.send_signal(signal.SIGKILL)
        answered += [int(line) for line in process.stdout.read().split()]
        process.wait(timeout=10)
        marked = {task_id for task_id, _ in store.tasks.dirty(KEY, 10_000)}
        assert set(answered) <= marked
        current = store.votes.current(KEY)
        assert len(current) == 600 and len(current.values) == 1  # a round is there as a whole or not at all
    with store.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    store.close()
