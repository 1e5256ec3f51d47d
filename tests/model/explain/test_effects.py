import numpy as np
import pytest

from model.data.scores import to_probabilities
from model.explain.effects import lead_over_others, leads, mean_effects, mean_interval, word_effects
from model.explain.explanation import explain
from tests.model.explain.test_explanation import PLACES, SPACES, committee, tokens  # noqa: F401


def test_an_effect_is_what_leaving_a_word_out_everywhere_takes_away(committee, tokens):  # noqa: F811
    found = word_effects(committee, tokens, PLACES, [2, 0], [[0], [1, 3]])
    for name, space in SPACES.items():
        whole = to_probabilities(space, committee.scores([tokens])[name])[0, [2, 0]]
        rest = tokens[~np.isin(PLACES.of_token, [1, 3])]
        less = to_probabilities(space, committee.scores([rest])[name])[0, [2, 0]]
        np.testing.assert_allclose(found[name][:, 1], whole - less, atol=1e-5)
        assert found[name].shape == (2, 2, len(space.classes))


def test_leads_are_of_each_annotator_s_own_order(committee, tokens):  # noqa: F811
    """Where there is one annotator, their order is everybody's; by chance, own order leads on average."""
    alone = leads(committee, tokens, PLACES, [1], rng=np.random.default_rng(0))
    both = leads(committee, tokens, PLACES, [1, 2], rng=np.random.default_rng(0))
    for name in SPACES:
        assert alone[name].everybody == pytest.approx(0, abs=1e-6)
        assert both[name].chance[0] == pytest.approx(alone[name].chance[0], abs=1e-5)
        assert both[name].chance.shape == both[name].everybody.shape == (2,)
    whole = explain(committee, tokens, PLACES, [1], draws=4)
    assert np.isfinite(whole.controls["tone"].faithfulness.attribution).all()


def test_means_over_tasks_and_their_certainty():
    certain = [np.array([[0.4, -0.4], [0.0, 0.0]])] * 5
    mean, error, tasks = mean_effects({"word": certain})["word"]
    assert tasks == 5 and error.max() == pytest.approx(0) and lead_over_others(mean)[0] == pytest.approx([0.4, -0.4])
    assert np.isinf(mean_effects({"once": certain[:1]})["once"][1]).all()
    assert not lead_over_others(np.ones((1, 2))).any()


def test_intervals():
    assert mean_interval(np.ones(9)) == (1.0, 1.0, 1.0)
    mean, low, high = mean_interval(np.array([0.0, 1.0]))
    assert mean == 0.5 and low < 0 < 1 < high
    assert mean_interval(np.array([1.0]))[1:] == (-np.inf, np.inf) and mean_interval(np.empty(0))[0] == 0.0
