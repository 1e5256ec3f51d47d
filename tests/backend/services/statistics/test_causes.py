"""Causes in the documents: habits by name, slips among the flags, habits not flagged for what the others say."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from backend.services.statistics.documents import Flag, ReasonKind
from backend.services.statistics.flags import _reasons
from model.data.spaces import Value
from model.quality.causes import Cause
from model.quality.slips import Slips
from tests.backend.services.statistics.crowds import CLASSES, KEY, Project, vote

HABIT = "6"  # calls C what the others call B
SLIPS = {(4, "1"), (31, "2"), (52, "3"), (73, "4"), (94, "5")}


def planted(project: Project, tasks: int = 120) -> None:
    """Six who agree, but for one habit and five slips."""
    rng = np.random.default_rng(11)
    truth = rng.integers(3, size=tasks)
    votes = []
    for task in range(tasks):
        for who in ("1", "2", "3", "4", "5", HABIT):
            code = int(truth[task])
            if (task, who) in SLIPS:
                code = (code + 1) % 3
            if who == HABIT and code == 1 and rng.random() < 0.8:
                code = 2
            votes.append(vote(task, who, Value.of_class(CLASSES[code]), len(votes), lead=float(rng.uniform(3, 6))))
    project.give(votes)
    project.run()


def test_habits_and_slips_are_named_and_flags_follow(tmp_path: Path) -> None:
    project = Project(tmp_path)
    planted(project)
    document, flags = project.statistics.tasks(KEY), project.statistics.flags(KEY)
    assert document is not None and flags is not None
    lists = document.controls["label"]
    assert set(lists.causes) <= {"agreed", "habit", "readings", "slip", "cannot-tell"}
    assert lists.split == sum(n for cause, n in lists.causes.items() if cause != "agreed")
    assert set(lists.habits) == {HABIT} and lists.habits[HABIT] == lists.causes["habit"] > 20
    rows = {case.row.task: case.row for case in lists.divided}
    habits = [each for row in rows.values() for each in row.differing if each.cause == "habit"]
    assert all((each.annotator, each.given, each.instead) == (HABIT, "C", "B") for each in habits)
    assert all(0.6 < each.times / each.of < 0.95 for each in habits)
    people = project.statistics.annotators(KEY)
    assert people is not None
    (said,) = next(row for row in people.rows if row.annotator == HABIT).controls["label"].habits
    assert {(each.times, each.of) for each in habits} == {(said.count, said.of)}, "both pages give the same counts"
    slips = {(row.task, each.annotator) for row in rows.values() for each in row.differing if each.cause == "slip"}
    assert len(slips & SLIPS) >= 4
    flagged = {(row.task, row.annotator): row for row in flags.rows}
    assert slips <= set(flagged)
    assert all(flagged[each].cause == "slip" and flagged[each].expected and flagged[each].reasons for each in slips)
    by_habit = [flag for flag in flags.rows if flag.cause == "habit"]
    assert all(ReasonKind.OTHERS not in {reason.kind for reason in flag.reasons} for flag in by_habit)


def test_a_flag_says_no_more_than_its_figures() -> None:
    def said(*, own: float = 0.0, others: float = 0.0, haste: float = 0.0, cause: Cause = Cause.SLIP) -> list[str]:
        judged = Slips(
            score=np.ones(1), expected=np.zeros(1, np.int64), own=np.array([own]), others=np.array([others]),
            contradiction=np.zeros(1), haste=np.array([haste]), duplicate=np.full(1, -1), weights=(1.0, 1.0))
        return [each.sentence for each in _reasons(judged, 0, "B", None, cause)]

    assert said() == [], "not quicker than usual, and nothing else to be expected"
    assert said(haste=-0.3) == []
    # That B is likelier than what was given does not make B what they usually say: a third label may be likelier still.
    likelier = "As the others voted here, B is likelier from this annotator than what they gave."
    assert said(others=0.2) == said(others=2.0) == [likelier]
    assert said(others=2.0, cause=Cause.HABIT) == []


def test_speed_alone_is_no_slip_and_a_newcomer_is_not_flagged(tmp_path: Path) -> None:
    """Somebody who begins, on tasks that nobody else has labelled, and gives three of twelve votes in half a second."""
    project = Project(tmp_path)
    planted(project)
    before = {flag.annotator for flag in _flags(project)}
    project.give([
        vote(1_000 + n, "7", Value.of_class(CLASSES[n % 3]), 9_000 + n, lead=0.3 if n < 3 else 4.0 + 0.01 * n)
        for n in range(12)])  # fmt: skip
    project.give([vote(2_000 + n, HABIT, Value.of_class("A"), 9_100 + n, lead=0.2) for n in range(3)])
    project.run()
    flags = _flags(project)
    assert "7" not in {flag.annotator for flag in flags} and before
    assert not [flag for flag in flags if {each.kind for each in flag.reasons} <= {ReasonKind.SPEED}]


def _flags(project: Project) -> tuple[Flag, ...]:
    found = project.statistics.flags(KEY)
    assert found is not None
    return found.rows


def test_a_single_vote_and_two_votes_say_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.give([vote(1, "1", Value.of_class("A"), 1), vote(2, "1", Value.of_class("A"), 2),
                  vote(2, "2", Value.of_class("B"), 3)])  # fmt: skip
    project.run()
    document = project.statistics.tasks(KEY)
    assert document is not None
    lists = document.controls["label"]
    assert (lists.causes, lists.split, lists.few) == ({"cannot-tell": 2}, 1, 1)
    assert lists.habits == {} and lists.divided == ()


def test_several_choices_have_causes_by_choice(tmp_path: Path) -> None:
    project = Project(tmp_path)
    rng = np.random.default_rng(12)
    votes = []
    for task in range(120):
        there = [name for name in ("x", "y") if rng.random() < 0.5]
        for who in ("1", "2", "3", "4", "5"):
            said = [name for name in there if who != "5" or name != "y" or rng.random() < 0.2]
            votes.append(vote(task, who, Value.of_classes(said), len(votes), control="topics"))
    project.give(votes)
    project.run()
    document = project.statistics.tasks(KEY)
    assert document is not None
    differing = [each for case in document.controls["topics"].divided for each in case.row.differing]
    assert {(each.annotator, each.given, each.instead, each.cause) for each in differing} == {
        ("5", "without y", "with y", "habit")}
