"""Camps are weighed by what votes are worth."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.quality.camps import division, worth
from model.quality.judged import judge
from tests.model.quality.test_causes import two_sorts


def test_camps_weigh_what_their_votes_are_worth():
    answers = two_sorts(7)
    value = worth(judge(answers, DawidSkene()).against)
    assert value[:8].min() > value[8:].max() >= 0.0
    heavy = division(answers, value)
    assert heavy[:60].mean() > 3.0 * heavy[60:].mean()
    two = AnswerMatrix.from_columns(["u"] * 4, list("abcd"), ["x", "x", "y", "z"])
    assert division(two, np.array([1.0, 0.5, 0.9, 0.3])) == pytest.approx([0.9])


def test_one_class_divides_nobody():
    one = AnswerMatrix.from_columns(["u", "u"], ["a", "b"], ["x", "x"])
    assert division(one, np.ones(2)) == pytest.approx([0.0])
