"""Attention of annotator queries: among themselves, and over the tokens of a task; several networks side by side.

Cross-attention has two equal orders. With head width e and tokens X (T, D),

    plain:   softmax(q (X W_k)^T) (X W_v)        2 T D d + 2 Q T d   products a task
    folded:  softmax((q W_k^T) X^T) X, then W_v  2 Q H T D + 2 Q d D

and the folded one never projects a token, so it wins when Q H is small beside d. A bias of the keys would cancel in the
softmax and one of the values is a bias of the output, so neither exists.

Shape legend: M members, B tasks, Q queries, H heads, e = d / H, T tokens, D width of a token, d width of a query.
Queries are (M, b, Q, d); b is 1 while they do not depend on the task, then B. Every parameter has a leading M.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def keep_mask(shape: tuple[int, ...], share: float, rng: torch.Generator) -> Tensor:
    """True with probability 1 - `share` (in steps of 1/256).

    One draw of 64 bits serves eight cells, since drawing is most of what dropout costs on a CPU.
    """
    cells = math.prod(shape)
    drawn = torch.empty((cells + 7) // 8, dtype=torch.int64, device=rng.device)
    drawn.random_(-(2**63), None, generator=rng)
    return (drawn.view(torch.uint8)[:cells] >= round(share * 256)).view(shape)


def dropout(x: Tensor, share: float, rng: torch.Generator | None) -> Tensor:
    """Zero a share of `x` and scale up the rest; without a generator (prediction) nothing happens.

    The generator is handed in, since torch's own dropout draws from the global state of the process.
    """
    if rng is None or share <= 0.0:
        return x
    return x * (keep_mask(x.shape, share, rng).to(x.dtype) / (1.0 - share))


def normal(shape: tuple[int, ...], scale: float, rng: torch.Generator) -> nn.Parameter:
    """A parameter drawn from a normal distribution with a generator of its own."""
    return nn.Parameter(torch.empty(shape).normal_(0.0, scale, generator=rng))


def standard(x: Tensor) -> Tensor:
    """Layer norm without gain and bias: the matrix that follows does what they would."""
    return nn.functional.layer_norm(x, x.shape[-1:])


def project(x: Tensor, weight: Tensor) -> Tensor:
    """(M, b, Q, d) times the matrix of each member (M, d, k) -> (M, b, Q, k)."""
    return torch.bmm(x.flatten(1, 2), weight).view(*x.shape[:3], -1)


class SelfAttention(nn.Module):
    """Queries read each other: (M, b, Q, d) -> (M, b, Q, d)."""

    def __init__(self, members: int, width: int, heads: int, rng: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        self.into = normal((members, width, 3 * width), 1.0 / math.sqrt(width), rng)
        self.out = normal((members, width, width), 0.5 / math.sqrt(width), rng)

    def forward(self, x: Tensor) -> Tensor:
        members, batch, queries, width = x.shape
        parts = project(x, self.into).view(members * batch, queries, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # (M b, H, Q, e) each
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return project(mixed.transpose(1, 2).reshape(x.shape), self.out)


class CrossAttention(nn.Module):
    """Queries read tokens: (M, b, Q, d) and (B, T, D) -> (M, B, Q, d)."""

    def __init__(self, members: int, width: int, heads: int, token_width: int, rng: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        e = width // heads
        self.query = normal((members, width, width), 1.0 / math.sqrt(width), rng)
        self.key = normal((members, heads, e, token_width), 1.0 / math.sqrt(token_width), rng)
        self.value = normal((members, heads, e, token_width), 1.0 / math.sqrt(token_width), rng)
        self.out = normal((members, width, width), 0.5 / math.sqrt(width), rng)

    def forward(self, x: Tensor, tokens: Tensor, hidden: Tensor, *, fold: bool | None = None) -> Tensor:
        """`hidden` (B, T) is added to the scores: 0 for a token that may be read, -inf for padding.

        `fold` forces one order; by default the cheaper one is taken. The results are equal up to rounding.
        """
        q = project(x, self.query).view(*x.shape[:3], self.heads, -1)  # (M, b, Q, H, e)
        q = q / math.sqrt(q.shape[-1])
        if fold is None:
            fold = folding_pays(x.shape[2], self.heads, tokens.shape[1], tokens.shape[2], x.shape[3])
        mixed = self._folded(q, tokens, hidden) if fold else self._plain(q, tokens, hidden)
        return project(mixed.flatten(3), self.out)

    def _folded(self, q: Tensor, tokens: Tensor, hidden: Tensor) -> Tensor:
        members, batch, queries = q.shape[:3]
        side = torch.einsum("mbqhe,mhed->bmqhd", q, self.key).reshape(batch, -1, tokens.shape[2])  # (b, M Q H, D)
        # One large product instead of B small ones where the queries do not depend on the task.
        scores = tokens @ side[0].T if batch == 1 else tokens @ side.transpose(1, 2)  # (B, T, M Q H)
        # Tokens are few and queries many: the long axis last makes the softmax ten times faster on a CPU.
        weights = torch.softmax(scores + hidden[..., None], 1)
        read = (weights.transpose(1, 2) @ tokens).view(len(tokens), members, queries, self.heads, -1)  # (B, M, Q, H, D)
        return torch.einsum("bmqhd,mhed->mbqhe", read, self.value)

    def _plain(self, q: Tensor, tokens: Tensor, hidden: Tensor) -> Tensor:
        keys = torch.einsum("btd,mhed->mbhte", tokens, self.key)
        values = torch.einsum("btd,mhed->mbhte", tokens, self.value)
        scores = torch.einsum("mbqhe,mbhte->mbhqt", q.expand(-1, len(tokens), -1, -1, -1), keys)
        weights = torch.softmax(scores + hidden[:, None, None], -1)
        return torch.einsum("mbhqt,mbhte->mbqhe", weights, values)


def folding_pays(queries: int, heads: int, tokens: int, token_width: int, width: int) -> bool:
    """Whether the folded order needs fewer multiplications a task."""
    folded = 2 * queries * heads * tokens * token_width + 2 * queries * width * token_width
    plain = 2 * tokens * token_width * width + 2 * queries * tokens * width
    return folded < plain
