import numpy as np
import pytest

from model.data.metrics import (
    brier_scores,
    calibration_error,
    correct,
    log_losses,
    paired_interval,
    summarise,
)
from model.data.spaces import MultipleChoice, SingleChoice

SINGLE, MULTIPLE = SingleChoice(("a", "b")), MultipleChoice(("a", "b"))
P = np.array([[0.9, 0.1], [0.4, 0.6]])
Y = np.array([[1.0, 0.0], [1.0, 0.0]])


def test_log_loss_by_hand():
    np.testing.assert_allclose(log_losses(SINGLE, P, Y), [-np.log(0.9), -np.log(0.4)])
    np.testing.assert_allclose(log_losses(MULTIPLE, P, Y), [-2 * np.log(0.9), -2 * np.log(0.4)])


def test_log_loss_of_an_impossible_vote_is_finite():
    assert np.isfinite(log_losses(SINGLE, np.array([[0.0, 1.0]]), Y[:1])).all()


def test_correct_needs_the_whole_set():
    assert correct(SINGLE, P, Y).tolist() == [True, False]
    assert correct(MULTIPLE, np.array([[0.9, 0.1], [0.9, 0.7]]), Y).tolist() == [True, False]


def test_brier():
    np.testing.assert_allclose(brier_scores(P, Y), [0.02, 0.72])


def test_calibration_error():
    sure = np.array([[1.0, 0.0]] * 4)
    right = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    assert calibration_error(SINGLE, sure, right) == pytest.approx(0.25)
    assert calibration_error(SINGLE, np.array([[0.75, 0.25]] * 4), right) == pytest.approx(0.0)


def test_annotator_mean_weighs_annotators_equally():
    p = np.array([[0.9, 0.1]] * 4)
    y = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    figures = summarise(SINGLE, p, y, np.array([0, 0, 0, 5]))
    assert figures["accuracy"] == 0.75
    assert figures["accuracy_annotator_mean"] == 0.5
    assert figures["annotators"] == 2
    assert summarise(SINGLE, p[:0], y[:0], np.array([], int)) == {"votes": 0}


def test_interval_covers_the_truth_and_widens_with_clusters():
    rng = np.random.default_rng(0)
    covered, plain, grouped = 0, [], []
    for _ in range(60):
        luck = np.repeat(rng.normal(size=50), 8)  # eight votes share the luck of their unit
        difference = luck + 0.1 * rng.normal(size=400)
        by_unit = paired_interval(difference, np.repeat(np.arange(50), 8))
        covered += by_unit.low <= 0.0 <= by_unit.high
        grouped.append(by_unit.high - by_unit.low)
        alone = paired_interval(difference, np.arange(400))
        plain.append(alone.high - alone.low)
    assert covered >= 51
    assert np.mean(grouped) > 2 * np.mean(plain)


@pytest.mark.parametrize("clusters", [2, 5, 10, 20])
def test_interval_keeps_its_level_with_few_clusters(clusters):
    rng = np.random.default_rng(clusters)
    cluster = np.repeat(np.arange(clusters), 3)
    low = [
        paired_interval(np.repeat(rng.normal(size=clusters), 3) + 0.1 * rng.normal(size=3 * clusters), cluster).low
        for _ in range(1500)
    ]
    assert np.mean(np.array(low) > 0.0) < 0.04  # nominal: 0.025


def test_interval_of_next_to_nothing():
    assert paired_interval(np.empty(0), np.empty(0, int)).mean == 0.0
    single = paired_interval(np.array([0.3, 0.5]), np.array([4, 4]))
    assert (single.low, single.high) == (-np.inf, np.inf)
