"""Beliefs from votes, against simulated crowds whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from model.acquisition.beliefs import BeliefConfig, fit_beliefs


@pytest.fixture(scope="module")
def crowd():
    """(votes (U, A), truth (U,), murky (U,)): the last of five annotators guesses; on a third of the tasks all do."""
    rng = np.random.default_rng(3)
    truth, murky = rng.integers(0, 3, 300), np.arange(300) % 3 == 0
    right = np.array([0.95, 0.9, 0.85, 0.8, 1 / 3])
    guess = rng.integers(0, 3, (300, 5))
    votes = np.where((rng.random((300, 5)) < (right - 1 / 3) * 1.5) & ~murky[:, None], truth[:, None], guess)
    return np.where(rng.random(votes.shape) < 0.9, votes, -1), truth, murky


def test_finds_the_truth_the_guesser_and_what_is_murky(crowd):
    votes, truth, murky = crowd
    found = fit_beliefs(votes, 3)
    assert np.mean(found.consensus.argmax(axis=1)[~murky] == truth[~murky]) > 0.95
    skill = np.diagonal(found.confusion, axis1=1, axis2=2).mean(axis=1)
    assert skill[4] < 0.5 < skill[:4].min()
    assert found.ambiguity[murky].mean() > found.ambiguity[~murky].mean() + 0.1


def test_rows_are_probabilities(crowd):
    found = fit_beliefs(crowd[0], 3)
    for rows in (found.consensus, found.confusion, found.probabilities()):
        np.testing.assert_allclose(rows.sum(axis=-1), 1.0, atol=1e-9)
        assert rows.min() >= 0.0
    assert found.probabilities().shape == (300, 5, 3)


def test_votes_on_both_sides_are_ambiguity_not_a_question_of_one_more():
    """Five against five, beside one against one."""
    votes = np.full((62, 12), -1)
    votes[:60, :4] = (np.arange(60) % 2)[:, None]  # everybody agrees on these
    votes[60, :10] = [0, 1] * 5
    votes[61, :2] = [0, 1]
    graded = fit_beliefs(votes, 2)
    assert graded.ambiguity[60] > graded.ambiguity[61] > graded.ambiguity[0]
    plain = fit_beliefs(votes, 2, config=BeliefConfig(grades=(0.0,), grade_votes=(1.0,)))
    assert np.all(plain.ambiguity == 0.0)


def test_content_speaks_where_nobody_voted():
    votes = np.full((3, 2), -1)
    votes[0] = 0
    prior = np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]])
    found = fit_beliefs(votes, 2, prior=prior)
    np.testing.assert_allclose(found.consensus[1:], prior[1:], atol=1e-9)
    assert found.consensus[0, 0] > 0.6


def test_order_does_not_matter(crowd):
    votes, rng = crowd[0], np.random.default_rng(0)
    rows, columns = rng.permutation(300), rng.permutation(5)
    old, new = fit_beliefs(votes, 3), fit_beliefs(votes[rows][:, columns], 3)
    np.testing.assert_allclose(new.consensus, old.consensus[rows], atol=1e-9)
    np.testing.assert_allclose(new.confusion, old.confusion[columns], atol=1e-9)


@pytest.mark.parametrize(("votes", "classes"), [
    (np.full((4, 3), -1), 2), (np.zeros((4, 3), int), 1), (np.zeros((1, 1), int), 2), (np.zeros((0, 3), int), 2),
])
def test_edges(votes, classes):
    found = fit_beliefs(votes, classes)
    assert np.isfinite(found.consensus).all() and np.isfinite(found.probabilities()).all()
