from dataclasses import replace

import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.qumab.attention import CrossAttention, dropout, folding_pays, keep_mask
from model.qumab.network import QueryNetwork

B, T, D, A, C, M = 3, 6, 10, 4, 5, 2
CONFIG = NetworkConfig(width=16, heads=4)


def _rng(seed=0):
    return torch.Generator().manual_seed(seed)


def _network(**changes):
    network = QueryNetwork(M, A, C, D, replace(CONFIG, **changes), _rng())
    with torch.no_grad():  # heads start at zero; give every part something to say
        for parameter in network.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.2, generator=_rng(1)))
    return network


def _batch():
    tokens = torch.randn(B, T, D, generator=_rng(2))
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[1, 4:] = False
    mask[2, 1:] = False
    return tokens, mask


@pytest.mark.parametrize("b", [1, B])
def test_folding_weights_into_the_query_side_changes_nothing(b):
    layer = CrossAttention(M, 16, 4, D, _rng())
    x = torch.randn(M, b, A, 16, generator=_rng(3))
    tokens, mask = _batch()
    hidden = torch.zeros(B, T).masked_fill(~mask, -torch.inf)
    folded, plain = layer(x, tokens, hidden, fold=True), layer(x, tokens, hidden, fold=False)
    assert folded.shape == (M, B, A, 16)
    torch.testing.assert_close(folded, plain, rtol=1e-4, atol=1e-5)


def test_folding_is_chosen_when_it_is_cheaper():
    assert folding_pays(queries=7, heads=4, tokens=32, token_width=384, width=128)
    assert not folding_pays(queries=300, heads=4, tokens=32, token_width=384, width=128)


@pytest.mark.parametrize("head", ["full", "lowrank", "shared"])
@pytest.mark.parametrize("pooled_path", [True, False])
def test_padding_changes_nothing(head, pooled_path):
    network = _network(head=head, pooled_path=pooled_path)
    tokens, mask = _batch()
    expected = network(tokens, mask)
    assert expected.shape == (M, B, A + 1, C)
    longer = torch.cat([tokens, 1e4 * torch.randn(B, 3, D, generator=_rng(4))], 1)
    longer[1, 4:], longer[2, 1:] = 777.0, -777.0
    found = network(longer, torch.cat([mask, torch.zeros(B, 3, dtype=torch.bool)], 1))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_tasks_of_a_batch_do_not_influence_each_other():
    network = _network()
    tokens, mask = _batch()
    together = network(tokens, mask)
    for row in range(B):
        alone = network(tokens[row : row + 1], mask[row : row + 1])
        torch.testing.assert_close(alone[:, 0], together[:, row], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", ["full", "lowrank", "shared"])
def test_permuting_annotators_permutes_the_output(head):
    network = _network(head=head)
    tokens, mask = _batch()
    before = network(tokens, mask)
    order = torch.tensor([2, 0, 3, 1])
    queries = torch.cat([order, torch.tensor([A])])
    with torch.no_grad():
        network.deviation.copy_(network.deviation[:, order].clone())
        for name in ("own_bias", "own", "mix"):
            if hasattr(network.heads, name):
                part = getattr(network.heads, name)
                part.copy_(part[:, queries].clone())
    torch.testing.assert_close(network(tokens, mask), before[:, :, queries], rtol=1e-4, atol=1e-5)


def test_members_do_not_influence_each_other():
    network = _network()
    tokens, mask = _batch()
    before = network(tokens, mask).detach()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter[1] += 0.5
    after = network(tokens, mask)
    torch.testing.assert_close(after[0], before[0])
    assert not torch.allclose(after[1], before[1], atol=1e-2)


def test_annotators_differ_and_read_different_tokens():
    network = _network()
    tokens, mask = _batch()
    out = network(tokens, mask)
    assert out.std(2).min() > 1e-4
    changed = tokens.clone()
    changed[0, 3] += 3.0
    moved = (network(changed, mask) - out).abs().amax(-1)
    assert moved[:, 0].min() > 1e-4
    assert moved[:, 1:].max() == 0.0


def test_dropout_needs_a_generator_and_keeps_the_mean():
    x = torch.ones(4000)
    assert torch.equal(dropout(x, 0.5, None), x)
    dropped = dropout(x, 0.25, _rng())
    assert abs(float(dropped.mean()) - 1.0) < 0.05
    assert abs(float((dropped == 0).float().mean()) - 0.25) < 0.03
    np.testing.assert_array_equal(keep_mask((7, 3), 0.5, _rng(5)), keep_mask((7, 3), 0.5, _rng(5)))


def test_prediction_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    network = _network()
    network(*_batch(), rng=_rng(9))
    assert torch.equal(torch.get_rng_state(), before)
