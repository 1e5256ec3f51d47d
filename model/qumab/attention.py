"""Attention of annotator queries: among themselves, and over the tokens of a task; several networks side by side.

Cross-attention has two equal orders. With head width e and tokens X (T, D),

    plain:   softmax(q (X W_k)^T) (X W_v)        2 T D d + 2 Q T d   products a task
    folded:  softmax((q W_k^T) X^T) X, then W_v  2 Q H T D + 2 Q d D

and the folded one never projects a token, so it wins when Q H is small beside d. Keys and values choose each for
themselves: queries that do not depend on the task are folded once a batch, not once a task. A bias of the keys would
cancel in the softmax and one of the values is a bias of the output, so neither exists.

Shape legend: M members, B tasks, Q queries, H heads, e = d / H, T tokens, D width of a token, d width of a query.
Queries are (M, b, Q, d); b is 1 while they do not depend on the task, then B. Every parameter has a leading M.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from model.qumab.asked import Asked

_MOVED = 100  # multiplications in the time in which a number is copied there and back, on one core


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
    return x * keep_mask(x.shape, share, rng).to(x.dtype).mul_(1.0 / (1.0 - share))


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

    def forward(self, x: Tensor, asked: Asked | None = None) -> Tensor:
        """With `asked`, what these queries read of all of them, (M, 1, N, d)."""
        if asked is None:
            return self._mixed(*self._split(project(x, self.into), 3))
        width = x.shape[-1]
        (q,) = self._split(asked.pad(project(asked.pick(x), self.into[..., :width])), 1)
        k, v = self._split(project(x, self.into[..., width:]), 2)
        if len(k) < len(q):  # the queries do not depend on the task yet
            k, v = (part.repeat_interleave(len(q) // len(k), 0) for part in (k, v))
        return self._mixed(q, k, v, asked)

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor, asked: Asked | None = None) -> Tensor:
        """Of (M b, H, Q or G, e)."""
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        mixed = mixed.view(len(self.out), -1, *mixed.shape[1:])
        return project(mixed if asked is None else asked.unpad(mixed), self.out)

    def _split(self, x: Tensor, parts: int) -> Tensor:
        """(M, b, Q, parts d) -> (parts, M b, H, Q, e)."""
        members, batch, queries, width = x.shape
        split = x.view(members * batch, queries, parts, self.heads, width // (parts * self.heads))
        return split.permute(2, 0, 3, 1, 4)


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

    def forward(
        self, x: Tensor, tokens: Tensor, hidden: Tensor, *, asked: Asked | None = None, fold: bool | None = None
    ) -> Tensor:
        """`hidden` (B, T) is added to the scores: 0 for a token that may be read, -inf for padding; with `asked`, `x`
        is (M, 1, N, d).

        `fold` forces one order; by default the cheaper one is taken, for keys and for values each. The results are
        equal up to rounding.
        """
        q = project(x, self.query).view(*x.shape[:3], self.heads, -1)  # (M, b, Q, H, e)
        q = q / math.sqrt(q.shape[-1])
        queries = x.shape[2] if asked is None else math.ceil(x.shape[2] / len(tokens))
        sizes, once = (queries, self.heads, *tokens.shape[1:], x.shape[3]), x.shape[1] == 1 and asked is None
        moved = 0 if asked is None else _MOVED
        fold_keys = folding_pays(*sizes, once=once, moved=moved) if fold is None else fold
        fold_values = folding_pays(*sizes, moved=moved) if fold is None else fold
        weights = (self._folded_weights if fold_keys else self._plain_weights)(q, tokens, hidden, asked)
        return project((self._folded_sums if fold_values else self._plain_sums)(weights, tokens, asked), self.out)

    def _folded_weights(self, q: Tensor, tokens: Tensor, hidden: Tensor, asked: Asked | None) -> Tensor:
        """How much of each token is read, (M, B, H, Q, T)."""
        side = torch.einsum("mbqhe,mhed->mbqhd", q, self.key)
        side = side if asked is None else asked.pad(side)
        members, batch, queries = side.shape[:3]
        side = side.transpose(0, 1).reshape(batch, -1, tokens.shape[2])  # (b, M Q H, D)
        # One large product instead of B small ones where the queries do not depend on the task.
        scores = tokens @ side[0].T if batch == 1 else tokens @ side.transpose(1, 2)  # (B, T, M Q H)
        # Tokens are few and queries many: the long axis last makes the softmax ten times faster on a CPU.
        weights = torch.softmax(scores + hidden[..., None], 1)
        return weights.view(*tokens.shape[:2], members, queries, self.heads).permute(2, 0, 4, 3, 1)

    def _plain_weights(self, q: Tensor, tokens: Tensor, hidden: Tensor, asked: Asked | None) -> Tensor:
        q = q.expand(-1, len(tokens), -1, -1, -1) if asked is None else asked.pad(q)
        keys = torch.einsum("btd,mhed->mbhte", tokens, self.key)
        return torch.softmax(torch.einsum("mbqhe,mbhte->mbhqt", q, keys) + hidden[:, None, None], -1)

    def _folded_sums(self, weights: Tensor, tokens: Tensor, asked: Asked | None) -> Tensor:
        """What is read, (M, B, Q, d) or, with `asked`, (M, 1, N, d)."""
        members, batch, heads, queries, length = weights.shape
        rows = weights.permute(1, 0, 3, 2, 4).reshape(batch, -1, length)  # (B, M Q H, T)
        read = (rows @ tokens).view(batch, members, queries, heads, -1).transpose(0, 1)  # (M, B, Q, H, D)
        read = read if asked is None else asked.unpad(read)
        return torch.einsum("mbqhd,mhed->mbqhe", read, self.value).flatten(3)

    def _plain_sums(self, weights: Tensor, tokens: Tensor, asked: Asked | None) -> Tensor:
        values = torch.einsum("btd,mhed->mbhte", tokens, self.value)
        read = torch.einsum("mbhqt,mbhte->mbqhe", weights, values).flatten(3)
        return read if asked is None else asked.unpad(read)


def folding_pays(
    queries: int, heads: int, tokens: int, token_width: int, width: int, *, once: bool = False, moved: int = 0
) -> bool:
    """Whether the folded order of keys or values needs fewer multiplications a task.

    `once`: the matrix is folded into queries that are the same for all tasks, which costs nothing a task. `moved`: so
    many multiplications are what it costs to pad a number of a query on the tokens' side.
    """
    folded = queries * heads * token_width * (tokens + moved) + (0 if once else queries * width * token_width)
    plain = tokens * token_width * width + queries * tokens * width
    return folded < plain
