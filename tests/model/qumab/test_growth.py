import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.data.spaces import MultipleChoice, SingleChoice
from model.qumab.batches import TokenStore
from model.qumab.growth import grow, new_network
from model.qumab.slots import lay_out

D = 6


@pytest.fixture
def store():
    rng = np.random.default_rng(0)
    return TokenStore(
        ["u"], lambda units: [rng.normal(size=(3, D)).astype(np.float16)], trained=np.ones(1, bool), resident_mb=1,
        device=torch.device("cpu"),
    )


def _priors(slots, people, members=2):
    rng = np.random.default_rng(1)
    return [
        {name: rng.normal(size=(people + 1, len(slot.space.classes))) for name, slot in slots.items()}
        for _ in range(members)
    ]


def _out(network):
    tokens = torch.randn(4, 5, D, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        return network(tokens, torch.ones(4, 5, dtype=torch.bool))


def _learned(store, spaces, head):
    """A network that has moved away from where it started."""
    slots, config = lay_out(spaces), NetworkConfig(width=16, head=head)
    network = new_network(3, slots, _priors(slots, 3), store, config, seed=0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.1, generator=torch.Generator().manual_seed(2)))
    return network, slots, config


SPACES = {"c": SingleChoice(("a", "b")), "m": MultipleChoice(("p",))}


@pytest.mark.parametrize("head", ["full", "lowrank", "shared"])
def test_growing_by_nothing_changes_nothing(store, head):
    old, slots, config = _learned(store, SPACES, head)
    fresh = new_network(3, slots, _priors(slots, 3), store, config, seed=9)
    torch.testing.assert_close(_out(grow(old, slots, fresh, slots)), _out(old))


@pytest.mark.parametrize("head", ["full", "lowrank", "shared"])
def test_a_new_annotator_starts_as_the_generic_one_and_old_ones_stay_close(store, head):
    old, slots, config = _learned(store, SPACES, head)
    fresh = new_network(4, slots, _priors(slots, 4), store, config, seed=9)
    before, after = _out(old), _out(grow(old, slots, fresh, slots))
    torch.testing.assert_close(after[:, :, 3], after[:, :, 4])
    moved = (after[:, :, [0, 1, 2, 4]] - before).abs().max()
    apart = (before[:, :, 0] - before[:, :, 1]).abs().max()
    assert moved < 0.2 * apart


def test_a_new_class_in_the_middle_keeps_the_odds_of_old_ones(store):
    old, old_slots, config = _learned(store, SPACES, "full")
    slots = lay_out({"c": SingleChoice(("a", "aa", "b")), "m": MultipleChoice(("p",)), "new": SingleChoice(("x", "y"))})
    fresh = new_network(3, slots, _priors(slots, 3), store, config, seed=9)
    before, after = _out(old), _out(grow(old, old_slots, fresh, slots))
    torch.testing.assert_close(after[..., [0, 2, 3]], before, rtol=1e-4, atol=1e-5)
    assert torch.isfinite(after).all()
    assert after.shape[-1] == 6


def test_an_untrained_network_answers_about_the_prior(store):
    slots = lay_out(SPACES)
    priors = _priors(slots, 3)
    out = _out(new_network(3, slots, priors, store, NetworkConfig(width=16, pooled_path=True), seed=0))
    for member, prior in enumerate(priors):
        expected = torch.from_numpy(prior["c"]).float()
        assert (out[member, :, :, :2] - expected).abs().max() < 0.6
