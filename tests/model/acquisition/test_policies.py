"""That policies find what there is to find: open questions, and people who can answer them."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest

from model.acquisition.base import Situation
from model.acquisition.beliefs import fit_beliefs
from model.acquisition.joint import joint
from model.acquisition.lookahead import expected_rise
from model.acquisition.registry import make_policy
from model.acquisition.simulate import situation
from tests.model.acquisition.situations import made_up

GOOD, BAD, EASY = 4, 3, 60


@pytest.fixture(scope="module")
def crowd() -> Situation:
    """60 easy tasks on which everybody good agrees, 20 open ones with one vote for either answer; 3 people guess."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, EASY + 20)
    given = np.full((len(truth), GOOD + BAD), -1)
    given[:EASY, : GOOD - 1] = truth[:EASY, None]
    given[:EASY, GOOD:] = rng.integers(0, 2, (EASY, BAD))
    given[: EASY // 2, GOOD - 1] = truth[: EASY // 2]
    given[EASY:, 0], given[EASY:, 1] = 0, 1
    return situation(fit_beliefs(given, 2), given, np.ones(given.shape, bool))


@pytest.mark.parametrize("name", ["expected-change", "bald", "diverse-batch"])
def test_asks_good_annotators_about_open_questions(crowd, name):
    asked = make_policy(name).choose(crowd, 20)
    assert np.mean([ask.unit >= EASY for ask in asked]) >= 0.9
    assert np.mean([ask.annotator < GOOD for ask in asked]) >= 0.9


@pytest.mark.parametrize("name", ["uncertainty", "disagreement"])
def test_task_policies_find_open_questions_and_take_turns(crowd, name):
    asked = make_policy(name).choose(crowd, 20)
    assert np.mean([ask.unit >= EASY for ask in asked]) >= 0.9
    assert all(ask.annotator == GOOD - 1 for ask in asked)  # who has given fewest votes by far


def test_a_cheaper_vote_is_worth_more_for_its_price(crowd):
    dear = np.ones(GOOD + BAD)
    first = make_policy("expected-change").choose(crowd, 1)[0]
    dear[first.annotator] = 3.0
    assert make_policy("expected-change").choose(crowd, 3, costs=dear)[0].annotator != first.annotator


def test_ambiguity_lowers_what_a_vote_says():
    clear, murky = made_up(ambiguity=np.zeros(30)), made_up(ambiguity=np.full(30, 0.9))
    for name in ("expected-change", "bald"):
        where = clear.open
        assert np.mean(make_policy(name).scores(murky)[where] < make_policy(name).scores(clear)[where]) > 0.9


def test_gain_of_a_known_joint():
    """One perfect annotator on an even question: all of the consensus' uncertainty goes."""
    even = Situation(probabilities=np.full((1, 1, 2), 0.5), given=np.array([[-1]]), consensus=np.full((1, 2), 0.5),
                     confusion=np.eye(2)[None])
    assert make_policy("expected-change").scores(even)[0, 0] == pytest.approx(0.5, abs=1e-3)
    assert make_policy("bald").scores(even)[0, 0] == pytest.approx(np.log(2), abs=1e-4)
    assert make_policy("uncertainty").scores(even)[0, 0] == pytest.approx(np.log(2))
    assert make_policy("disagreement").scores(even)[0, 0] == pytest.approx(0.5)


def test_looking_ahead_sees_what_one_vote_cannot_overturn():
    """Consensus 0.8 and an annotator who is right in 0.75: one vote leaves the label as it is, three may not."""
    right = np.array([[0.75, 0.25], [0.25, 0.75]])
    q = np.array([0.8, 0.2])
    table = (q[:, None] * right)[None]
    assert expected_rise(table, (1,))[0] < 1e-4
    outcomes = [q * np.prod([right[:, vote] for vote in votes], axis=0) for votes in product((0, 1), repeat=3)]
    wanted = (sum(weight.max() for weight in outcomes) - 0.8) / 3
    assert wanted > 0.005
    assert expected_rise(table, (1, 3))[0] == pytest.approx(wanted, abs=1e-4)


def test_many_classes_are_looked_at_five_at_a_time():
    """Close to looking at all of them, where nearly everything is among the five."""
    rng = np.random.default_rng(0)
    q = np.concatenate([rng.dirichlet(np.ones(4), 50) * 0.98, np.full((50, 6), 0.02 / 6)], axis=1)
    table = q[:, :, None] * (0.4 * np.eye(10) + 0.06)
    few, everything = expected_rise(table, (1,)), expected_rise_of_one(table)
    np.testing.assert_allclose(few, everything, atol=0.01)


def expected_rise_of_one(table):
    return table.max(axis=1).sum(axis=1) - table.sum(axis=2).max(axis=1)


def test_a_committee_that_is_of_one_mind_learns_nothing():
    one = np.broadcast_to(made_up().probabilities, (4, 30, 6, 3))
    scores = make_policy("bald").scores(made_up(committee=one))
    np.testing.assert_allclose(scores[made_up().open], 0.0, atol=1e-12)
    assert make_policy("bald").scores(made_up(members=4))[made_up().open].min() > 1e-3


def test_joint_has_the_margins_it_should():
    some = made_up(gaps=1.0)
    unit, annotator = np.nonzero(some.open)
    table = joint(some, unit, annotator)
    np.testing.assert_allclose(table.sum(axis=2), some.consensus[unit], atol=1e-5)
    assert np.abs(table.sum(axis=1) - some.probabilities[unit, annotator]).mean() < 0.05


def test_a_diverse_batch_does_not_ask_the_same_question_twice():
    """Ten copies of the most open question, and ten others."""
    features = np.concatenate([np.zeros((10, 4)), np.random.default_rng(1).normal(size=(10, 4)) * 3])
    certain = np.concatenate([np.full(10, 0.5), np.linspace(0.55, 0.65, 10)])
    consensus = np.stack([certain, 1 - certain], axis=1)
    both = Situation(probabilities=np.repeat(consensus[:, None], 3, axis=1), given=np.full((20, 3), -1),
                     consensus=consensus, features=features)
    plain, diverse = (
        [ask.unit for ask in make_policy(name).choose(both, 6)] for name in ("expected-change", "diverse-batch"))
    assert sum(unit < 10 for unit in plain) == 6
    assert sum(unit < 10 for unit in diverse) <= 2


def test_reliability_from_votes():
    given = np.array([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, -1]])
    sure = np.eye(2)[[0, 1, 0, 1]] * 0.9 + 0.05
    found = Situation(probabilities=np.full((4, 3, 2), 0.5), given=given, consensus=sure).reliability
    assert found[0] == found[1] > 0.6 > 0.5 > found[2]


def test_a_hundred_thousand_gaps_in_one_pass():
    """Far below what a loop over gaps takes; the benchmark has the figures."""
    large = made_up(units=10_000, people=14, gaps=0.72)
    assert large.open.sum() > 100_000
    begun = time.process_time()
    make_policy("expected-change").scores(large)
    assert time.process_time() - begun < 10.0
