"""Why votes differ: habits, two readings and slips are told apart where that can be known, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.disagreement_crowds import HABIT, KINDS, NONE, READINGS, SLIP
from benchmarks.disagreement_crowds import crowd as planted
from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import posterior_without
from model.quality.causes import BAR, CAUSES, Cause, causes

CODE = {cause: CAUSES.index(cause) for cause in Cause}


def explain(answers, **more):
    method = DawidSkene()
    return causes(answers, posterior_without(method, answers, method.fit(answers)), **more)


def two_sorts(seed: int, *, careful: int = 8, others: int = 3, tasks: int = 300, ambiguous: int = 60):
    """Careful annotators are right in 96 %, the others in 50 %; the first tasks are read in two ways."""
    rng = np.random.default_rng(seed)
    people = careful + others
    truth = rng.integers(3, size=tasks)
    other = (truth + rng.integers(1, 3, tasks)) % 3
    reads = np.where((np.arange(tasks) < ambiguous)[:, None] & (rng.random((tasks, people)) < 0.5), other[:, None],
                     truth[:, None])
    right = np.where(np.arange(people) < careful, 0.96, 0.5)
    label = np.where(rng.random((tasks, people)) < right, reads, rng.integers(3, size=(tasks, people)))
    unit, annotator = np.nonzero(rng.random((tasks, people)) < 0.7)
    return AnswerMatrix.from_codes(
        units=[str(u) for u in range(tasks)], annotators=[str(a) for a in range(people)], classes=["x", "y", "z"],
        unit=unit, annotator=annotator, label=label[unit, annotator],
    )


def full(label, classes=("x", "y", "z"), **more):
    """Everybody votes on everything: labels (U, A)."""
    unit, annotator = np.nonzero(np.ones(np.shape(label), bool))
    return AnswerMatrix.from_codes(
        units=[str(u) for u in range(len(label))], annotators=[str(a) for a in range(np.shape(label)[1])],
        classes=classes, unit=unit, annotator=annotator, label=np.asarray(label)[unit, annotator], **more,
    )


@pytest.mark.parametrize("votes", [5, 8])
def test_planted_causes_are_named(votes):
    table = np.zeros((4, len(CAUSES)))
    for seed in range(900, 903):
        for kind in KINDS:
            crowd = planted(seed, kind, votes)
            found = explain(crowd.answers)
            true = np.where((crowd.cause == NONE) & crowd.double[crowd.answers.unit] & (found.instead >= 0), READINGS,
                            crowd.cause)
            seen = found.divided[crowd.answers.unit]
            np.add.at(table, (true[seen], found.vote[seen]), 1)
    assert table[HABIT, CODE[Cause.HABIT]] / table[HABIT].sum() >= 0.85
    assert table[SLIP, CODE[Cause.SLIP]] / table[SLIP].sum() >= 0.7
    assert table[SLIP, CODE[Cause.SLIP]] / table[:, CODE[Cause.SLIP]].sum() >= 0.7


@pytest.mark.parametrize("votes", [2, 3])
def test_with_few_votes_it_cannot_be_told(votes):
    told = untold = 0
    for kind in KINDS:
        found = explain(planted(910, kind, votes).answers)
        differ = found.instead >= 0
        untold += int((found.vote[differ] == CODE[Cause.CANNOT_TELL]).sum())
        told += int((found.vote[differ] != CODE[Cause.CANNOT_TELL]).sum())
        assert (found.vote[~differ] == CODE[Cause.AGREED]).all()
    assert untold > 3 * told


def test_two_readings_are_told_from_people_who_err():
    right = wrong = missed = 0
    for seed in range(3):
        p = explain(two_sorts(seed)).readings
        first = np.arange(300) < 60
        right += int((first & (p >= BAR)).sum())
        wrong += int((~first & (p >= BAR)).sum())
        missed += int((first & (p < BAR)).sum())
    assert right / (right + wrong) > 0.85
    assert right / (right + missed) > 0.65  # of seven votes often only one or two are for the second reading


def test_a_habit_names_the_person_and_what_they_say_instead():
    rng = np.random.default_rng(3)
    label = np.repeat(rng.integers(3, size=(120, 1)), 6, axis=1)
    often = (label[:, 0] == 2) & (rng.random(120) < 0.8)
    label[often, 5] = 1  # annotator 5 calls z what the others call y
    found = explain(full(label))
    at = np.flatnonzero(found.instead >= 0)
    assert len(at) == often.sum()
    assert (found.vote[at] == CODE[Cause.HABIT]).all() and (found.instead[at] == 2).all()
    assert found.times[at] == pytest.approx(often.sum() - 1, abs=0.5)  # this vote is not among them
    assert found.of[at] == pytest.approx((label[:, 0] == 2).sum() - 1, abs=0.5)
    assert {found.of_unit(u) for u in np.flatnonzero(often)} == {Cause.HABIT}


def test_the_vote_itself_is_no_evidence_of_a_habit():
    label = np.repeat(np.arange(90)[:, None] % 3, 6, axis=1)
    label[0, 5] = 1
    found = explain(full(label))
    row = 5
    assert found.vote[row] == CODE[Cause.SLIP] and found.times[row] == pytest.approx(0.0, abs=0.05)
    assert found.share[row, 2] > BAR and found.of_unit(0) is Cause.SLIP and found.of_unit(1) is Cause.AGREED


def test_somebody_with_few_common_tasks_has_no_habit_yet():
    label = np.repeat(np.arange(60)[:, None] % 3, 6, axis=1)
    label[:, 5] = np.where(label[:, 5] == 2, 1, label[:, 5])
    unit, annotator = np.nonzero((np.arange(6) < 5)[None, :] | (np.arange(60) < 9)[:, None])
    few = AnswerMatrix.from_codes(
        units=[str(u) for u in range(60)], annotators=list("abcdef"), classes=["x", "y", "z"], unit=unit,
        annotator=annotator, label=label[unit, annotator],
    )
    assert CODE[Cause.HABIT] not in explain(few).vote
    assert CODE[Cause.HABIT] in explain(full(label)).vote


def test_an_own_model_that_expected_the_vote_clears_it():
    label = np.repeat(np.arange(90)[:, None] % 3, 6, axis=1)
    label[0, 5] = 1
    answers = full(label)
    own = np.full((len(answers), 3), 0.02)
    own[np.arange(len(answers)), answers.label] = 0.96
    assert explain(answers).vote[5] == CODE[Cause.SLIP]
    expected = explain(answers, own=own)
    assert expected.vote[5] != CODE[Cause.SLIP]
    own[5] = [0.96, 0.02, 0.02]
    assert explain(answers, own=own).share[5, 2] > explain(answers).share[5, 2]
    unknown = np.full_like(own, np.nan)
    assert explain(answers, own=unknown).share == pytest.approx(explain(answers).share)


def test_what_nearly_everybody_does_is_nobodys_habit():
    rng = np.random.default_rng(5)
    truth = rng.integers(4, size=(400, 1))
    near = np.clip(truth + rng.choice([-1, 1], size=(400, 8)), 0, 3)
    found = explain(full(np.where(rng.random((400, 8)) < 0.2, near, truth), classes=("1", "2", "3", "4")))
    named = found.vote[found.instead >= 0]
    assert (named == CODE[Cause.HABIT]).mean() < 0.15


def test_a_habit_of_one_choice_is_not_one_of_another():
    """Several choices: questions of absent or present, and habits by annotator and choice."""
    rng = np.random.default_rng(6)
    label = np.repeat(rng.integers(2, size=(200, 1)), 6, axis=1)
    label[::2, 5] = 1  # of every first choice, annotator 5 says it is there
    answers = full(label, classes=("absent", "present"))
    who = answers.annotator.astype(np.int64) * 2 + answers.unit % 2
    found = explain(answers, who=who)
    differ = found.instead >= 0
    assert (found.vote[differ] == CODE[Cause.HABIT]).all() and (answers.unit[differ] % 2 == 0).all()
    assert found.of[differ].max() < 101


def test_no_votes_one_vote_and_one_class():
    single = AnswerMatrix.from_columns(["a"], ["p"], ["x"], all_units=["b"], classes=["x", "y"])
    found = explain(single)
    assert [found.of_unit(u) for u in range(2)] == [Cause.CANNOT_TELL] * 2 and np.isnan(found.readings[1])
    pair = explain(AnswerMatrix.from_columns(["a", "a"], ["p", "q"], ["x", "x"], classes=["x", "y"]))
    assert pair.of_unit(0) is Cause.AGREED and pair.readings == pytest.approx([0.0])
    split = explain(AnswerMatrix.from_columns(["a", "a"], ["p", "q"], ["x", "y"]))
    assert split.of_unit(0) is Cause.CANNOT_TELL and split.divided.all()
    one = explain(AnswerMatrix.from_columns(["u", "u"], ["a", "b"], ["x", "x"]))
    assert one.of_unit(0) is Cause.AGREED
    empty = causes(AnswerMatrix.from_columns([], [], [], all_units=["u"], classes=["x", "y"]), np.empty((0, 2)))
    assert len(empty.vote) == 0 and empty.of_unit(0) is Cause.CANNOT_TELL


def test_many_tasks_take_little_time():
    import time

    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=4000)
    unit, annotator = np.nonzero(np.argsort(rng.random((4000, 40)), axis=1) < 5)
    label = np.where(rng.random(len(unit)) < 0.85, truth[unit], rng.integers(3, size=len(unit)))
    answers = AnswerMatrix.from_codes(
        units=[str(u) for u in range(4000)], annotators=[str(a) for a in range(40)], classes=["x", "y", "z"],
        unit=unit, annotator=annotator, label=label,
    )
    belief = np.full((len(answers), 3), 1.0 / 3.0)
    begun = time.process_time()
    causes(answers, belief)
    assert time.process_time() - begun < 2.0


def test_what_two_people_say_alike_is_no_slip_of_theirs():
    label = np.repeat(np.arange(120)[:, None] % 3, 5, axis=1)
    for unit in range(0, 120, 10):  # slips, so that the rate is known
        label[unit, unit // 10 % 5] = (label[unit, unit // 10 % 5] + 1 + unit // 60) % 3
    label[5, 3:] = (label[5, 3:] + 1) % 3
    found = explain(full(label))
    assert (found.vote[[28, 29]] != CODE[Cause.SLIP]).all() and found.vote[0] == CODE[Cause.SLIP]
