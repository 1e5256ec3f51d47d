"""A problem is what the votes say, whatever order they came in."""

from __future__ import annotations

import numpy as np
import pytest

from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.errors import ModelError, NotEnoughVotes
from model.evaluate.problem import make_problem

SPACE = SingleChoice(("no", "yes"))


def votes(*rows):
    return Votes.from_votes(
        Vote(unit=unit, annotator=who, control="label", value=Value.of_class(label), time=time)
        for unit, who, label, time in rows)


def tokens(units):
    return [np.ones((1, 3), np.float16)] * len(units)


def test_the_latest_vote_of_a_pair_counts_and_strangers_to_the_space_do_not():
    made = make_problem("x", votes(
        ("2", "a", "no", 1.0), ("1", "a", "yes", 5.0), ("1", "a", "no", 9.0), ("1", "b", "yes", 1.0),
        ("3", "c", "maybe", 1.0)), "label", SPACE, tokens)
    assert made.votes.units == ("1", "2") and made.votes.annotators == ("a", "b")
    assert made.y.argmax(1).tolist() == [0, 1, 0]  # (1, a), (1, b), (2, a)


def test_the_order_of_rows_changes_nothing():
    rows = [("1", "a", "yes", 1.0), ("2", "a", "no", 1.0), ("2", "b", "no", 1.0)]
    one = make_problem("x", votes(*rows), "label", SPACE, tokens)
    other = make_problem("x", votes(*rows[::-1]), "label", SPACE, tokens)
    assert one.fingerprint == other.fingerprint
    changed = make_problem("x", votes(*rows[:2], ("2", "b", "yes", 1.0)), "label", SPACE, tokens)
    assert changed.fingerprint != one.fingerprint


def test_regions_of_a_task_share_its_code():
    made = make_problem("x", votes(("1/r1", "a", "yes", 1.0), ("1/r2", "a", "no", 1.0), ("2", "a", "no", 1.0)), "label",
                        SPACE, tokens)
    assert made.task.tolist() == [0, 0, 1]


def test_shuffling_keeps_how_often_each_annotator_gives_each_label(problem):
    mixed = problem.shuffled(1)
    assert not np.array_equal(mixed.y, problem.y)
    for annotator in range(len(problem.votes.annotators)):
        mine = problem.votes.annotator == annotator
        assert np.array_equal(mixed.y[mine].sum(0), problem.y[mine].sum(0))


@pytest.mark.parametrize(("made_of", "space", "gold", "error"), [
    ((("1", "a", "yes", 1.0),), SPACE, {}, NotEnoughVotes),
    ((("1", "a", "yes", 1.0), ("2", "a", "yes", 1.0)), SingleChoice(()), {}, NotEnoughVotes),
    ((("1", "a", "yes", 1.0), ("2", "a", "yes", 1.0)), SPACE, {"1": "maybe"}, ModelError),
])
def test_what_cannot_be_evaluated_is_said(made_of, space, gold, error):
    with pytest.raises(error):
        make_problem("x", votes(*made_of), "label", space, tokens, gold=gold)
