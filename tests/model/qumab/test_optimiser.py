import numpy as np
import pytest
import torch
from torch import nn

from model.qumab.optimiser import FlatAdamW

M = 2


class _Few(nn.Module):
    """Parameters of three kinds, those without weight decay between the others."""

    def __init__(self):
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.own = nn.Parameter(torch.randn(M, 3, 2, generator=rng))
        self.matrix = nn.Parameter(torch.randn(M, 2, 4, generator=rng))
        self.bias = nn.Parameter(torch.randn(M, 4, generator=rng))
        self.other = nn.Parameter(torch.randn(M, 5, 2, generator=rng))


def _steps(gradients, *, decay, clip):
    """All parameters after these gradients (constant rate 0.1 after one step of warm-up), by name."""
    network = _Few()
    optimiser = FlatAdamW(
        network, steps=10**6, learning_rate=0.1 * 2 * 10**5, weight_decay=decay, undecayed={"own"}, clip=clip, ema=0.9
    )  # a fifth of the steps warms up, so the rate of step n is 0.1 n
    before = {name: parameter.detach().clone().numpy() for name, parameter in network.named_parameters()}
    for gradient in gradients:
        optimiser.step(sum((getattr(network, name) * torch.tensor(g)).sum() for name, g in gradient.items()))
    return before, {name: parameter.detach().numpy() for name, parameter in network.named_parameters()}


def _adamw(p, gradients, decay):
    """The textbook, in double precision."""
    m, v = np.zeros_like(p), np.zeros_like(p)
    for n, g in enumerate(gradients, 1):
        rate = 0.1 * n
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        p = p - rate * (m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.99**n)) + 1e-8) + decay * p)
    return p


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_two_steps_are_those_of_the_textbook(decay):
    rng = np.random.default_rng(1)
    shapes = {name: tuple(parameter.shape) for name, parameter in _Few().named_parameters()}
    gradients = [{name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(2)]
    before, after = _steps(gradients, decay=decay, clip=1e9)
    for name, value in after.items():
        expected = _adamw(before[name].astype(float), [g[name] for g in gradients],
                          decay if name in ("matrix", "other") else 0.0)
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_each_member_is_clipped_by_its_own_norm():
    def moved(scale):
        gradients = [{"matrix": np.stack([np.full((2, 4), 0.01), np.full((2, 4), scale)]).astype(np.float32)},
                     {"matrix": np.full((M, 2, 4), 0.01, np.float32)}]
        before, after = _steps(gradients, decay=0.0, clip=1.0)
        return after["matrix"] - before["matrix"]

    small, large, larger = moved(0.01), moved(10.0), moved(1000.0)
    np.testing.assert_array_equal(small[0], large[0])
    np.testing.assert_allclose(large[1], larger[1], rtol=1e-5)  # both were cut to the same length
    assert not np.allclose(small[1], large[1])
