"""Scores of tasks: entropy, difficulty, disagreement beyond habit, AUM and WAUM."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import VotePredictor
from model.errors import ModelError
from model.quality.margins import (
    annotator_area_under_margin,
    area_under_margin,
    vote_margins,
    vote_trust,
    weighted_area_under_margin,
)
from model.quality.tasks import disagreement_after_bias, entropy, glad_difficulty, leniency, posterior_entropy


def answers_of(*rows, **kwargs):
    return AnswerMatrix.from_columns(*zip(*rows, strict=True), **kwargs)


def test_entropy_by_hand():
    answers = answers_of(
        ("t1", "a", "x"), ("t1", "b", "x"), ("t2", "a", "x"), ("t2", "b", "y"), ("t3", "a", "y"), all_units=["t4"]
    )
    np.testing.assert_allclose(entropy(answers), [0.0, np.log(2), 0.0, np.nan], atol=1e-12)
    smooth = entropy(answers, smoothing=1.0)
    assert smooth[2] > smooth[0] > 0 and np.isnan(smooth[3])  # one vote is less certain than two
    fitted = DawidSkene().fit(answers)
    assert np.isnan(posterior_entropy(fitted)[3]) and (posterior_entropy(fitted)[:3] >= 0).all()


def test_glad_difficulty_ranks_hard_units_and_leaves_silent_ones_out():
    rng = np.random.default_rng(0)
    rows = [(f"t{u:03d}", f"a{a}", "xyz"[u % 3 if rng.random() < (0.45 if u < 40 else 0.95) else rng.integers(3)])
            for u in range(120) for a in range(6)]
    difficulty = glad_difficulty(answers_of(*rows, all_units=["t999"]))
    assert np.isnan(difficulty[-1])
    assert difficulty[:40].mean() > 1.3 * difficulty[40:120].mean()


def test_disagreement_that_habits_explain_does_not_count():
    """Two lenient annotators call half of all 'no' units 'maybe'; on ten units everybody is at random."""
    rng = np.random.default_rng(1)
    rows = []
    for u in range(300):
        truth = u % 3
        for a in range(6):
            label = truth
            if a < 2 and truth == 2:
                label = 1 if rng.random() < 0.5 else 2
            elif rng.random() < 0.05:
                label = rng.integers(3)
            if u < 10:
                label = rng.integers(3)
            rows.append((f"t{u:03d}", f"a{a}", ("yes", "maybe", "no")[label]))
    answers = answers_of(*rows)
    method = DawidSkene()
    fitted = method.fit(answers)
    predicted = VotePredictor().predict_votes(method, answers, fitted)
    score = disagreement_after_bias(answers, fitted, predicted)
    explained = np.array([u % 3 == 2 and u >= 10 for u in range(300)])
    assert score[:10].mean() > 3.0
    assert score[explained].mean() < 0.75
    assert entropy(answers)[explained].mean() > 0.3  # the plain entropy does rank them high
    mild = leniency(answers, np.array([0.0, 1.0, 2.0])[[1, 2, 0]])  # classes sort as maybe, no, yes
    assert mild[:2].max() < mild[2:].min()


class TestMargins:
    def test_aum_by_hand_is_against_the_best_other_class(self):
        logits = np.array([[[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]], [[4.0, 1.0, 2.0], [0.0, 1.0, 5.0]]])
        got = area_under_margin(logits, np.array([0, 2]))
        np.testing.assert_allclose(got, [(1 + 2) / 2, (-2 + 4) / 2])
        assert np.isnan(area_under_margin(logits, np.array([-1, 2]))[0])

    def test_waum_is_the_trust_weighted_mean(self):
        rng = np.random.default_rng(0)
        answers = answers_of(("t1", "a", "x"), ("t1", "b", "y"), ("t2", "b", "z"), classes="xyz", all_units=["t3"])
        logits = rng.normal(size=(4, 3, 3))
        confusion = rng.dirichlet(np.ones(3), size=(2, 3))
        margin, trust = vote_margins(answers, logits), vote_trust(answers, logits, confusion)
        waum = weighted_area_under_margin(answers, logits, confusion)
        p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
        by_hand = np.mean([p[t, 0, 0] - max(p[t, 0, 1], p[t, 0, 2]) for t in range(4)])
        assert margin[0] == pytest.approx(by_hand)
        assert trust[0] == pytest.approx(p[:, 0].mean(axis=0) @ np.diagonal(confusion[0]))
        assert waum[0] == pytest.approx((trust[0] * margin[0] + trust[1] * margin[1]) / (trust[0] + trust[1]))
        assert waum[1] == pytest.approx(margin[2]) and np.isnan(waum[2])
        each = annotator_area_under_margin(answers, logits, confusion)
        assert each[1] == pytest.approx((trust[1] * margin[1] + trust[2] * margin[2]) / (trust[1] + trust[2]))

    def test_shapes_are_checked(self):
        answers = answers_of(("t", "a", "x"), ("t", "b", "y"))
        with pytest.raises(ModelError, match="epochs"):
            vote_margins(answers, np.zeros((3, 5, 2)))
        with pytest.raises(ModelError, match="two classes"):
            area_under_margin(np.zeros((1, 1, 1)), np.array([0]))
