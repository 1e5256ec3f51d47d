"""Cross-attention without projecting tokens: the key matrix is folded into the query, the value matrix comes after.

    softmax(q (X W_k)^T) (X W_v)  =  [softmax((q W_k^T) X^T) X] W_v

The left side costs 4 T D d + 4 Q T d operations a task, the right one 4 Q H T D + 4 Q d D: with annotators x heads
below d the right one is several times cheaper. Tokens come from a frozen encoder: they need no gradient, so in the
backward pass a product with X counts once, one with a weight twice.

A key bias is the same for every token of a query and cancels in the softmax; a value bias is added to the sum, since
probabilities sum to one.

Shape legend: G groups of heads and members, B tasks, Q queries, H heads, T tokens, D token width, d width.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor


def _kernels() -> Any:
    """The Triton kernels where they can run, else None."""
    if torch.cuda.is_available() and importlib.util.find_spec("triton") is not None:
        return importlib.import_module("model.qumab.kernels")
    return None


_KERNELS = _kernels()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Tokens that queries read: all resident ones, and which of them a batch is made of."""

    tokens: Tensor  # (N, T, D)
    rows: Tensor  # (B,) int64 into N
    hidden: Tensor  # (B, T) fp32 added to the scores: 0 for what may be read, -inf for padding

    @classmethod
    def of(cls, tokens: Tensor, hidden: Tensor) -> Reading:
        """A batch that stands for itself: `tokens` (B, T, D), `hidden` (B, T)."""
        return cls(tokens=tokens, rows=torch.arange(len(tokens), device=tokens.device), hidden=hidden)

    def gathered(self) -> Tensor:
        """(B, T, D)"""
        return self.tokens.index_select(0, self.rows)


def kernels_serve(x: Tensor) -> bool:
    """Whether the Triton kernels take numbers like these: half precision on a CUDA device."""
    return _KERNELS is not None and x.is_cuda and x.dtype in (torch.bfloat16, torch.float16)


def attend(side: Tensor, reading: Reading) -> Tensor:
    """Queries on the tokens' side (G, B, Q, D), scaled -> what they read, (G, B, Q, D); B may be 1 for all tasks."""
    side = side.expand(-1, len(reading.rows), -1, -1)
    frozen = not reading.tokens.requires_grad  # the kernel has no gradient of tokens
    if frozen and kernels_serve(reading.tokens) and reading.tokens.shape[1] <= _KERNELS.MOST_TOKENS:
        found, _ = _KERNELS.attend(side.to(reading.tokens.dtype), reading.tokens, reading.rows, reading.hidden)
        return cast(Tensor, found)
    return attend_plainly(side, reading)


def probabilities(side: Tensor, reading: Reading) -> Tensor:
    """(G, B, Q, T): how much of each token is read; 0 everywhere for a task without tokens."""
    groups, _, queries, width = side.shape
    rows = side.transpose(0, 1).reshape(side.shape[1], groups * queries, width)  # (B, G Q, D)
    scores = rows @ reading.gathered().to(side.dtype).transpose(1, 2)  # (B, G Q, T)
    # A softmax over nothing is NaN, and so is its gradient: a task without tokens is read as if it had some, then not.
    empty = torch.isneginf(reading.hidden).all(1)[:, None]
    weights = torch.softmax(scores.float() + reading.hidden.masked_fill(empty, 0.0)[:, None], -1)
    weights = weights.masked_fill(empty[..., None], 0.0)
    return weights.view(len(scores), groups, queries, -1).transpose(0, 1)


def attend_plainly(side: Tensor, reading: Reading) -> Tensor:
    """`attend` in torch alone, on any device and in any precision."""
    weights = probabilities(side, reading)  # (G, B, Q, T)
    groups, batch, queries, tokens = weights.shape
    rows = weights.transpose(0, 1).reshape(batch, groups * queries, tokens).to(side.dtype)
    read = rows @ reading.gathered().to(side.dtype)  # (B, G Q, D)
    return read.view(batch, groups, queries, -1).transpose(0, 1)


def among(packed: Tensor, heads: int) -> Tensor:
    """Self-attention of queries, keys and values side by side, (N, Q, 3 H e) -> (N, Q, H e)."""
    batch, queries, width = packed.shape
    e = width // (3 * heads)
    if kernels_serve(packed) and queries <= _KERNELS.MOST_QUERIES and e in (16, 32, 64, 128):
        return cast(Tensor, _KERNELS.among(packed, heads))
    q, k, v = packed.view(batch, queries, 3, heads, e).permute(2, 0, 3, 1, 4)  # (N, H, Q, e) each
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return mixed.transpose(1, 2).reshape(batch, queries, -1)
