import numpy as np
import pytest

from model.errors import ModelError
from model.explain.deletion import deletion_curve


def _curve(weights, matters):
    """An answer that rests on some tokens alone: its probability is the share of them that stay."""
    calls = []

    def score(masks):
        calls.append(masks)
        return masks[:, matters].mean(1)

    curve = deletion_curve(score, np.asarray(weights, float), rng=np.random.default_rng(0), draws=40)
    assert len(calls) == 1 and calls[0][0].all() and calls[0].any(1).all()
    return curve


def test_weights_on_what_matters_are_faithful_and_weights_elsewhere_are_not():
    matters = np.arange(20) < 4
    good, bad = _curve(matters, matters), _curve(~matters, matters)
    assert good.start == 1.0
    assert np.allclose(good.by_weight, [0.5, 0, 0, 0, 0])
    assert np.allclose(good.by_chance, [0.9, 0.8, 0.7, 0.5, 0.3], atol=0.08)
    assert good.faithfulness > 0.4 and bad.faithfulness < -0.2


def test_random_weights_are_as_good_as_chance():
    matters = np.arange(20) < 4
    rng = np.random.default_rng(1)
    mean = np.mean([_curve(rng.random(20), matters).faithfulness for _ in range(60)])
    assert abs(mean) < 0.05


def test_what_cannot_be_explained():
    with pytest.raises(ModelError, match="at least two tokens"):
        deletion_curve(lambda masks: np.ones(len(masks)), np.ones(1), rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="finite"):
        deletion_curve(lambda masks: np.ones(len(masks)), np.array([1.0, np.nan]), rng=np.random.default_rng(0))
