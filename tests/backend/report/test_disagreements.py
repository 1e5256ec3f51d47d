"""Why votes differ, in sentences: true, counted, with the names that are shown."""

from __future__ import annotations

from backend.report import disagreements
from backend.report.names import Names
from backend.services.statistics.documents import DifferingVote, TaskLists, TaskRow

NAMES = Names({"1": "Ada", "2": "Ben", "3": "Cy"}, mask=False)


def lists(causes, *, split, few=0, habits=None):
    return TaskLists(hardest=(), divided=(), causes=causes, split=split, few=few, habits=habits or {})


def differing(who, cause, *, given="Impolite", instead="Neutral", times=31.0, of=40.0):
    return DifferingVote(annotator=who, given=given, instead=instead, cause=cause, times=times, of=of)


def row(cause, *votes):
    return TaskRow(task=1, unit="1", votes=5, label="Neutral", confidence=0.9, entropy=0.5, surprise=1.0, ambiguity=0.1,
                   cause=cause, differing=votes)


def test_a_control_names_how_often_each_cause_is_behind_a_difference():
    found = lists({"agreed": 59, "habit": 12, "readings": 9, "slip": 6, "cannot-tell": 14}, split=41, few=14,
                  habits={"1": 7, "2": 5})
    assert disagreements.causes("tone", found, NAMES) == (
        "Of 100 tasks with votes on tone, 41 got different labels: on 12 the difference is a habit of one person "
        "(Ada 7, Ben 5); 9 can be read in two ways; 6 look like slips; for 14 there are too few votes to tell.")
    masked = Names({"1": "Ada", "2": "Ben"}, mask=True)
    assert "(Annotator 1 7, Annotator 2 5)" in disagreements.causes("tone", found, masked)


def test_what_is_not_there_is_not_said():
    assert disagreements.causes("tone", lists({}, split=0), NAMES) == "No task has votes on tone yet."
    assert "different votes" in disagreements.causes("tone", lists({"agreed": 4, "cannot-tell": 3}, split=0), NAMES)
    one = disagreements.causes("tone", lists({"slip": 1, "agreed": 1}, split=1), NAMES)
    assert one.endswith("1 got different labels: 1 looks like a slip.")
    mixed = disagreements.causes("tone", lists({"cannot-tell": 5}, split=5, few=2), NAMES)
    assert mixed.endswith("for 5 it cannot be told, for 2 of them because there are too few votes.")


def test_a_task_says_whose_habit_and_whose_slip():
    both = row("habit", differing("2", "slip"), differing("1", "habit"), differing("3", "cannot-tell"))
    assert disagreements.cause(both, NAMES) == "habit of Ada; slip of Ben"
    assert disagreements.why(both, NAMES) == (
        "Ben said Impolite, which looks like a slip: most others say Neutral. "
        "Ada usually says Impolite where others say Neutral (31 of 40).")
    assert disagreements.cause(row("agreed"), NAMES) == "agreed" and disagreements.why(row("agreed"), NAMES) == ""
    assert disagreements.cause(row("cannot-tell", differing("3", "cannot-tell")), NAMES) == "cannot tell"


def test_how_often_is_said_as_it_is():
    for times, word in ((31.0, "usually"), (9.0, "often"), (4.0, "sometimes")):
        said = disagreements.why(row("habit", differing("1", "habit", times=times)), NAMES)
        assert said == f"Ada {word} says Impolite where others say Neutral ({times:.0f} of 40)."


def test_two_readings_name_both():
    twofold = row("readings", differing("1", "readings"), differing("2", "readings"))
    assert disagreements.why(twofold, NAMES) == "It can be read as Neutral and as Impolite."
    assert disagreements.cause(twofold, NAMES) == "two readings"


def test_one_choice_of_several_is_called_by_name():
    choice = differing("1", "habit", given="with Rude", instead="without Rude")
    assert disagreements.why(row("habit", choice), NAMES) == "Ada usually chooses Rude where others do not (31 of 40)."
    left_out = differing("1", "habit", given="without Rude", instead="with Rude")
    assert disagreements.why(
        row("habit", left_out), NAMES) == "Ada usually leaves out Rude where others choose it (31 of 40)."
    slip = differing("2", "slip", given="with Rude", instead="without Rude")
    assert disagreements.why(row("slip", slip), NAMES) == (
        "Ben chose Rude, which looks like a slip: most others did not.")
