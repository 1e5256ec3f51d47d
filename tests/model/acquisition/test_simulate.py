"""Replays: what is held out stays out, everybody starts alike, and good policies are ahead of chance."""

from __future__ import annotations

import numpy as np
import pytest

from model.acquisition.base import AcquisitionError
from model.acquisition.policies import ExpectedChange, Random
from model.acquisition.simulate import Replay, replay_policy, split
from model.acquisition.standing import _more_votes, replay_all, to_json
from model.crowd.answers import AnswerMatrix
from model.crowd.assign import Assignment
from model.crowd.simulate import Crowd, simulate


@pytest.fixture(scope="module")
def votes():
    """150 tasks with 14 of 16 annotators, of whom four in ten guess."""
    crowd = Crowd(n_annotators=16, n_tasks=150, n_classes=2, ratio=0.4, assignment=Assignment(feedback=14))
    made = simulate("hammer-spammer", crowd, np.random.default_rng(1))
    answers = AnswerMatrix.from_votes(made.votes, "label")
    table = np.full(answers.shape[:2], -1)
    table[answers.unit, answers.annotator] = answers.label
    return table


def test_split(votes):
    market = split(votes, 2, Replay(), 0)
    assert not np.any((market.given >= 0) & (market.pool >= 0))
    assert np.all((market.given >= 0).sum(axis=1) == 1) and np.all((market.pool >= 0).sum(axis=1) == 6)
    shown = np.maximum(market.given, market.pool)
    held = np.where((votes >= 0) & (shown < 0), votes, -1)
    assert np.all((held >= 0).sum(axis=1) == 7)
    np.testing.assert_array_equal(shown[shown >= 0], votes[shown >= 0])
    ones = (held == 1).sum(axis=1)
    np.testing.assert_array_equal(market.credit[:, 1], ones > 3)  # seven votes are never tied
    assert market.budget == 600
    assert np.any(split(votes, 2, Replay(), 1).given != market.given)


def test_tied_references_share_their_credit():
    table = np.tile([0, 1, 0, 1, 0, 1], (40, 1))
    credit = split(table, 3, Replay(reference=0.67), 0).credit  # four of six
    assert set(np.unique(credit)) == {0.0, 0.5, 1.0}
    np.testing.assert_allclose(credit.sum(axis=1), 1.0)
    assert np.all(credit[:, 2] == 0.0)


def test_tasks_with_one_vote_are_left_out():
    table = np.tile([0, 1, 0, 1, 0, 1], (40, 1))
    table[:7, 1:] = -1
    assert len(split(table, 2, Replay(), 0).given) == 33


class Watched(ExpectedChange):
    """Notes what it was shown."""

    def choose(self, situation, budget, **wishes):
        seen.append((situation.given.copy(), situation.open.copy(), budget))
        return super().choose(situation, budget, **wishes)


seen: list = []


def test_only_votes_for_sale_are_bought_and_only_bought_ones_are_seen(votes):
    seen.clear()
    market = split(votes, 2, Replay(), 0)
    curve = replay_policy(market, Watched(), Replay(batches=8))
    assert curve.votes.tolist() == list(range(0, 601, 75)) and curve.credit.shape == (9, 150)
    for step, (given, may_ask, budget) in enumerate(seen):
        assert budget == 75 and (given >= 0).sum() == 150 + 75 * step
        assert np.all(given[given >= 0] == np.maximum(market.given, market.pool)[given >= 0])
        np.testing.assert_array_equal(may_ask, (market.pool >= 0) & (given < 0))


def test_the_whole_pool_is_bought_where_the_budget_allows(votes):
    market = split(votes[:30], 2, Replay(budget=10**6), 0)
    curves = [replay_policy(market, policy, Replay(batches=2)) for policy in (ExpectedChange(), Random())]
    assert all(curve.votes[-1] == (market.pool >= 0).sum() for curve in curves)
    np.testing.assert_array_equal(curves[0].credit[-1], curves[1].credit[-1])  # they end at the same votes
    np.testing.assert_array_equal(curves[0].credit[0], curves[1].credit[0])  # and begin with the same


def test_standing(votes):
    told = []
    standing = replay_all(votes, 2, ["expected-change"], replay=Replay(batches=8, balance=0.0), seeds=2,
                          progress=lambda share, note: told.append(share))
    found = to_json(standing)
    ours = found["policies"]["expected-change"]
    assert set(found["policies"]) == {"expected-change", "random", "uncertainty"}
    assert ours["beside"]["random"][1] > 0.0  # with its interval
    assert ours["area"][1] <= ours["area"][0] <= ours["area"][2]
    assert ours["area"][0] == pytest.approx(np.trapezoid(ours["accuracy"], found["votes"]) / 600, abs=1e-4)
    assert ours["saved"]["votes"][0] > 0 and ours["seeds_above"]["random"] == 2
    assert found["policies"]["random"]["beside"]["random"] == [0.0, 0.0, 0.0]
    assert told == sorted(told) and len(told) == 6
    again = replay_all(votes, 2, ["expected-change"], replay=Replay(batches=8, balance=0.0), seeds=2)
    np.testing.assert_array_equal(again.replayed["random"].areas, standing.replayed["random"].areas)


@pytest.mark.parametrize(("ours", "theirs", "wanted"), [
    ([0.5, 0.8, 0.9], [0.5, 0.7, 0.9], (25.0, False)), ([0.5, 0.7, 0.9], [0.5, 0.8, 0.9], (-50 / 3, False)),
    ([0.5, 0.95, 0.96], [0.5, 0.7, 0.9], (50.0, True)), ([0.4, 0.5, 0.6], [0.5, 0.7, 0.9], (-50.0, False)),
])
def test_votes_saved(ours, theirs, wanted):
    saved, at_least = _more_votes(np.array([0.0, 50.0, 100.0]), np.array(ours), np.array(theirs))
    assert (pytest.approx(saved), at_least) == wanted


def test_what_cannot_be_replayed():
    few = np.tile([0, 1], (10, 1))
    with pytest.raises(AcquisitionError, match="for sale"):
        split(few, 2, Replay(), 0)
    with pytest.raises(AcquisitionError):
        Replay(reference=1.0)
    with pytest.raises(AcquisitionError, match="seed"):
        replay_all(few, 2, [], replay=Replay(), seeds=0)
