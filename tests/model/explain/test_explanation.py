"""The explanation of a task: equal to asking variant by variant, the same in any company, and honest about time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.data.scores import to_probabilities
from model.data.spaces import MultipleChoice, SingleChoice
from model.errors import ModelError
from model.explain.explanation import explain, likelihood
from model.explain.places import Place, Places
from model.qumab.builds import build_network
from model.qumab.committee import Committee

A, D, T = 3, 8, 6
SPACES = {"tone": SingleChoice(("a", "b", "c")), "topics": MultipleChoice(("x", "y"))}
PLACES = Places(
    places=tuple(Place(kind="text", start=at, end=at + 1) for at in range(4)), of_token=np.array([-1, 0, 1, 1, 2, 3])
)


@pytest.fixture(scope="module", params=["light", "qformer"])
def committee(request):
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    config = replace(NetworkConfig(width=16, heads=4, blocks=2), build=request.param)
    network = build_network(2, A, 5, D, config, rng)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.4, generator=rng))
    return Committee(network, SPACES)


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(3).standard_normal((T, D)).astype(np.float16)


def test_attributions_are_those_of_leaving_places_out_one_by_one(committee, tokens):
    found = explain(committee, tokens, PLACES, [2, 0])
    whole = committee.scores([tokens])
    for name, space in SPACES.items():
        p = to_probabilities(space, whole[name])[0, [2, 0]]
        expected = likelihood(space, p, found.controls[name].answer)
        np.testing.assert_allclose(found.controls[name].probability, expected, atol=1e-6)
        for place in range(len(PLACES)):
            less = committee.scores([tokens[PLACES.of_token != place]])[name]
            left = likelihood(space, to_probabilities(space, less)[0, [2, 0]], found.controls[name].answer)
            np.testing.assert_allclose(found.controls[name].attribution[:, place], expected - left, atol=1e-5)


def test_answers_are_the_most_probable_ones(committee, tokens):
    found = explain(committee, tokens, PLACES, range(A))
    p = {name: to_probabilities(space, committee.scores([tokens])[name])[0, :A] for name, space in SPACES.items()}
    assert (found.controls["tone"].answer.argmax(1) == p["tone"].argmax(1)).all()
    assert ((found.controls["topics"].answer > 0.5) == (p["topics"] >= 0.5)).all()


def test_asking_for_fewer_annotators_changes_nothing_for_them(committee, tokens):
    both, one = explain(committee, tokens, PLACES, [0, 1]), explain(committee, tokens, PLACES, [1])
    np.testing.assert_allclose(both.attention[1], one.attention[0], atol=1e-6)
    np.testing.assert_allclose(both.pooled, one.pooled, atol=1e-6)
    for name in SPACES:
        for kind in ("attention", "pooled", "attribution"):
            mine = getattr(both.controls[name].faithfulness, kind)[1]
            assert mine == pytest.approx(getattr(one.controls[name].faithfulness, kind)[0], abs=1e-5)


def test_attention_of_places_leaves_out_special_tokens(committee, tokens):
    found = explain(committee, tokens, PLACES, range(A))
    assert found.attention.shape == (A, 4) and (found.attention.sum(1) < 1).all() and (found.attention >= 0).all()


def test_what_matters_comes_first_in_its_own_order(committee, tokens):
    """Order by attribution beats chance where one place carries everything."""
    loud = tokens.copy()
    loud[4] *= 30
    faithful = [explain(committee, loud, PLACES, range(A)).controls[name].faithfulness.attribution for name in SPACES]
    assert np.mean(faithful) > 0


def test_without_time_answers_and_attention_remain(committee, tokens):
    found = explain(committee, tokens, PLACES, [0], in_time=lambda: False)
    assert found.attention.shape == (1, 4)
    assert all(each.attribution is None and each.faithfulness is None for each in found.controls.values())


def test_one_place_cannot_be_compared_and_none_cannot_be_explained(committee, tokens):
    one = Places(places=PLACES.places[:1], of_token=np.array([-1, 0, 0, 0, 0, 0]))
    assert explain(committee, tokens, one, [0]).controls["tone"].attribution is None
    with pytest.raises(ModelError, match="pointed at"):
        explain(committee, tokens, Places(places=(), of_token=np.full(T, -1)), [0])
