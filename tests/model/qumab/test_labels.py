"""Label conditioning: votes are read by everybody but their givers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.data.spaces import MultipleChoice, SingleChoice
from model.qumab.labels import GivenColumns, label_tokens, tokens_of
from model.qumab.network import QueryNetwork
from model.qumab.slots import lay_out

B, T, D, A, M = 3, 5, 10, 4, 2
SLOTS = lay_out({"one": SingleChoice(("x", "y", "z")), "many": MultipleChoice(("p", "q"))})
C = 5
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network():
    rng = torch.Generator().manual_seed(0)
    made = QueryNetwork(M, A, C, D, NetworkConfig(width=16, heads=4), rng)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.2, generator=rng))
    return made.eval()


@pytest.fixture(scope="module")
def content():
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(1)), torch.ones(B, T, dtype=torch.bool)


def _given(votes):
    """Tokens of (task, giver, class) votes of the first control."""
    row, giver, label = (np.array(column) for column in zip(*votes, strict=True))
    return label_tokens(row, giver, np.eye(C, dtype=np.float32)[label], np.ones(len(row)), B, CPU)


def _read(network, content, labels):
    with torch.no_grad():
        return network.both(*content, [labels])


def test_a_vote_moves_everybody_but_its_giver(network, content):
    alone, first = _read(network, content, _given([(0, 1, 0), (0, 2, 1)]))
    _, second = _read(network, content, _given([(0, 1, 2), (0, 2, 1)]))
    moved = (first - second)[:, 0].abs().amax((0, 2))
    assert moved[1] == 0.0
    assert (moved[[0, 2, 3, 4]] > 1e-4).all()
    torch.testing.assert_close(first[:, 1:], alone[:, 1:])  # nobody voted on the other tasks


def test_an_unknown_givers_vote_is_hidden_from_the_generic_query(network, content):
    _, first = _read(network, content, _given([(0, A, 0)]))
    alone, second = _read(network, content, _given([(0, A, 2)]))
    assert (first - second)[:, 0, A].abs().max() == 0.0
    assert (first - second)[:, 0, :A].abs().max() > 1e-4
    torch.testing.assert_close(first[:, 0, A], alone[:, 0, A])


def test_no_gradient_from_a_vote_to_its_giver(network, content):
    labels = _given([(0, 1, 0), (0, 2, 1)])
    labels.y.requires_grad_(True)
    _, read = network.both(*content, [labels])
    slope = torch.autograd.grad(read[:, 0, 1].square().sum(), labels.y)[0]  # (B, G, C)
    assert slope[0, 0].abs().max() == 0.0 and slope[0, 1].abs().max() > 0.0


def test_neither_order_nor_other_tasks_matter(network, content):
    votes = [(0, 1, 0), (0, 2, 1), (2, 0, 2)]
    _, whole = _read(network, content, _given(votes))
    _, turned = _read(network, content, _given(votes[::-1]))
    _, part = _read(network, content, _given(votes[:2]))
    torch.testing.assert_close(whole, turned)
    torch.testing.assert_close(whole[:, 0], part[:, 0])


def test_permuting_annotators_permutes_what_they_read(network, content):
    order = torch.tensor([2, 0, 3, 1])
    turned = QueryNetwork(M, A, C, D, network.config, torch.Generator())
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    rows = torch.cat([order, torch.tensor([A])])
    state["deviation"] = state["deviation"][:, order]
    for name in ("heads.own", "heads.own_bias"):
        state[name] = state[name][:, rows]
    turned.load_state_dict(state)
    place = np.argsort(order.numpy())
    _, expected = _read(network, content, _given([(0, 1, 0), (1, 2, 1)]))
    _, found = _read(turned, content, _given([(0, place[1], 0), (1, place[2], 1)]))
    torch.testing.assert_close(found, expected[:, :, rows], rtol=1e-4, atol=1e-5)


def test_content_alone_is_the_same_with_and_without_votes(network, content):
    with torch.no_grad():
        alone = network(*content)
        both = network.both(*content, [_given([(0, 1, 0)]), None])
    assert torch.equal(both[0], alone) and torch.equal(both[2], alone)


def test_tokens_of_several_controls():
    columns = {
        "one": GivenColumns(row=np.array([1]), giver=np.array([3]), y=np.eye(3)[[2]], trust=np.array([0.3])),
        "many": GivenColumns(row=np.array([1, 0]), giver=np.array([0, 2]), y=np.array([[1, 0], [0, 0]]),
                             trust=np.ones(2)),
    }
    found = tokens_of(columns, SLOTS, B, CPU)
    assert found.giver.tolist() == [[2, 0], [3, 0], [0, 0]]
    assert found.y[1].tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 1, -1]]
    assert found.y[0, 0].tolist() == [0, 0, 0, -1, -1]  # a set without classes says something too
    np.testing.assert_allclose(found.log_trust[1].exp(), [0.3, 1.0], rtol=1e-6)
    assert torch.isinf(found.log_trust[2]).all()
    assert tokens_of({}, SLOTS, B, CPU) is None


def test_without_label_conditioning_there_is_no_reader():
    config = replace(NetworkConfig(width=16), labels=False, self_attention=False)
    names = [name for name, _ in QueryNetwork(M, A, C, D, config, torch.Generator()).named_parameters()]
    assert not any(name.startswith("labels") or ".among." in name for name in names)
