"""Ties: dependence whatever its form, its p-values, and what class rates and vague beliefs allow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from model.crowd.answers import AnswerMatrix
from model.quality.grounds import FEWEST_OTHERS, grounds, levels
from model.quality.ties import tie


def one(label, x, weight=None):
    label = np.asarray(label)
    return tie(np.zeros(len(label), np.int64), label, x, np.ones(len(label)) if weight is None else weight, 1)


def test_with_sure_beliefs_it_is_pearsons_chi_square():
    rng = np.random.default_rng(0)
    truth, label = rng.integers(3, size=200), rng.integers(3, size=200)
    label[:60] = truth[:60]
    found = one(label, np.eye(3)[truth])
    table = np.zeros((3, 3))
    np.add.at(table, (truth, label), 1)
    expected = chi2_contingency(table)
    assert found.n[0] * found.trace[0] == pytest.approx(expected.statistic)
    assert found.independent[0] == pytest.approx(expected.pvalue) and found.freedom[0] == 4


def test_contrary_labels_are_tied_as_much_as_equal_ones_and_rates_limit_what_can_be_seen():
    truth = np.tile([0, 1], 100)
    same, contrary = one(truth, np.eye(2)[truth]), one(1 - truth, np.eye(2)[truth])
    assert same.strength[0] == pytest.approx(1.0, abs=0.01) == contrary.strength[0]
    rare = np.where(np.arange(200) < 20, truth, 0)  # says 1 ten times, each time where it is due
    found = one(rare, np.eye(2)[truth])
    assert found.trace[0] < 0.1 and found.strength[0] == pytest.approx(1.0, abs=0.1)


def test_levels_of_both_tests_hold():
    """Labels at random; and labels tied by exactly as much as the other test asks for."""
    rng = np.random.default_rng(1)
    independent, weak = [], []
    for _ in range(600):
        truth = rng.integers(2, size=150)
        x = np.eye(2)[truth]
        independent.append(one(rng.integers(2, size=150), x).independent[0])
        label = np.where(rng.random(150) < 0.75, truth, 1 - truth)  # correlation .5: strength .25
        weak.append(one(label, x).weaker_than(0.25)[0])
    for p in (independent, weak):
        assert 0.005 < np.mean(np.array(p) < 0.05) < 0.08
    assert one(rng.integers(2, size=150), np.full((150, 2), 0.5)).weaker_than(0.25)[0] == 1.0, "beliefs say nothing"


def test_grounds_count_tasks_and_people():
    """a and b share six tasks, a and c four; d is alone. Questions of one task count once."""
    rows = [("a", t) for t in range(12)] + [("b", t) for t in range(6)] + [("c", t) for t in range(4)] + [("d", 50)]
    answers = AnswerMatrix.from_columns([t for _, t in rows], [who for who, _ in rows], ["x"] * len(rows))
    found = grounds(answers)
    assert found.common.tolist() == [6, 6, 4, 0] and found.others.tolist() == [1, 1, 0, 0]
    assert FEWEST_OTHERS == 2 and not found.enough.any()
    assert found.shared.sum() == 16
    halved = grounds(answers, answers.unit.astype(np.int64) // 2)
    assert halved.common.max() <= 6


def test_levels_of_a_growing_project_add_up_to_less_than_one_look():
    common = 20 * 2 ** np.arange(12)
    rows = [(f"t{t}", f"a{a}") for t in range(20) for a in range(12)]
    answers = AnswerMatrix.from_columns([t for t, _ in rows], [a for _, a in rows], ["x"] * len(rows))
    ground = grounds(answers)
    object.__setattr__(ground, "common", common)
    once, often = (levels(ground, 0.05, 4, watched=watched) for watched in (False, True))
    assert once.sum() == pytest.approx(0.05 / 4) and (often * 7.0).sum() < 0.05 / 4 / 12
