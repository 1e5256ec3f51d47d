"""Classifiers of all annotators and controls in one batched product, with shrinkage to what they share.

    logit[b, q, c] = h[b, q] . (W[c] + D[q, c]) + x[b] . V[c] + bias[c] + own[q, c]

D is the annotator's own part: a free matrix (`full`), a mixture of r common ones (`lowrank`), or nothing (`shared`, the
U-cls of the paper). `penalty` is the negative log of a Gaussian prior on the own parts, so that few votes stay close to
the shared classifier.

Shape legend: M members, B tasks, Q queries, d width, D token width, C classes of all controls side by side, r rank.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from model.config import NetworkConfig
from model.qumab.attention import normal


class Heads(nn.Module):
    """(M, B, Q, d) and the mean token (B, D) -> logits (M, B, Q, C)."""

    def __init__(
        self, members: int, queries: int, classes: int, token_width: int, config: NetworkConfig, rng: torch.Generator
    ) -> None:
        super().__init__()
        d, self.kind = config.width, config.head
        self.weight = normal((members, d, classes), 0.1 / math.sqrt(d), rng)
        self.bias = nn.Parameter(torch.zeros(members, classes))
        self.own_bias = nn.Parameter(torch.zeros(members, queries, classes))
        if config.pooled_path:
            self.pooled = nn.Parameter(torch.zeros(members, token_width, classes))
        if self.kind == "full":
            self.own = nn.Parameter(torch.zeros(members, queries, d, classes))
        elif self.kind == "lowrank":
            self.mix = normal((members, queries, config.rank), 0.3, rng)
            self.basis = normal((members, config.rank, d, classes), 0.3 / math.sqrt(d), rng)

    def forward(self, h: Tensor, mean_token: Tensor) -> Tensor:
        members, _, queries, d = h.shape
        weight = self.weight[:, None]  # (M, 1, d, C)
        if self.kind == "full":
            weight = weight + self.own
        elif self.kind == "lowrank":
            weight = weight + torch.einsum("mqr,mrdc->mqdc", self.mix, self.basis)
        logits = torch.einsum("mbqd,mqdc->mbqc", h, weight.expand(members, queries, d, -1))
        logits = logits + (self.bias[:, None] + self.own_bias)[:, None]
        if hasattr(self, "pooled"):
            logits = logits + torch.einsum("bd,mdc->mbc", mean_token, self.pooled)[:, :, None]
        return logits

    def penalty(self) -> Tensor:
        """Half the squared size of the own parts, summed over members; multiply by the precision of the prior."""
        total = self.own_bias.square().sum()
        if self.kind == "full":
            total = total + self.own.square().sum()
        elif self.kind == "lowrank":
            total = total + self.mix.square().sum() + self.basis.square().sum()
        return 0.5 * total
