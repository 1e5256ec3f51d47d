"""One vote that answers several questions."""

from __future__ import annotations

import numpy as np
import pytest

from model.acquisition.base import AcquisitionError
from model.acquisition.registry import POLICIES, make_policy
from model.acquisition.several import choose_several, of_choices
from tests.model.acquisition.situations import made_up


@pytest.fixture
def choices():
    """Three choices on 20 tasks; choice 0 is settled everywhere, choice 1 open on the last five tasks."""
    rng = np.random.default_rng(0)
    consensus = np.tile([0.99, 0.01, 0.02], (20, 1))
    consensus[15:, 1] = 0.5
    has = rng.random((20, 4)) < 0.5
    has[:, 0], has[:, 3] = True, False
    probabilities = np.repeat(consensus[:, None], 4, axis=1)
    chosen = rng.random((20, 4, 3)) < probabilities
    return of_choices(probabilities=probabilities, chosen=chosen, has=has, consensus=consensus)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_questions_of_one_form(name, choices):
    asked = choose_several(make_policy(name), choices, 5)
    assert len(asked) == 5 and all(choices[0].given[ask.unit, ask.annotator] < 0 for ask in asked)
    if name != "random":
        assert {ask.unit for ask in asked} == set(range(15, 20))


@pytest.mark.parametrize("name", ["expected-change", "uncertainty"])
def test_one_question_is_the_policy_itself(name):
    alone = make_policy(name).choose(made_up(), 9, balance=0.5)
    assert choose_several(make_policy(name), [made_up()], 9, balance=0.5) == alone


def test_gains_add_up():
    policy = make_policy("expected-change")
    one = choose_several(policy, [made_up()], 3)
    both = choose_several(policy, [made_up()] * 2, 3)
    assert [ask.gain for ask in both] == pytest.approx([2 * ask.gain for ask in one])


def test_a_gap_of_one_question_only_counts_for_it():
    here, there = np.zeros((30, 6), bool), np.zeros((30, 6), bool)
    here[:10], there[5:12] = True, True
    questions = [made_up(gaps=1.0, may_ask=here), made_up(gaps=1.0, may_ask=there, seed=1)]
    asked = choose_several(make_policy("bald"), questions, 1000, at_most_per_unit=6)
    assert len(asked) == 12 * 6


def test_questions_that_do_not_fit_together():
    with pytest.raises(AcquisitionError, match="same units and annotators"):
        choose_several(make_policy("bald"), [made_up(), made_up(units=3)], 5)
    with pytest.raises(AcquisitionError):
        choose_several(make_policy("bald"), [], 5)
