"""What every policy must keep: one suite over the whole registry."""

from __future__ import annotations

import numpy as np
import pytest

from model.acquisition.base import AcquisitionError, Situation
from model.acquisition.registry import POLICIES, RECOMMENDED, make_policy
from tests.model.acquisition.situations import made_up

NAMES = sorted(POLICIES)
ORDERLY = [name for name in NAMES if not POLICIES[name].stochastic]


def pairs(asked):
    return [(ask.unit, ask.annotator) for ask in asked]


def permuted(rows, columns, **more):
    """`made_up`, its units and annotators in another order."""
    old = made_up(**more)
    return Situation(
        probabilities=old.probabilities[rows][:, columns], given=old.given[rows][:, columns],
        consensus=old.consensus[rows], confusion=old.confusion[columns], ambiguity=old.ambiguity[rows],
        features=old.features[rows], reliability=old.reliability[columns],
        committee=None if old.committee is None else old.committee[:, rows][:, :, columns],
    )


@pytest.mark.parametrize("name", NAMES)
class TestEveryPolicy:
    def test_scores_gaps_and_nothing_else(self, name):
        may_ask = np.random.default_rng(3).random((30, 6)) < 0.8
        situation = made_up(may_ask=may_ask)
        scores = make_policy(name).scores(situation)
        assert scores.shape == (30, 6)
        np.testing.assert_array_equal(np.isfinite(scores), (situation.given < 0) & may_ask)
        assert np.all(scores[~np.isfinite(scores)] == -np.inf)
        assert scores[np.isfinite(scores)].min() >= 0.0

    def test_never_asks_for_a_vote_that_is_there_nor_twice(self, name):
        situation = made_up()
        asked = make_policy(name).choose(situation, 40, at_most_per_unit=3)
        assert len(asked) == 40 == len(set(pairs(asked)))
        assert all(situation.given[pair] < 0 for pair in pairs(asked))

    @pytest.mark.parametrize("most", [1, 2])
    def test_at_most_k_a_unit(self, name, most):
        asked = make_policy(name).choose(made_up(), 1000, at_most_per_unit=most)
        counts = np.bincount([ask.unit for ask in asked], minlength=30)
        np.testing.assert_array_equal(counts, np.minimum(most, made_up().open.sum(axis=1)))

    def test_everything_where_the_budget_is_larger(self, name):
        situation = made_up()
        assert len(make_policy(name).choose(situation, 1e9, at_most_per_unit=99)) == situation.open.sum()

    def test_budget_pays_for_costs(self, name):
        costs = np.array([1.0, 1.0, 2.0, 2.5, 7.0, 30.0])
        asked = make_policy(name).choose(made_up(), 20.0, at_most_per_unit=2, costs=costs)
        spent = sum(costs[ask.annotator] for ask in asked)
        assert 19.0 < spent <= 20.0
        assert all(ask.annotator != 5 for ask in asked)  # dearer than the whole budget

    def test_balance(self, name):
        asked = make_policy(name).choose(made_up(gaps=1.0), 18, balance=1.0)
        assert np.bincount([ask.annotator for ask in asked], minlength=6).tolist() == [3] * 6
        half = make_policy(name).choose(made_up(gaps=1.0), 18, balance=0.5)
        assert np.bincount([ask.annotator for ask in half], minlength=6).max() <= 6

    def test_no_budget_and_no_gap(self, name):
        assert make_policy(name).choose(made_up(), 0) == []
        assert make_policy(name).choose(made_up(gaps=0.0), 9) == []

    def test_one_annotator_one_class_one_task(self, name):
        for shape in ({"people": 1}, {"classes": 1}, {"units": 1}, {"people": 1, "classes": 1, "units": 1}):
            asked = make_policy(name).choose(made_up(gaps=1.0, **shape), 1)
            assert len(asked) == 1 and np.isfinite(asked[0].gain)

    def test_no_units(self, name):
        assert make_policy(name).choose(made_up(units=0), 5) == []

    def test_certain_predictions(self, name):
        situation = made_up(probabilities=np.eye(3)[np.zeros((30, 6), int)], consensus=np.eye(3)[np.zeros(30, int)])
        scores = make_policy(name).scores(situation)
        assert np.isfinite(scores[situation.open]).all()

    def test_best_first(self, name):
        gains = [ask.gain for ask in make_policy(name).choose(made_up(), 25, at_most_per_unit=3)]
        assert gains == sorted(gains, reverse=True) or name == "diverse-batch"

    def test_sentence(self, name):
        policy, situation = make_policy(name), made_up()
        sentence = policy.explain(situation, policy.choose(situation, 1)[0])
        assert sentence.endswith(".") and "{" not in sentence and "nan" not in sentence

    def test_leaves_its_input_alone(self, name):
        situation = made_up(members=2)
        before = {key: np.copy(getattr(situation, key)) for key in Situation.__slots__}
        make_policy(name).choose(situation, 10)
        for key, array in before.items():
            np.testing.assert_array_equal(getattr(situation, key), array)

    @pytest.mark.parametrize("wish", [
        {"budget": np.nan}, {"budget": -1}, {"at_most_per_unit": 0}, {"balance": 1.5}, {"balance": np.nan},
        {"costs": [1.0] * 5}, {"costs": [1.0] * 5 + [0.0]}, {"costs": [1.0] * 5 + [np.nan]},
    ])
    def test_wishes_that_cannot_be_met(self, name, wish):
        with pytest.raises(AcquisitionError):
            make_policy(name).choose(made_up(), **{"budget": 3} | wish)


@pytest.mark.parametrize("name", ORDERLY)
@pytest.mark.parametrize("members", [0, 3])
def test_order_does_not_matter(name, members):
    rng = np.random.default_rng(11)
    rows, columns = rng.permutation(30), rng.permutation(6)
    old, new = made_up(members=members), permuted(rows, columns, members=members)
    policy = make_policy(name)
    np.testing.assert_allclose(policy.scores(new), policy.scores(old)[rows][:, columns], rtol=1e-9)
    back = [(rows[ask.unit], columns[ask.annotator]) for ask in policy.choose(new, 12)]
    assert back == pairs(policy.choose(old, 12))


def test_chunks_change_nothing(monkeypatch):
    situation = made_up(members=2)
    whole = {name: make_policy(name).scores(situation) for name in ORDERLY}
    monkeypatch.setattr("model.acquisition.base._CELLS", 70)
    for name, scores in whole.items():
        np.testing.assert_allclose(make_policy(name).scores(situation), scores, rtol=1e-9)


@pytest.mark.parametrize("key", ["probabilities", "consensus", "confusion", "committee", "features", "ambiguity"])
def test_nan_is_a_typed_error(key):
    broken = np.copy(getattr(made_up(members=2), key))
    broken[0] = np.nan  # the first task, annotator or member
    with pytest.raises(AcquisitionError):
        made_up(**{key: broken})


def test_what_is_predicted_where_a_vote_is_does_not_matter():
    old = made_up()
    other = old.probabilities.copy()
    other[~old.open] = np.nan
    for name in ORDERLY:
        np.testing.assert_array_equal(make_policy(name).scores(made_up(probabilities=other)),
                                      make_policy(name).scores(old))


@pytest.mark.parametrize("wrong", [
    {"given": np.full((30, 6), 3)}, {"given": np.full((30, 5), 0)}, {"given": np.full((30, 6), 0.5)},
    {"consensus": np.ones((30, 3))}, {"reliability": np.full(6, 1.2)}, {"reliability": np.full(5, 0.5)},
    {"features": np.zeros((29, 2))}, {"committee": np.ones((2, 30, 6))}, {"may_ask": np.ones((6, 30), bool)},
    {"probabilities": np.ones((30, 6))},
])
def test_situations_that_are_none(wrong):
    with pytest.raises(AcquisitionError):
        made_up(**wrong)


def test_registry():
    assert RECOMMENDED in POLICIES
    with pytest.raises(AcquisitionError, match="random"):
        make_policy("best")
    with pytest.raises(AcquisitionError, match="no such setting"):
        make_policy("random", sead=1)
    first, second = (make_policy("random", seed=seed).choose(made_up(), 10) for seed in (1, 2))
    assert pairs(first) != pairs(second)
    assert pairs(first) == pairs(make_policy("random", seed=1).choose(made_up(), 10))
