"""Ambiguous tasks are told from careless annotators; camps are weighed by what votes are worth."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.quality.ambiguity import Cause, ambiguity, causes, division, worth
from model.quality.judged import judge


def crowd(seed: int, *, careful: int = 8, careless: int = 3, tasks: int = 300, ambiguous: int = 60):
    """Careful annotators are right in 96 %, careless ones in 50 %; the first tasks are read in two ways."""
    rng = np.random.default_rng(seed)
    people = careful + careless
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


def test_ambiguous_tasks_are_told_from_careless_annotators():
    right = wrong = missed = 0
    for seed in range(3):
        answers = crowd(seed)
        method = DawidSkene()
        p = ambiguity(answers, method, method.fit(answers))
        planted = np.arange(300) < 60
        right += int((planted & (p >= 0.5)).sum())
        wrong += int((~planted & (p >= 0.5)).sum())
        missed += int((planted & (p < 0.5)).sum())
    assert right / (right + wrong) > 0.95
    assert right / (right + missed) > 0.45  # of seven votes often only one or two are for the second reading


def test_causes_are_said_only_where_they_can_be_known():
    answers = crowd(5)
    method = DawidSkene()
    why = causes(answers, ambiguity(answers, method, method.fit(answers)))
    count = {cause: why[60:].count(cause) for cause in Cause}
    assert count[Cause.CARELESS] > count[Cause.UNCLEAR] > 0 and count[Cause.AMBIGUOUS] < 5
    single = AnswerMatrix.from_columns(["a"], ["p"], ["x"], all_units=["b"])
    p = ambiguity(single, method, method.fit(single))
    assert np.isnan(p[1]) and causes(single, p) == [Cause.UNCLEAR, Cause.UNCLEAR]
    pair = AnswerMatrix.from_columns(["a", "a"], ["p", "q"], ["x", "x"], classes=["x", "y"])
    assert causes(pair, ambiguity(pair, method, method.fit(pair))) == [Cause.AGREED]


def test_two_votes_that_differ_prove_nothing():
    answers = crowd(6)
    rows = np.isin(answers.annotator, [0, 1])  # of the careful ones
    p = ambiguity(answers.select(rows), DawidSkene(), DawidSkene().fit(answers.select(rows)))
    assert np.nanmax(p) < 0.9


def test_camps_weigh_what_their_votes_are_worth():
    answers = crowd(7)
    value = worth(judge(answers, DawidSkene()).against)
    assert value[:8].min() > value[8:].max() >= 0.0
    heavy = division(answers, value)
    assert heavy[:60].mean() > 3.0 * heavy[60:].mean()
    two = AnswerMatrix.from_columns(["u"] * 4, list("abcd"), ["x", "x", "y", "z"])
    assert division(two, np.array([1.0, 0.5, 0.9, 0.3])) == pytest.approx([0.9])


def test_one_class_divides_nobody():
    one = AnswerMatrix.from_columns(["u", "u"], ["a", "b"], ["x", "x"])
    assert division(one, np.ones(2)) == pytest.approx([0.0])
    assert ambiguity(one, DawidSkene(), DawidSkene().fit(one)) == pytest.approx([0.0])
