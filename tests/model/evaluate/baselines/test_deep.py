"""Deep baselines keep the contract, and learn what an annotator makes of content."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.data.spaces import ValueKind
from model.errors import ModelError, NotEnoughVotes
from model.evaluate.baselines import BASELINES
from model.evaluate.baselines.deep import DEEP
from model.evaluate.problem import make_problem
from model.simulate import simulate_annotators
from tests.model.evaluate.baselines.test_naive_and_gaps import by_name, halves

SHORT = tuple(replace(baseline, epochs=2) for baseline in DEEP)


@pytest.fixture(scope="module")
def opinionated():
    """Annotators who react to content, each in their own way."""
    made = simulate_annotators(
        np.random.default_rng(5), units=400, annotators=5, classes=("a", "b"), coverage=0.9, dim=12, strength=4.0
    )
    return make_problem("opinions", made.votes, "label", made.space, lambda units: [made.tokens[u] for u in units])


@pytest.mark.parametrize("kind", ["problem", "several"])
@pytest.mark.parametrize("baseline", SHORT, ids=by_name)
def test_probabilities_for_everybody(baseline, kind, request):
    problem = request.getfixturevalue(kind)
    fold, visible, units = halves(problem)
    fitted = baseline.fit(fold)
    p = fitted.predict(units, visible=None)
    assert p.shape == (len(units), len(fold.annotators), len(problem.space.classes))
    assert np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()
    if problem.space.kind is ValueKind.CLASS:
        assert np.allclose(p.sum(-1), 1.0)
    np.testing.assert_array_equal(p, fitted.predict(units, visible=visible))
    np.testing.assert_allclose(p[:1], fitted.predict(units[:1], visible=None), rtol=1e-5)


@pytest.mark.parametrize("baseline", SHORT, ids=by_name)
def test_order_of_votes_changes_nothing_and_seeds_repeat(baseline, problem):
    fold, _, units = halves(problem)
    mixed = replace(fold, votes=fold.votes.select(np.random.default_rng(0).permutation(len(fold.votes))))
    one, other = (baseline.fit(each).predict(units, visible=None) for each in (fold, mixed))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("baseline", DEEP, ids=by_name)
def test_it_learns_what_each_annotator_makes_of_content(baseline, opinionated):
    fold, asked, units = halves(opinionated)
    at = [units.index(asked.units[unit]) for unit in asked.unit], asked.annotator
    y = opinionated.y[opinionated.votes.unit % 4 == 0]

    def loss(model):
        return -np.log((model.fit(fold).predict(units, visible=None)[at] * y).sum(1)).mean()

    assert loss(baseline) < loss(BASELINES["annotator-prior"]) - 0.02


@pytest.mark.parametrize("baseline", SHORT, ids=by_name)
def test_an_annotator_without_votes_is_answered_for_by_the_mean(baseline, problem):
    fold, _, units = halves(problem)
    alone = replace(fold, votes=fold.votes.select(fold.votes.annotator != 0))
    p = baseline.fit(alone).predict(units, visible=None)
    np.testing.assert_allclose(p[:, 0], p[:, 1:].mean(1), rtol=1e-6)


@pytest.mark.parametrize("baseline", SHORT, ids=by_name)
def test_what_cannot_be_learned_from_is_said(baseline, problem):
    fold, _, _ = halves(problem)
    with pytest.raises(ModelError, match="NaN"):
        baseline.fit(replace(fold, features=lambda units: np.full((len(units), 12), np.nan, np.float32)))
    with pytest.raises(NotEnoughVotes, match="two units"):
        baseline.fit(replace(fold, votes=fold.votes.select(fold.votes.unit == fold.votes.unit[0])))


def test_one_annotator_and_one_vote_of_another(problem):
    fold, _, units = halves(problem)
    votes = fold.votes
    keep = votes.annotator == 0
    keep[np.flatnonzero(votes.annotator == 1)[:1]] = True
    for baseline in SHORT:
        p = baseline.fit(replace(fold, votes=votes.select(keep))).predict(units, visible=None)
        assert np.isfinite(p).all()
