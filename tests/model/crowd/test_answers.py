"""AnswerMatrix: sorting, duplicates, missing labels, extraction from Votes."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix, group_order
from model.data.spaces import Value
from model.data.votes import Vote, Votes
from model.errors import ModelError


def test_from_votes_keeps_the_latest_vote_and_the_silent_units():
    votes = Votes.from_votes([
        Vote("t1", "ann", "kind", Value.of_class("cat"), time=5.0),
        Vote("t1", "ann", "kind", Value.of_class("dog"), time=9.0, weight=0.3),
        Vote("t1", "ann", "other", Value.of_class("ignored"), time=9.0),
        Vote("t2", "bob", "other", Value.of_class("ignored"), time=1.0),
        Vote("t3", "bob", "kind", Value.of_number(3.0), time=1.0),
        Vote("t3", "cid", "kind", Value.of_class("cat"), time=1.0),
    ])
    answers = AnswerMatrix.from_votes(votes, "kind")
    assert answers.classes == ("cat", "dog") and answers.units == ("t1", "t2", "t3")
    rows = zip(answers.unit, answers.annotator, answers.label, strict=True)
    named = [(answers.units[u], answers.annotators[a], answers.classes[c]) for u, a, c in rows]
    assert named == [("t1", "ann", "dog"), ("t3", "cid", "cat")]
    assert answers.voted.tolist() == [True, False, True]
    np.testing.assert_allclose(answers.weights, [0.3, 1.0], atol=1e-6)
    assert answers.dropped == 1
    fixed = AnswerMatrix.from_votes(votes, "kind", classes=["dog", "bird"])
    assert fixed.classes == ("dog", "bird") and len(fixed) == 1 and fixed.dropped == 3
    assert len(AnswerMatrix.from_votes(votes, "nobody's")) == 0


def test_row_order_does_not_matter_even_for_repeats_at_one_time():
    rng = np.random.default_rng(0)
    unit, annotator = rng.integers(20, size=500), rng.integers(6, size=500)
    label, time = rng.integers(3, size=500), rng.integers(4, size=500)
    tables = {"units": [str(i) for i in range(20)], "annotators": list("abcdef"), "classes": list("xyz")}
    weight = np.round(rng.random(500), 3) + 0.1
    one = AnswerMatrix.from_codes(**tables, unit=unit, annotator=annotator, label=label, time=time)
    order = rng.permutation(500)
    two = AnswerMatrix.from_codes(
        **tables, unit=unit[order], annotator=annotator[order], label=label[order], time=time[order]
    )
    for name in ("unit", "annotator", "label", "indptr"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    pairs = set(zip(one.unit.tolist(), one.annotator.tolist(), strict=True))
    assert len(pairs) == len(one) == len(set(zip(unit.tolist(), annotator.tolist(), strict=True)))
    for u, a, c in zip(one.unit, one.annotator, one.label, strict=True):
        mine = (unit == u) & (annotator == a)
        assert c == max(label[mine & (time == time[mine].max())])
    heavy = AnswerMatrix.from_codes(**tables, unit=unit, annotator=annotator, label=label, weight=weight, time=time)
    np.testing.assert_array_equal(heavy.label, one.label)
    assert heavy.weight is not None and set(heavy.weight) <= set(weight)


def test_group_order_is_a_stable_sort():
    codes = np.array([3, 1, 3, 0, 1, 1], dtype=np.int32)
    order, indptr = group_order(codes, 5)
    assert order.tolist() == np.argsort(codes, kind="stable").tolist()
    assert indptr.tolist() == [0, 1, 4, 4, 6, 6]


def test_select_and_shape():
    answers = AnswerMatrix.from_columns(["t1", "t1", "t2"], ["a", "b", "a"], ["x", "y", "x"], weights=[1, 2, 3])
    part = answers.select(np.array([False, True, True]))
    assert part.shape == answers.shape == (2, 2, 2)
    assert part.indptr.tolist() == [0, 1, 2] and part.weights.tolist() == [2, 3]


def test_take_units_keeps_their_votes_and_the_other_tables():
    answers = AnswerMatrix.from_columns(
        ["t1", "t1", "t2", "t4"], ["a", "b", "a", "c"], ["x", "y", "x", "y"], weights=[1, 2, 3, 4], all_units=["t3"]
    )
    part = answers.take_units(np.array([True, False, True, True]))
    assert part.units == ("t1", "t3", "t4") and part.annotators == answers.annotators
    assert part.unit.tolist() == [0, 0, 2] and part.indptr.tolist() == [0, 2, 2, 3]
    assert part.weights.tolist() == [1, 2, 4] and part.voted.tolist() == [True, False, True]
    assert len(answers.take_units(np.zeros(4, dtype=np.bool_))) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": [0, 2]}, "unit column points outside"),
        ({"label": [0, -2]}, "label column points outside"),
        ({"annotator": [0]}, "differ in length"),
        ({"annotator": [0.5, 1.0]}, "integer codes"),
        ({"weight": [1.0, -1.0]}, "weights must be finite"),
        ({"weight": [1.0, np.nan]}, "weights must be finite"),
        ({"weight": [1.0]}, "weights must be finite"),
    ],
)
def test_malformed_columns_are_refused(change, words):
    good = {"unit": [0, 1], "annotator": [0, 0], "label": [0, -1]}
    with pytest.raises(ModelError, match=words):
        AnswerMatrix.from_codes(units=["a", "b"], annotators=["p"], classes=["x"], **{**good, **change})
