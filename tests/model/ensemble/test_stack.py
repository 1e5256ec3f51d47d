import numpy as np
import pytest

from model.base_models.registry import starting_weights
from model.data.scores import losses, to_probabilities
from model.data.spaces import MultipleChoice, SingleChoice
from model.ensemble.stack import fit_stack

SPACE = SingleChoice(("a", "b"))
STARTING = starting_weights(observed=False)


def _votes(n, rng, sharpness=1.0):
    """True scores, votes drawn from them, annotators."""
    truth = np.zeros((n, 2))
    truth[:, 1] = 2.0 * rng.normal(size=n)
    p = to_probabilities(SPACE, truth * sharpness)
    return truth, np.eye(2)[(rng.random(n) < p[:, 1]).astype(int)], rng.integers(0, 3, n)


def _fit(scores_of, annotator, y, space=SPACE, **more):
    return fit_stack(
        space, scores_of, annotator, y, np.ones(len(y)), 3, centre_of=STARTING,
        **({"stack_strength": 20.0, "bias_strength": 20.0} | more)
    )


def test_without_votes_it_is_the_prior():
    stack = _fit({name: np.empty((0, 2)) for name in STARTING}, np.empty(0, int), np.empty((0, 2)))
    assert stack.weights == pytest.approx(STARTING)
    assert stack.temperature == pytest.approx(1.0)
    np.testing.assert_allclose(stack.bias, 0.0)


def test_the_informative_base_model_wins_with_many_votes_and_not_with_few():
    rng = np.random.default_rng(0)
    weights = []
    for n in (10, 3000):
        truth, y, annotator = _votes(n, rng)
        noise = {name: rng.normal(size=(n, 2)) for name in ("prior", "network")}
        weights.append(_fit({"pooled": truth, **noise}, annotator, y).weights["pooled"])
    assert weights[1] > 0.9
    assert abs(weights[0] - STARTING["pooled"]) < 0.3


def test_temperature_undoes_overconfidence():
    truth, y, annotator = _votes(4000, np.random.default_rng(1))
    stack = _fit({"network": 3.0 * truth}, annotator, y)
    assert stack.temperature == pytest.approx(3.0, rel=0.15)
    pooled = stack.pool_votes({"network": 3.0 * truth}, annotator)
    assert losses(SPACE, pooled, y).mean() < losses(SPACE, 3.0 * truth, y).mean()


def test_bias_of_an_annotator_is_found_and_shrunken():
    rng = np.random.default_rng(2)
    n = 3000
    annotator = rng.integers(0, 2, n)  # annotator 2 never votes
    p = np.where(annotator == 0, 0.8, 0.2)
    y = np.eye(2)[(rng.random(n) < p).astype(int)]
    stack = _fit({"network": np.zeros((n, 2))}, annotator, y)
    found = to_probabilities(SPACE, stack.pool({"network": np.zeros((1, 4, 2))}))[0, :, 1]
    assert found[0] == pytest.approx(0.8, abs=0.05) and found[1] == pytest.approx(0.2, abs=0.05)
    assert found[2] == found[3] == 0.5
    strong = _fit({"network": np.zeros((n, 2))}, annotator, y, bias_strength=1e6)
    assert np.abs(strong.bias).max() < 0.01


def test_several_choices():
    rng = np.random.default_rng(3)
    space = MultipleChoice(("p", "q"))
    truth = 2.0 * rng.normal(size=(3000, 2))
    y = rng.random(truth.shape) < to_probabilities(space, truth)
    stack = _fit({"network": 2.0 * truth, "prior": np.zeros_like(truth)}, rng.integers(0, 3, 3000), y, space)
    assert stack.temperature / stack.weights["network"] == pytest.approx(2.0, rel=0.15)
