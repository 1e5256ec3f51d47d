"""Scores of annotators, groups of them, and leaving some out."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import posterior_without
from model.crowd.majority import MajorityVote
from model.errors import ModelError
from model.quality.annotators import (
    against_belief,
    against_labels,
    consensus_accuracy,
    grouped_median,
    self_consistency,
    spammer_score,
    speed,
    trace,
)
from model.quality.clusters import group_annotators
from model.quality.drift import drift, rightness
from model.quality.prune import PruneRule, prune


def simulate(accuracy, units=300, per=5, classes=3, seed=0, **kwargs):
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=units)
    n = len(accuracy)
    unit = np.repeat(np.arange(units), per)
    annotator = rng.permuted(np.tile(np.arange(n), (units, 1)), axis=1)[:, :per].ravel()
    right = rng.random(len(unit)) < np.asarray(accuracy)[annotator]
    label = np.where(right, truth[unit], (truth[unit] + rng.integers(1, classes, size=len(unit))) % classes)
    answers = AnswerMatrix.from_codes(
        units=[f"t{i:04d}" for i in range(units)], annotators=[f"a{i:02d}" for i in range(n)],
        classes=[f"c{i}" for i in range(classes)], unit=unit, annotator=annotator, label=label, **kwargs,
    )
    return answers, truth


def test_accuracy_without_own_vote_is_unbiased_where_consensus_flatters():
    accuracy = [0.9, 0.9, 0.8, 0.7, 0.6, 0.5]
    answers, truth = simulate(accuracy, units=1500, per=3)
    method = DawidSkene()
    fitted = method.fit(answers)
    honest = against_belief(answers, posterior_without(method, answers, fitted))
    gold = against_labels(answers, truth)
    np.testing.assert_allclose(gold.accuracy, accuracy, atol=0.05)
    assert (gold.low < accuracy).sum() >= 5 and (gold.high > accuracy).sum() >= 5
    majority = consensus_accuracy(answers, MajorityVote().fit(answers))
    assert majority[-1] > gold.accuracy[-1] + 0.05  # the own vote flatters
    assert np.all(np.diff(honest.accuracy) < 0.03) and honest.accuracy[-1] < majority[-1]


def test_kappa_and_its_standard_error():
    """A coin has kappa 0 within its standard error; somebody who is always right has 1."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    coin = rng.integers(2, size=400)
    rows = [(f"t{i:03d}", who, str(x)) for i in range(400) for who, x in (("coin", coin[i]), ("right", truth[i]))]
    answers = AnswerMatrix.from_columns(*zip(*rows, strict=True), all_annotators=["silent"])
    got = against_labels(answers, truth)
    assert abs(got.kappa[0]) < 3 * got.kappa_se[0] and got.kappa_se[0] == pytest.approx(0.05, rel=0.05)
    assert got.kappa[1] == 1.0 and got.informative[1] == pytest.approx(2 * 400 * np.log(2), rel=0.01)
    assert np.isnan(got.accuracy[2]) and np.isnan(got.kappa[2]) and got.informative[2] == 0.0


def test_gold_on_some_units_only():
    answers, truth = simulate([0.9, 0.6, 0.8], per=3)
    part = np.where(np.arange(300) < 100, truth, -1)
    assert against_labels(answers, part).table.sum() == 300


def test_trace_and_spammer_score_of_known_matrices():
    perfect, spammer = np.eye(3), np.tile([0.5, 0.3, 0.2], (3, 1))
    swapped = np.eye(3)[[1, 0, 2]]
    matrices = np.stack([perfect, spammer, swapped])
    np.testing.assert_allclose(trace(matrices), [3, 1, 1])
    score = spammer_score(matrices)
    np.testing.assert_allclose(score, [np.sqrt(2), 0, np.sqrt(2)], atol=1e-12)  # an inverter is no spammer
    assert spammer_score(np.ones((4, 1, 1))).tolist() == [0.0] * 4


def test_self_consistency_counts_pairs_of_repeats():
    unit = np.array([0, 0, 0, 1, 1, 2, 0, 0])
    annotator = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    label = np.array([2, 2, 1, 0, 0, 1, 1, 2])
    got = self_consistency(unit, annotator, label, 3)
    assert got.pairs.tolist() == [4, 1, 0]
    np.testing.assert_allclose(got.share, [2 / 4, 0.0, np.nan])
    empty = self_consistency(unit[:0], annotator[:0], label[:0], 2)
    assert empty.pairs.tolist() == [0, 0]


def test_speed_compares_on_the_same_units():
    """b takes the long tasks but is as fast as a there; c hurries."""
    unit = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    annotator = np.array([0, 1, 2, 0, 1, 2, 1, 0])
    seconds = np.array([10.0, 10.0, 1.0, 20.0, 20.0, 2.0, 600.0, np.nan])
    got = speed(unit, annotator, seconds, 4)
    np.testing.assert_allclose(got.relative, [1.0, 1.0, 0.1, np.nan])
    np.testing.assert_allclose(got.median_s, [15.0, 20.0, 1.5, np.nan])
    np.testing.assert_allclose(got.hurried, [0.0, 0.0, 1.0, np.nan])
    none = speed(unit[:0], annotator[:0], seconds[:0], 2)
    assert np.isnan(none.median_s).all()
    np.testing.assert_allclose(grouped_median(np.array([1, 1, 1, 1]), np.array([4.0, 1.0, 3.0, 2.0]), 2), [np.nan, 2.5])


class TestDrift:
    def run(self, answers):
        method = DawidSkene()
        fitted = method.fit(answers)
        belief = posterior_without(method, answers, fitted)
        return drift(answers, *rightness(answers, belief, fitted.confusion))

    def test_finds_who_and_when(self):
        rng = np.random.default_rng(0)
        answers, _ = simulate([0.9] * 6, units=400, time=np.repeat(np.arange(400.0), 5), keep_time=True)
        late = (answers.annotator == 2) & (answers.unit >= 250)
        label = np.where(late, rng.integers(3, size=len(answers)), answers.label)
        drifted = AnswerMatrix.from_codes(
            units=answers.units, annotators=answers.annotators, classes=answers.classes, unit=answers.unit,
            annotator=answers.annotator, label=label, time=answers.time, keep_time=True,
        )
        got = self.run(drifted)
        assert got.p_value[2] < 1e-6 and np.delete(got.p_value, 2).min() > 1e-3
        assert got.before[2] > 0.8 > 0.6 > got.after[2]
        votes_before = np.sum((drifted.annotator == 2) & (drifted.unit < 250))
        assert abs(got.change[2] - votes_before) < 15

    def test_p_values_are_uniform_or_larger_without_drift(self):
        small = [self.run(simulate([0.8] * 8, seed=s, time=np.repeat(np.arange(300.0), 5), keep_time=True)[0]).p_value
                 for s in range(10)]
        assert np.mean(np.concatenate(small) < 0.05) <= 0.1

    def test_a_constant_offset_is_no_drift(self):
        """Somebody who is steadily worse than their confusion says does not change."""
        answers, _ = simulate([0.8] * 4, per=4, time=np.arange(1200.0), keep_time=True)
        right = np.random.default_rng(0).random(1200)
        steady = drift(answers, right, np.full(1200, 0.5))
        shifted = drift(answers, right, np.full(1200, 0.9))
        np.testing.assert_allclose(shifted.p_value, steady.p_value)
        assert steady.p_value.min() > 0.001

    def test_needs_times_and_votes(self):
        answers, _ = simulate([0.8] * 5, units=3)
        with pytest.raises(ModelError, match="time"):
            self.run(answers)
        few, _ = simulate([0.8] * 5, units=3, time=np.arange(15.0), keep_time=True)
        assert (self.run(few).p_value == 1.0).all()


def test_groups_find_the_tight_guideline_group():
    """Ten share a reading of the guideline, twenty decide each for themselves."""
    rng = np.random.default_rng(0)
    guideline = rng.integers(2, size=150)
    own = np.where(rng.random((20, 150)) < 0.62, guideline, 1 - guideline)
    tight = np.where(rng.random((10, 150)) < 0.95, rng.integers(2, size=150), rng.integers(2, size=(10, 150)))
    everybody = np.vstack([tight, own])
    rows = [(f"t{u:03d}", f"a{a:02d}", "ny"[x]) for a, row in enumerate(everybody) for u, x in enumerate(row)]
    groups = group_annotators(AnswerMatrix.from_columns(*zip(*rows, strict=True)))
    tightest = np.flatnonzero(groups.member == 0)
    assert tightest.tolist() == list(range(10))
    assert groups.within[0] > 0.85 and groups.cohesion[0] > 0.3 and groups.silhouette > 0.1
    assert len(group_annotators(AnswerMatrix.from_columns([], [], [])).member) == 0
    two = group_annotators(AnswerMatrix.from_columns(["t", "t"], ["a", "b"], ["x", "y"]))
    assert two.member.tolist() == [0, 0]


class TestPrune:
    def test_dropping_spammers_helps_the_majority(self):
        answers, truth = simulate([0.9, 0.85, 0.85, 0.34, 0.33, 0.35], units=400, per=5)
        method = DawidSkene()
        honest = against_belief(answers, posterior_without(method, answers, method.fit(answers)))
        result = prune(answers, honest.accuracy, PruneRule(below=0.5), MajorityVote())
        assert result.dropped == ("a03", "a04", "a05")
        before, after = np.mean(result.before.label == truth), np.mean(result.after.label == truth)
        assert after > before + 0.03 and result.alpha_after > result.alpha_before + 0.2
        assert result.changed.any() and not result.lost.any()
        assert result.dropped_votes == len(answers) - len(result.kept)
        assert "score below 0.5" in result.rule

    def test_rules(self):
        scores, votes = np.array([0.1, 0.2, np.nan, 0.9, 0.05]), np.array([50, 50, 50, 50, 3])
        assert PruneRule(below=0.5).drops(scores, votes).tolist() == [True, True, False, False, False]
        assert PruneRule(share=0.34).drops(scores, votes).tolist() == [True, False, False, False, False]
        assert not PruneRule(share=0.0).drops(scores, votes).any()
        for wrong in ({}, {"below": 0.1, "share": 0.1}, {"share": 1.0}):
            with pytest.raises(ModelError):
                PruneRule(**wrong)

    def test_units_may_lose_all_votes(self):
        answers = AnswerMatrix.from_columns(["t", "s"], ["bad", "good"], ["x", "y"])
        result = prune(answers, np.array([0.0, 1.0]), PruneRule(below=0.5, min_votes=1), MajorityVote())
        assert result.lost.tolist() == [False, True] and result.dropped == ("bad",)
