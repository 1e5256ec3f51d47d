import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event, func, select

from backend.errors import NotFound
from backend.records import VoteCounts
from backend.store import SqlStore, open_store
from backend.store.schema import arm_log
from model.data.spaces import Value, ValueKind
from model.data.votes import Provenance, Vote, Votes
from tests.backend.store.plans import watched_plans
from tests.backend.store.samples import KEY, NOON, minutes, snapshot, vote


def test_current_equals_the_votes_built_one_by_one(store: SqlStore) -> None:
    given = [
        vote(2, "6", "B", shown=True, provenance=Provenance.CHANGED),
        vote(2, "5", "A", shown=True, control_arm=True),
        vote(1, "5", "C", control="other", value=Value.of_classes(["x", "y"]), updated_at=NOON + minutes(1.5)),
        vote(1, "5", "A", unit="1/region", annotation_id=77),
    ]
    store.tasks.take_over(KEY, [snapshot(i, [each for each in given if each.task_id == i]) for i in (1, 2)])
    expected = Votes.from_votes(
        Vote(
            each.unit, each.annotator, each.control, each.value, time=each.updated_at.timestamp(),
            provenance=each.provenance, scored=each.control_arm or not each.shown,
        )
        for each in sorted(given, key=lambda each: (each.task_id, each.unit, each.control, each.annotator))
    )
    current = store.votes.current(KEY)
    for name in ("units", "annotators", "controls", "values"):
        assert getattr(current, name) == getattr(expected, name)

    def rows(votes: Votes) -> set[tuple[object, ...]]:
        columns = (votes.unit, votes.annotator, votes.control, votes.value, votes.time, votes.weight, votes.provenance,
                   votes.scored)
        return set(zip(*(column.tolist() for column in columns), strict=True))

    assert rows(current) == rows(expected)
    assert current.unit.dtype == np.int32 and current.scored.dtype == np.bool_ and current.provenance.dtype == np.int8


def test_no_votes_are_an_empty_table(store: SqlStore) -> None:
    assert len(store.votes.current(KEY)) == len(store.votes.current("9.9")) == 0
    assert store.votes.counts("9.9") == store.votes.counts(KEY) == VoteCounts(
        total=0, tasks_with_votes=0, annotators=0, classes=0, last_change=None, changes=0
    )


def test_nothing_is_remembered_of_projects_without_votes(store: SqlStore) -> None:
    """Anybody may invent some."""
    for number in range(100):
        store.projects.ensure(f"{number}.1764288000")
        assert store.votes.counts(f"{number}.1764288000").total == 0
        assert store.votes.voters(f"{number}.1764288000") == ()
    assert not store.votes._counted and not store.votes._voters


def test_counts_are_counted_anew_only_after_changes(store: SqlStore) -> None:
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A"), vote(1, "6", "B")]), snapshot(2, [vote(2, "5", "A")])])
    counts = store.votes.counts(KEY)
    assert (counts.total, counts.tasks_with_votes, counts.annotators, counts.classes, counts.changes) == (3, 2, 2, 2, 3)
    statements: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    assert store.votes.counts(KEY) == counts
    assert not any("votes" in statement for statement in statements)
    store.tasks.take_over(KEY, [snapshot(2, [vote(2, "5", "C")])])
    assert store.votes.counts(KEY).classes == 3


def test_classes_are_those_of_the_control_with_most_and_free_texts_are_none(store: SqlStore) -> None:
    """Two controls with one answer each are not two classes: nothing could be learned of either."""
    one, other = (replace(vote(1, "5", "A"), control=control) for control in ("first", "second"))
    texts = [replace(vote(1, who, "A"), control="why", value=Value(ValueKind.TEXT, f"Because {who}.")) for who in "567"]
    store.tasks.take_over(KEY, [snapshot(1, [*texts])])
    assert store.votes.counts(KEY).classes == 0 and store.votes.counts(KEY).total == 3
    store.tasks.take_over(KEY, [snapshot(1, [one, other, *texts])])
    assert store.votes.counts(KEY).classes == 1
    store.tasks.take_over(KEY, [snapshot(1, [one, other, replace(vote(1, "6", "B"), control="second"), *texts])])
    assert store.votes.counts(KEY).classes == 2


def test_rankings_count_as_classes_where_there_is_nothing_else(store: SqlStore) -> None:
    ranked = [replace(vote(1, who, "A"), control="order", value=Value.from_json("ranking", '[["a"], ["b"]]'))
              for who in "567"]
    store.tasks.take_over(KEY, [snapshot(1, ranked)])
    assert store.votes.counts(KEY).classes == 2
    other = replace(ranked[0], value=Value.from_json("ranking", '[["b"], ["a"]]'))
    store.tasks.take_over(KEY, [snapshot(1, [other, *ranked[1:], vote(1, "5", "A")])])
    assert store.votes.counts(KEY).classes == 1


def test_activity_is_by_votes_with_names_where_known(store: SqlStore) -> None:
    late = NOON + minutes(5)
    store.tasks.take_over(KEY, [snapshot(1, [vote(1, "5", "A"), vote(1, "6", "B")])])
    store.tasks.take_over(KEY, [snapshot(2, [vote(2, "6", "A", updated_at=late)])])
    store.votes.set_names(KEY, {"6": "six@example.com", "9": "nobody@example.com"})
    store.votes.set_names(KEY, {"6": "Six"})
    shown = [(each.annotator, each.name, each.votes, each.last_vote) for each in store.votes.activity(KEY)]
    assert shown == [("6", "Six", 2, late), ("5", "5", 1, NOON)]


def test_the_control_arm_is_logged_once(store: SqlStore) -> None:
    store.votes.log_arm(KEY, [(1, "5"), (2, "5")], version="r1")
    store.votes.log_arm(KEY, [(1, "5")], version="r2")
    with store.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(arm_log)).scalar() == 2
        assert connection.execute(select(arm_log.c.version).distinct()).scalars().all() == ["r1"]


def test_logging_the_control_arm_again_waits_for_no_write_lock(store: SqlStore) -> None:
    pairs = [(1, "5"), (2, ""), (2, "6")]
    store.votes.log_arm(KEY, pairs, version="r1")
    statements: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    store.votes.log_arm(KEY, pairs, version="r2")
    store.votes.log_arm(KEY, [], version="r2")
    assert not any("INSERT" in statement or "IMMEDIATE" in statement for statement in statements)
    store.votes.log_arm(KEY, [*pairs, (3, "5")], version="r2")
    with pytest.raises(NotFound):
        store.votes.log_arm("9.9", pairs, version="r2")
    with store.database.read() as connection:
        rows = connection.execute(select(arm_log.c.task_id, arm_log.c.annotator, arm_log.c.version)).all()
    assert sorted(map(tuple, rows)) == [(1, "5", "r1"), (2, "", "r1"), (2, "6", "r1"), (3, "5", "r2")]


def test_neither_history_nor_other_projects_are_read_through(store: SqlStore) -> None:
    if store.database.engine.dialect.name != "sqlite":
        return  # PostgreSQL's choice depends on the sizes of tables
    plans = watched_plans(store, "votes")
    store.votes.current(KEY)
    store.votes.of_tasks(KEY, [1])
    store.votes.counts(KEY)
    store.votes.activity(KEY)
    # Both hold current votes only, by project; which one is taken where no task is named makes no difference.
    ours = ("USING INDEX ix_votes_live (project_id=?", "USING INDEX ix_votes_annotator (project_id=?")
    assert len(plans) == 5 and all(any(each in plan for each in ours) for plan in plans), plans


def test_fifty_thousand_votes_are_read_in_well_under_a_second(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'polyvox.sqlite3'}")
    store.projects.ensure(KEY)
    for start in range(0, 10_000, 1000):
        batch = [
            snapshot(i, [vote(i, str(a), "ABC"[(i + a) % 3]) for a in range(5)]) for i in range(start + 1, start + 1001)
        ]
        store.tasks.take_over(KEY, batch)
    began = time.process_time()  # what other programs do on the machine is not measured
    current = store.votes.current(KEY)
    seconds = time.process_time() - began
    print(f"{len(current)} votes in {seconds:.2f} s")
    assert len(current) == 50_000 and len(current.units) == 10_000 and len(current.values) == 3
    assert seconds < 2.0  # measured 0.2 s; the bound is for a busy machine
    store.close()


def test_units_that_two_annotators_answered_differently(store: SqlStore) -> None:
    given = [
        vote(1, "5", "A"), vote(1, "6", "B"), vote(2, "5", "A"), vote(2, "6", "A"), vote(3, "5", "B"),
        vote(4, "5", "A"), vote(4, "6", "C"), vote(4, "6", "D", control="other"), vote(5, "7", "A"), vote(5, "6", "B"),
    ]
    store.tasks.take_over(KEY, [snapshot(i, [each for each in given if each.task_id == i]) for i in range(1, 6)])
    control = given[0].control
    total, rows = store.votes.differing(KEY, control, ("5", "6"), offset=0, limit=9)
    assert total == 2
    assert [(each.task, each.unit, each.first.data, each.second.data) for each in rows] == [
        (1, "1", "A", "B"), (4, "4", "A", "C")]
    assert store.votes.differing(KEY, control, ("6", "5"), offset=1, limit=1)[1][0].first.data == "C"
    assert store.votes.differing("9.9", control, ("5", "6"), offset=0, limit=9) == (0, [])
