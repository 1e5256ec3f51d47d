"""Leaving out queries that nobody asks about changes nothing for the others."""

import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.qumab.asked import Asked
from model.qumab.labels import label_tokens
from model.qumab.network import QueryNetwork

B, A, T, D, C = 5, 9, 7, 20, 3
CPU = torch.device("cpu")
ROW, WHO = np.array([0, 0, 0, 2, 3, 3]), np.array([1, 4, 8, 9, 0, 5])  # 9 is the generic query, task 1 and 4 have none


def _asked():
    return Asked.of([(ROW[:2], WHO[:2]), (ROW[1:], WHO[1:])], B, A + 1, CPU)


def test_each_task_has_its_queries_and_the_generic_one():
    asked = _asked()
    found = [sorted(asked.query[asked.task == task].tolist()) for task in range(B)]
    assert found == [[1, 4, 8, 9], [9], [9], [0, 5, 9], [9]]
    x = torch.arange(2.0 * B * (A + 1) * 3).view(2, B, A + 1, 3)
    picked = asked.pick(x)
    assert torch.equal(picked[:, 0], x[:, asked.task, asked.query])
    assert asked.pad(picked).shape == (2, B, 4, 3) and torch.equal(asked.unpad(asked.pad(picked)), picked)
    assert torch.equal(asked.others_blank(asked.spread(picked)), x * asked.these[..., None])
    assert torch.equal(asked.pick(x[:, :1])[:, 0], x[:, 0, asked.query])  # queries that are the same for all tasks


def test_where_most_are_asked_nothing_is_left_out():
    row, who = np.divmod(np.arange(B * A), A)
    assert Asked.of([(row, who)], B, A + 1, CPU) is None


@pytest.mark.parametrize(("blocks", "self_attention"), [(1, True), (2, True), (2, False)])
def test_those_asked_are_answered_as_if_all_were(blocks, self_attention):
    config = NetworkConfig(width=16, blocks=blocks, self_attention=self_attention)
    network = QueryNetwork(2, A, C, D, config, torch.Generator().manual_seed(0))
    torch.nn.init.normal_(network.heads.own)
    tokens = torch.randn(B, T, D, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(T) < torch.tensor([7, 3, 5, 2, 6])[:, None]
    labels = label_tokens(ROW, WHO, np.eye(C)[WHO % C], np.ones(len(ROW)), B, CPU)
    asked = _asked()
    parameters = list(network.parameters())
    whole, part = (network.both(tokens, mask, [labels], asked=each) for each in (None, asked))
    for one, other in zip(whole, part, strict=True):
        one = one * asked.these[..., None]
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
        gradients = [
            torch.autograd.grad(x.square().sum(), parameters, retain_graph=True, allow_unused=True)
            for x in (one, other)
        ]
        for first, second in zip(*gradients, strict=True):
            assert (first is None) == (second is None)
            if first is not None:
                torch.testing.assert_close(second, first, rtol=1e-3, atol=1e-4)
