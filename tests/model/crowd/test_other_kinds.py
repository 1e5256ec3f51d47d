"""Votes that are not one class: sets, numbers, comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.bradley_terry import BradleyTerry, Comparisons
from model.crowd.multi_label import MultiLabel, SetAnswers
from model.crowd.numeric import NumberAnswers, RobustNumbers
from model.data.spaces import Value
from model.data.votes import Vote, Votes
from model.errors import ModelError


class TestMultiLabel:
    def test_recovers_sets_better_than_the_majority_of_each_class(self):
        rng = np.random.default_rng(0)
        truth = rng.random((150, 3)) < [0.5, 0.3, 0.6]
        skill = np.array([0.95, 0.95, 0.9, 0.55, 0.55, 0.55, 0.55])
        rows = [(f"t{u:03d}", f"a{a}", [f"c{k}" for k in range(3) if truth[u, k] ^ (rng.random() > skill[a])])
                for u in range(150) for a in range(7)]
        sets = SetAnswers.from_columns(*zip(*rows, strict=True))
        result = MultiLabel().fit(sets)
        counts = np.zeros((150, 3))
        for unit, _, chosen in rows:
            counts[int(unit[1:])] += [f"c{k}" in chosen for k in range(3)]
        majority = counts > 3.5
        assert np.mean(result.present == truth) > np.mean(majority == truth) + 0.02
        assert result.sensitivity[:3].min() > result.sensitivity[3:].max()

    def test_empty_sets_are_answers_and_missing_ones_are_not(self):
        votes = Votes.from_votes([
            Vote("t1", "a", "tags", Value.of_classes([])), Vote("t1", "b", "tags", Value.of_classes([])),
            Vote("t2", "a", "tags", Value.of_classes(["red", "big"])),
            Vote("t2", "b", "tags", Value.of_classes(["red"])),
            Vote("t3", "a", "other", Value.of_class("x")),
        ])
        sets = SetAnswers.from_votes(votes, "tags")
        assert sets.classes == ("big", "red") and len(sets.answers) == 4
        result = MultiLabel().fit(sets)
        assert result.unlabelled.tolist() == [False, False, True]
        assert result.present[:, 1].tolist() == [False, True, False] and not result.present[0].any()
        nothing = MultiLabel().fit(SetAnswers.from_columns(["t"], ["a"], [None]))
        assert nothing.unlabelled.tolist() == [True] and nothing.posterior.shape == (1, 0)

    def test_class_names_may_hold_anything(self):
        sets = SetAnswers.from_columns(["t"], ["a"], [["a,b", "c d"]], classes=["c d", "a,b", "never"])
        assert sets.chosen.tolist() == [[True, True, False]]


class TestNumbers:
    def simulate(self, seed=0, wild=0.05):
        rng = np.random.default_rng(seed)
        truth, bias = rng.normal(50, 10, 200), rng.normal(0, 2, 10)
        spread = np.array([1.0] * 6 + [6.0] * 4)
        rows = []
        for u in range(200):
            for a in rng.permutation(10)[:5]:
                x = truth[u] + bias[a] + rng.normal(0, spread[a])
                rows.append((f"t{u:03d}", f"a{a}", float(x + 200 * (rng.random() < wild))))
        return truth, bias, spread, rows

    def test_beats_the_mean_by_far_and_finds_bias_and_spread(self):
        truth, bias, _, rows = self.simulate()
        result = RobustNumbers().fit(NumberAnswers.from_columns(*zip(*rows, strict=True)))
        mean = np.array([np.mean([x for t, _, x in rows if t == f"t{u:03d}"]) for u in range(200)])
        median = np.array([np.median([x for t, _, x in rows if t == f"t{u:03d}"]) for u in range(200)])
        error = np.mean(np.abs(result.value - truth - np.mean(bias)))
        assert error < 0.2 * np.mean(np.abs(mean - truth)) and error < 0.6 * np.mean(np.abs(median - truth))
        assert np.corrcoef(result.bias, bias)[0, 1] > 0.9
        assert result.spread[:6].max() < result.spread[6:].min()

    @pytest.mark.parametrize("seed", range(3))
    def test_objective_never_falls_and_scale_does_not_matter(self, seed):
        _, _, _, rows = self.simulate(seed)
        result = RobustNumbers().fit(NumberAnswers.from_columns(*zip(*rows, strict=True)))
        assert np.diff(result.objective).min() > -1e-7 and result.converged
        scaled = [(t, a, 1000 * x - 5) for t, a, x in rows]
        again = RobustNumbers().fit(NumberAnswers.from_columns(*zip(*scaled, strict=True)))
        np.testing.assert_allclose(again.value, 1000 * result.value - 5, rtol=1e-3)

    def test_bad_input(self):
        empty = RobustNumbers().fit(NumberAnswers.from_columns([], [], []))
        assert len(empty.value) == 0
        missing = [None, float("nan"), np.inf]
        none = RobustNumbers().fit(NumberAnswers.from_columns(["t", "s", "r"], ["a", "a", "b"], missing))
        assert np.isnan(none.value).all() and none.units == ("r", "s", "t")
        one = RobustNumbers().fit(NumberAnswers.from_columns(["t"], ["a"], [3.0], all_units=["u"]))
        assert one.value[0] == pytest.approx(3.0) and np.isnan(one.value[1])
        same = RobustNumbers().fit(NumberAnswers.from_columns(["t", "t", "s"], ["a", "b", "a"], [2.0, 2.0, 2.0]))
        np.testing.assert_allclose(same.value, 2.0)
        votes = Votes.from_votes([Vote("t", "a", "n", Value.of_number(4.0)), Vote("t", "a", "k", Value.of_class("x"))])
        assert RobustNumbers().fit(NumberAnswers.from_votes(votes, "n")).value[0] == pytest.approx(4.0)


class TestBradleyTerry:
    def simulate(self, seed=0):
        rng = np.random.default_rng(seed)
        score = rng.normal(0, 1.5, 25)
        quality = np.array([0.97] * 6 + [0.5] * 3 + [0.05] * 2)
        left, right = rng.integers(25, size=(2, 2500))
        left, right = left[left != right], right[left != right]
        who = rng.integers(len(quality), size=len(left))
        prefers = rng.random(len(left)) < 1 / (1 + np.exp(score[right] - score[left]))
        prefers ^= rng.random(len(left)) > quality[who]
        items = np.array([f"i{k:02d}" for k in range(25)])
        winner = np.where(prefers, items[left], items[right])
        return score, quality, (items[left], items[right], [f"a{a:02d}" for a in who], winner)

    @pytest.mark.parametrize("seed", range(3))
    def test_quality_helps_and_is_found(self, seed):
        score, _, columns = self.simulate(seed)
        votes = Comparisons.from_columns(*columns)
        crowd = BradleyTerry().fit(votes)
        plain = BradleyTerry(annotator_quality=False).fit(votes)
        assert np.corrcoef(crowd.score, score)[0, 1] > max(0.95, np.corrcoef(plain.score, score)[0, 1])
        assert crowd.quality[:6].min() > 0.8 and crowd.quality[9:].max() < 0.3
        assert np.diff(crowd.objective).min() > -1e-7 and np.diff(plain.objective).min() > -1e-7
        assert crowd.order[0] == crowd.items[int(np.nanargmax(crowd.score))]

    def test_ties_and_strangers_are_dropped_and_silent_items_stay_unknown(self):
        votes = Comparisons.from_columns(
            ["a", "a", "b", "a"], ["b", "b", "b", "c"], ["x"] * 4, ["a", None, "b", "z"], all_items=["d"]
        )
        assert votes.dropped == 3
        ranking = BradleyTerry().fit(votes)
        assert ranking.order == ["a", "b"] and np.isnan(ranking.score[2:]).all()
        empty = BradleyTerry().fit(Comparisons.from_columns([], [], [], []))
        assert empty.order == [] and len(empty.quality) == 0
        with pytest.raises(ModelError):
            Comparisons.from_columns(["a"], ["b"], ["x"], [])

    def test_a_certain_winner_stays_finite(self):
        ranking = BradleyTerry().fit(Comparisons.from_columns(["a"] * 50, ["b"] * 50, ["x"] * 50, ["a"] * 50))
        assert np.isfinite(ranking.score).all() and ranking.score[0] > ranking.score[1]
