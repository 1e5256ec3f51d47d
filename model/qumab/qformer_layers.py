"""The layers of the Q-Former (BLIP-2), several networks side by side, for few queries that read many tokens.

Post-norm as in BERT: x <- LN(x + f(x)) for self-attention, cross-attention (every second layer) and feed-forward. The
weights are those of `Blip2QFormerModel` in another layout (`qformer_weights` maps them, tested to give the same
outputs); the order of multiplication is chosen by cost (`folded`), and what does not depend on the task is computed
once a batch.

Invariant: in fp32 both orders agree within 1e-5 (tested).

Shape legend: M members, B tasks (b: 1 while nothing depends on the task), Q queries, H heads, e = d / H, T tokens,
D token width, d width, f inner width. Queries are (M, b, Q, d). Every parameter has a leading M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from model.qumab.attention import dropout, folding_pays, normal
from model.qumab.folded import Reading, among, attend, probabilities

Order = Literal["cheaper", "folded", "projected"]
_SPREAD = 0.02  # standard deviation of fresh weights, as in BERT


@dataclass(frozen=True, slots=True, kw_only=True)
class QFormerShape:
    """The Q-Former's size; the defaults are BLIP-2's."""

    width: int = 768
    heads: int = 12
    layers: int = 12
    inner: int = 3072
    every: int = 2  # cross-attention in each so many layers, from the first on
    token_width: int = 1408
    eps: float = 1e-12
    dropout: float = 0.1


class Norm(nn.Module):
    """Layer norm with a gain and a bias of each member."""

    def __init__(self, members: int, width: int, eps: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(members, width))
        self.bias = nn.Parameter(torch.zeros(members, width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        plain = nn.functional.layer_norm(x, x.shape[-1:], None, None, self.eps)
        return plain * self.gain[:, None, None] + self.bias[:, None, None]


class Dense(nn.Module):
    """(M, b, Q, d) -> (M, b, Q, k)."""

    def __init__(self, members: int, into: int, out: int, rng: torch.Generator) -> None:
        super().__init__()
        self.weight = normal((members, into, out), _SPREAD, rng)
        self.bias = nn.Parameter(torch.zeros(members, out))

    def forward(self, x: Tensor) -> Tensor:
        if len(self.weight) == 1:  # the bias is added within the product, which the batched form does by a copy first
            return torch.addmm(self.bias[0], x.flatten(0, 2), self.weight[0]).view(*x.shape[:3], -1)
        return torch.baddbmm(self.bias[:, None], x.flatten(1, 2), self.weight).view(*x.shape[:3], -1)


class SelfReading(nn.Module):
    """Queries read each other."""

    def __init__(self, members: int, shape: QFormerShape, rng: torch.Generator) -> None:
        super().__init__()
        self.heads, self.share = shape.heads, shape.dropout
        self.into = Dense(members, shape.width, 3 * shape.width, rng)  # queries, keys, values side by side
        self.out = Dense(members, shape.width, shape.width, rng)
        self.norm = Norm(members, shape.width, shape.eps)

    def forward(self, x: Tensor, rng: torch.Generator | None) -> Tensor:
        mixed = among(self.into(x).flatten(0, 1), self.heads).view(x.shape)
        found: Tensor = self.norm(x + dropout(self.out(mixed), self.share, rng))
        return found


class TokenReading(nn.Module):
    """Queries read the tokens of their task."""

    key_bias: Tensor

    def __init__(self, members: int, shape: QFormerShape, rng: torch.Generator) -> None:
        super().__init__()
        self.heads, self.share, self.e = shape.heads, shape.dropout, shape.width // shape.heads
        self.query = Dense(members, shape.width, shape.width, rng)
        self.key = normal((members, shape.heads, self.e, shape.token_width), _SPREAD, rng)
        self.value = normal((members, shape.heads, self.e, shape.token_width), _SPREAD, rng)
        self.value_bias = nn.Parameter(torch.zeros(members, shape.width))
        self.out = Dense(members, shape.width, shape.width, rng)
        self.norm = Norm(members, shape.width, shape.eps)
        self.register_buffer("key_bias", torch.zeros(members, shape.width))  # cancels; kept for the way back

    def forward(
        self, x: Tensor, reading: Reading, rng: torch.Generator | None, order: Order = "cheaper"
    ) -> Tensor:
        """(M, b, Q, d) -> (M, B, Q, d)."""
        if order == "cheaper":
            _, tokens, width = reading.tokens.shape
            order = "folded" if folding_pays(x.shape[2], self.heads, tokens, width, x.shape[3]) else "projected"
        mixed = self._folded(x, reading) if order == "folded" else self._projected(x, reading)
        mixed = mixed + self.value_bias[:, None, None].to(mixed.dtype)
        found: Tensor = self.norm(x + dropout(self.out(mixed), self.share, rng))
        return found

    def side(self, x: Tensor) -> Tensor:
        """Queries on the tokens' side, scaled: (M, b, Q, d) -> (M H, b, Q, D)."""
        members, batch, queries, _ = x.shape
        q = (self.query(x) / math.sqrt(self.e)).view(members, batch * queries, self.heads, self.e)
        side = torch.bmm(q.transpose(1, 2).flatten(0, 1), self.key.flatten(0, 1))  # (M H, b Q, D)
        return side.view(members * self.heads, batch, queries, -1)

    def weights(self, x: Tensor, reading: Reading) -> Tensor:
        """Attention of each query and head over the tokens, (M, H, B, Q, T)."""
        side = self.side(x).expand(-1, len(reading.rows), -1, -1)
        found = probabilities(side, reading)
        return found.reshape(x.shape[0], self.heads, *found.shape[1:])

    def _folded(self, x: Tensor, reading: Reading) -> Tensor:
        read = attend(self.side(x), reading)  # (M H, B, Q, D)
        found = torch.bmm(read.flatten(1, 2), self.value.flatten(0, 1).transpose(1, 2))  # (M H, B Q, e)
        found = found.view(x.shape[0], self.heads, read.shape[1], x.shape[2], self.e)
        return found.permute(0, 2, 3, 1, 4).flatten(3)

    def _projected(self, x: Tensor, reading: Reading) -> Tensor:
        tokens = reading.gathered()
        batch, length, width = tokens.shape
        flat = tokens.view(1, -1, width).expand(x.shape[0], -1, -1)
        both = torch.cat([self.key.flatten(1, 2), self.value.flatten(1, 2)], 1)  # (M, 2 d, D)
        keys = torch.bmm(flat.to(x.dtype), both.transpose(1, 2))  # (M, B T, 2 d)
        k, v = keys.view(-1, batch, length, 2, self.heads, self.e).permute(3, 0, 1, 4, 2, 5).flatten(1, 2)
        q = self.query(x).expand(-1, batch, -1, -1).flatten(0, 1)
        q = q.reshape(*q.shape[:2], self.heads, self.e).transpose(1, 2)  # (M B, H, Q, e)
        mask = reading.hidden[:, None, None].to(q.dtype)
        mask = mask.repeat(x.shape[0], 1, 1, 1).expand(-1, 1, x.shape[2], -1)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (M B, H, Q, e)
        out: Tensor = mixed.transpose(1, 2).reshape(x.shape[0], batch, x.shape[2], -1)
        return out


class FeedForward(nn.Module):
    """LN(x + W2 gelu(W1 x))."""

    def __init__(self, members: int, shape: QFormerShape, rng: torch.Generator) -> None:
        super().__init__()
        self.share = shape.dropout
        self.widen = Dense(members, shape.width, shape.inner, rng)
        self.narrow = Dense(members, shape.inner, shape.width, rng)
        self.norm = Norm(members, shape.width, shape.eps)

    def forward(self, x: Tensor, rng: torch.Generator | None) -> Tensor:
        found: Tensor = self.norm(x + dropout(self.narrow(nn.functional.gelu(self.widen(x))), self.share, rng))
        return found


class Layer(nn.Module):
    """Self-attention, cross-attention where there is one, feed-forward."""

    def __init__(self, members: int, shape: QFormerShape, reads: bool, rng: torch.Generator) -> None:
        super().__init__()
        self.reads = reads
        self.among = SelfReading(members, shape, rng)
        if reads:
            self.read = TokenReading(members, shape, rng)
        self.inner = FeedForward(members, shape, rng)

    def forward(self, x: Tensor, reading: Reading, rng: torch.Generator | None, order: Order = "cheaper") -> Tensor:
        x = self.among(x, rng)
        if self.reads:
            x = self.read(x, reading, rng, order)
        found: Tensor = self.inner(x, rng)
        return found


class QFormer(nn.Module):
    """All layers: queries (M, 1, Q, d) or (M, B, Q, d) that read tokens -> (M, B, Q, d)."""

    def __init__(self, members: int, shape: QFormerShape, rng: torch.Generator) -> None:
        super().__init__()
        self.shape = shape
        self.norm = Norm(members, shape.width, shape.eps)
        self.layers = nn.ModuleList(Layer(members, shape, i % shape.every == 0, rng) for i in range(shape.layers))

    def forward(
        self, queries: Tensor, reading: Reading, rng: torch.Generator | None = None, order: Order = "cheaper"
    ) -> Tensor:
        x: Tensor = self.norm(queries)
        for layer in self.layers:
            x = layer(x, reading, rng, order)
        return x

    def attention(self, queries: Tensor, reading: Reading) -> Tensor:
        """Maps of the layers that read tokens, (L, M, H, B, Q, T); in prediction, without dropout."""
        x, maps = self.norm(queries), []
        for layer in self.layers:
            assert isinstance(layer, Layer)
            if layer.reads:
                maps.append(layer.read.weights(layer.among(x, None), reading))
            x = layer(x, reading, None)
        return torch.stack(maps)
