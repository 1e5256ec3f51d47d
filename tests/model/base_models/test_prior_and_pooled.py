"""The two naive base models: annotator prior, pooled content + annotator bias."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from model.base_models.pooled import fit_pooled
from model.base_models.prior import fit_prior
from model.data import scores as s
from model.data.dataset import Targets
from model.data.spaces import MultipleChoice, SingleChoice

SINGLE, MULTIPLE = SingleChoice(("a", "b", "c")), MultipleChoice(("p", "q"))


def _targets(space, unit, annotator, y, weight=None):
    n = len(unit)
    return Targets(
        space=space, unit=np.asarray(unit), annotator=np.asarray(annotator), y=np.asarray(y, np.float32),
        weight=np.ones(n, np.float32) if weight is None else np.asarray(weight, np.float32), scored=np.ones(n, bool),
    )


def test_prior_by_hand():
    y = [[1, 0, 0]] * 3 + [[0, 1, 0]]
    table = fit_prior(_targets(SINGLE, range(4), [0, 0, 0, 1], y), 3, 4.0)
    everybody = (np.array([3, 1, 0]) + 1 / 3) / 5
    np.testing.assert_allclose(table[3], everybody)
    np.testing.assert_allclose(table[2], everybody)  # never voted
    np.testing.assert_allclose(table[0], (np.array([3, 0, 0]) + 4 * everybody) / 7)
    np.testing.assert_allclose(table.sum(1), 1.0)


def test_prior_of_several_choices_stays_off_the_ends():
    table = fit_prior(_targets(MULTIPLE, [0, 1], [0, 0], [[1, 0], [1, 0]]), 1, 4.0)
    assert ((table > 0) & (table < 1)).all()
    assert table[0, 0] > 0.8 > 0.2 > table[0, 1]


def test_echoes_count_less_in_the_prior():
    y = [[1, 0, 0], [0, 1, 0]]
    table = fit_prior(_targets(SINGLE, [0, 1], [0, 0], y, weight=[1.0, 0.3]), 1, 4.0)
    assert table[0, 0] > table[0, 1]


@pytest.mark.parametrize("space", [SINGLE, MULTIPLE])
def test_scores_and_probabilities_are_inverse(space):
    p = np.array([[0.2, 0.5, 0.3]]) if space is SINGLE else np.array([[0.2, 0.9]])
    np.testing.assert_allclose(s.to_probabilities(space, s.to_scores(space, p)), p)


@pytest.mark.parametrize("space", [SINGLE, MULTIPLE])
def test_slope_is_the_derivative_of_the_loss(space):
    rng = np.random.default_rng(0)
    y = np.eye(3)[[1]] if space is SINGLE else np.array([[1.0, 0.0]])
    for _ in range(5):
        x = rng.normal(size=y.size)
        error = check_grad(
            lambda flat: s.losses(space, flat[None], y)[0], lambda flat: s.loss_and_slope(space, flat[None], y)[1][0], x
        )
        assert error < 1e-5


@pytest.mark.parametrize("space", [SINGLE, MULTIPLE])
def test_pooled_recovers_content_and_leniency(space):
    rng = np.random.default_rng(1)
    units, people, classes = 900, 3, len(space.classes)
    features = rng.normal(size=(units, 5)) * 3 + 2
    weight, bias = rng.normal(size=(5, classes)) / 3, rng.normal(size=(people, classes))
    unit, annotator = np.repeat(np.arange(units), people), np.tile(np.arange(people), units)
    truth = ((features - 2) @ weight)[unit] + bias[annotator]
    p = s.to_probabilities(space, truth)
    u = rng.random((len(p), 1 if space is SINGLE else classes))
    y = np.eye(3)[(np.cumsum(p, -1) < u).sum(-1)] if space is SINGLE else u < p
    model = fit_pooled(features, _targets(space, unit, annotator, y), people, 1.0)
    found = s.to_probabilities(space, model.of_votes(features, _targets(space, unit, annotator, y)))
    assert np.abs(found - p).mean() < 0.05
    np.testing.assert_allclose(
        model.of_units(features)[unit, annotator], model.of_votes(features, _targets(space, unit, annotator, y))
    )
    assert model.bias.shape == (people + 1, classes)


def test_a_start_changes_only_the_speed():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(40, 4))
    targets = _targets(SINGLE, np.arange(40), np.zeros(40, int), np.eye(3)[rng.integers(0, 3, 40)])
    cold = fit_pooled(features, targets, 1, 10.0)
    warm = fit_pooled(features, targets, 1, 10.0, fit_pooled(features, targets, 1, 100.0))
    np.testing.assert_allclose(cold.weight, warm.weight, atol=2e-3)
