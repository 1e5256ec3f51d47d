from dataclasses import replace

import pytest
import torch

from model.config import NetworkConfig
from model.explain.attention import attention
from model.qumab.builds import build_network

B, T, D, A = 3, 7, 10, 4
CONFIG = NetworkConfig(width=16, heads=4)


def _network(**changes):
    rng = torch.Generator().manual_seed(0)
    network = build_network(2, A, 3, D, replace(CONFIG, **changes), rng)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.2, generator=rng))
    return network


def _batch():
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[1, 3:] = False
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(1)), mask


@pytest.mark.parametrize("build", ["light", "qformer"])
@pytest.mark.parametrize("pooled_path", [True, False])
def test_rows_are_shares_of_the_real_tokens(build, pooled_path):
    tokens, mask = _batch()
    found = attention(_network(build=build, pooled_path=pooled_path), tokens, mask)
    assert found.shape == (B, A + 1, T)
    assert (found >= 0).all() and not found[1, :, 3:].any()
    if pooled_path:
        assert (found.sum(-1) < 1).all() and (found.sum(-1) > 0).all()
    else:
        torch.testing.assert_close(found.sum(-1), torch.ones(B, A + 1))


def test_what_is_told_is_what_the_network_does():
    """A network of one block and one head whose value and output matrices pass one token dimension on."""
    network = _network(blocks=1, heads=1, pooled_path=False)
    block = network.blocks[0]
    tokens, mask = _batch()
    caught = {}
    block.read.register_forward_hook(lambda layer, args, kwargs, out: caught.update(out=out), with_kwargs=True)
    with torch.no_grad():
        block.read.value.zero_()
        block.read.value[:, 0, :D] = torch.eye(D)
        block.read.out.copy_(torch.eye(16).expand(2, -1, -1))
    network(tokens, mask)
    weights = attention(network, tokens, mask)
    read = caught["out"].mean(0)[..., :D]  # (B, Q, D), the mean over members as in the maps
    torch.testing.assert_close(weights @ (tokens * mask[..., None]), read, rtol=0, atol=1e-5)


def test_permuting_annotators_permutes_rows():
    network, (tokens, mask) = _network(), _batch()
    before, order = attention(network, tokens, mask), [3, 1, 0, 2]
    with torch.no_grad():
        network.deviation.copy_(network.deviation[:, order])
    torch.testing.assert_close(attention(network, tokens, mask), before[:, [*order, A]], rtol=0, atol=1e-6)
