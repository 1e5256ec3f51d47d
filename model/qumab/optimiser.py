"""AdamW with warm-up and cosine, gradient clipping and weight averaging, over one flat row of parameters a member.

    m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   p <- p - lr (m' / (sqrt(v') + eps) + decay p)

A query network has dozens of small parameters; as one matrix a step is a few operations instead of hundreds. The
network's parameters become views of it, those with weight decay first. Members are clipped each by their own norm.

Shape legend: M members, P parameters of one member.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor, nn

_BETAS = (0.9, 0.99)
_EPS = 1e-8


class FlatAdamW:
    """Owns the parameters of a network, all of which have a leading M.

    `values`, `averaged` (M, P).
    """

    def __init__(
        self, network: nn.Module, *, steps: int, learning_rate: float, weight_decay: float, undecayed: Collection[str],
        clip: float, ema: float,
    ) -> None:
        decayed, others = list[nn.Parameter](), list[nn.Parameter]()
        for name, parameter in network.named_parameters():
            (decayed if parameter.ndim >= 3 and name not in undecayed else others).append(parameter)
        self._parameters = [*decayed, *others]
        self._decayed = sum(parameter[0].numel() for parameter in decayed)  # they come first
        self.values = torch.cat([parameter.detach().flatten(1) for parameter in self._parameters], 1)
        start = 0
        for parameter in self._parameters:
            size = parameter[0].numel()
            parameter.data = self.values[:, start : start + size].view(parameter.shape)
            start += size
        self.averaged = self.values.clone()
        self._first, self._second = torch.zeros_like(self.values), torch.zeros_like(self.values)
        self._steps, self._done = steps, 0
        self._rate, self._decay, self._clip, self._ema = learning_rate, weight_decay, clip, ema

    def step(self, loss: Tensor) -> None:
        """One update from the gradient of a scalar loss, and of the averaged weights."""
        found = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        pairs = zip(found, self._parameters, strict=True)
        self._update(torch.cat([(torch.zeros_like(p) if g is None else g).flatten(1) for g, p in pairs], 1))

    @torch.no_grad()
    def _update(self, g: Tensor) -> None:
        g.mul_(self._clip / g.norm(dim=1, keepdim=True).clamp(min=self._clip))
        rate = self._rate * warm_cosine(self._done, self._steps)
        self._done += 1
        # Two passes each, which are several times faster than lerp_ on a CPU.
        self._first.mul_(_BETAS[0]).add_(g, alpha=1.0 - _BETAS[0])
        self._second.mul_(_BETAS[1]).addcmul_(g, g, value=1.0 - _BETAS[1])
        size = (self._second / (1.0 - _BETAS[1] ** self._done)).sqrt_().add_(_EPS)
        self.values[:, : self._decayed].mul_(1.0 - rate * self._decay)
        self.values.addcdiv_(self._first, size, value=-rate / (1.0 - _BETAS[0] ** self._done))
        self.averaged.mul_(self._ema).add_(self.values, alpha=1.0 - self._ema)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange current and averaged weights in the network; call again to go on training."""
        kept = self.values.clone()
        self.values.copy_(self.averaged)
        self.averaged.copy_(kept)

    @torch.no_grad()
    def release(self, values: Tensor) -> None:
        """End: set the network to `values` (M, P), give its parameters memory of their own again."""
        self.values.copy_(values)
        for parameter in self._parameters:
            parameter.data = parameter.data.clone()


def warm_cosine(step: int, steps: int) -> float:
    """Share of the learning rate: linear warm-up over the first fifth of the steps, then a cosine to nothing."""
    warm = max(1, steps // 5)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
