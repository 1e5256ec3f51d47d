"""The `light` query network: annotator queries read each other, then the tokens of a task, and are classified.

Each of L blocks: self-attention among the queries, cross-attention to the tokens, feed-forward; all with a residual and
a norm before. The queries that enter the first block do not depend on the task, so its self-attention runs once a
batch. Votes that a task already has may be read after the last block (`labels`). The query of an annotator is the
generic one plus a deviation; the last query is the generic one itself, which answers for an unknown annotator and is
where a new one starts.

M independent networks (members) are computed side by side: small matrices cost a CPU and a GPU mostly their launch.

Invariants: the output for a task does not depend on padding or on the other tasks of a batch; permuting annotators
permutes the output; members do not influence each other.

Shape legend: M members, B tasks, Q = A + 1 queries, T tokens, D token width, d width, C classes of all controls side by
side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.config import NetworkConfig
from model.qumab.asked import Asked
from model.qumab.attention import CrossAttention, SelfAttention, dropout, keep_mask, normal, project, standard
from model.qumab.heads import Heads
from model.qumab.labels import LabelReader, LabelTokens
from model.qumab.readings import Read


class Block(nn.Module):
    """Self-attention, cross-attention, feed-forward."""

    def __init__(self, members: int, token_width: int, config: NetworkConfig, rng: torch.Generator) -> None:
        super().__init__()
        d = config.width
        self.share, self.self_attention = config.dropout, config.self_attention
        if config.self_attention:
            self.among = SelfAttention(members, d, config.heads, rng)
        self.read = CrossAttention(members, d, config.heads, token_width, rng)
        self.widen = normal((members, d, 2 * d), 1.0 / math.sqrt(d), rng)
        self.widen_bias = nn.Parameter(torch.zeros(members, 2 * d))
        self.narrow = normal((members, 2 * d, d), 0.5 / math.sqrt(2 * d), rng)

    def forward(
        self, x: Tensor, tokens: Tensor, hidden: Tensor, rng: torch.Generator | None, asked: Asked | None = None
    ) -> Tensor:
        """With `asked`, only these queries come out, (M, 1, N, d)."""
        read = self.among(standard(x), asked) if self.self_attention else None
        x = x if asked is None else asked.pick(x)
        if read is not None:
            x = x + read
        x = x + dropout(self.read(standard(x), tokens, hidden, asked=asked), self.share, rng)  # b is B now
        inner = nn.functional.gelu(project(standard(x), self.widen) + self.widen_bias[:, None, None])
        return x + dropout(project(inner, self.narrow), self.share, rng)


class QueryNetwork(nn.Module):
    """Logits of every annotator, and of an unknown one, for every task of a batch, by every member."""

    token_mean: Tensor
    token_scale: Tensor

    def __init__(
        self, members: int, annotators: int, classes: int, token_width: int, config: NetworkConfig, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.config = config
        self.members, self.annotators, self.token_width = members, annotators, token_width
        self.generic = normal((members, 1, config.width), 1.0, rng)
        self.deviation = normal((members, annotators, config.width), 0.5, rng)
        self.blocks = nn.ModuleList(Block(members, token_width, config, rng) for _ in range(config.blocks))
        self.heads = Heads(members, annotators + 1, classes, token_width, config, rng)
        if config.labels:
            self.labels = LabelReader(members, classes, config, rng)
        self.register_buffer("token_mean", torch.zeros(token_width))
        self.register_buffer("token_scale", torch.ones(token_width))

    def queries(self) -> Tensor:
        """(M, 1, Q, d); the generic query is the last."""
        return torch.cat([self.generic + self.deviation, self.generic], 1)[:, None]

    def forward(self, tokens: Tensor, mask: Tensor, rng: torch.Generator | None = None) -> Tensor:
        """`tokens` (B, T, D) of any float type, `mask` (B, T) True for real tokens -> logits (M, B, Q, C).

        With a generator, dropout is on: this is training.
        """
        return self.both(tokens, mask, (), rng)[0]

    def both(
        self, tokens: Tensor, mask: Tensor, given: Sequence[LabelTokens | None], rng: torch.Generator | None = None,
        asked: Asked | None = None,
    ) -> list[Tensor]:
        """Logits from content alone, then those that also read each of several sets of given votes.

        The content is read once, and without given votes nothing else is done. Where there are none, the result is
        that from content alone. With `asked` only these queries are answered for; the logits of others are 0.
        """
        asked = asked if len(self.blocks) else None  # the last block is what leaves the others out
        return self.said(self.read_content(tokens, mask, rng, asked), given, rng, asked)

    def read_content(
        self, tokens: Tensor, mask: Tensor, rng: torch.Generator | None = None, asked: Asked | None = None
    ) -> Read:
        """The first half of `both`: what does not depend on given votes."""
        h, mean_token = self._read(tokens, mask, rng, asked)
        return Read(h, mean_token, self._classify(h, mean_token, rng, asked))

    def said(
        self, read: Read, given: Sequence[LabelTokens | None], rng: torch.Generator | None = None,
        asked: Asked | None = None,
    ) -> list[Tensor]:
        """The second half of `both`."""
        found = [read.alone]
        for labels in given:
            if labels is None:
                found.append(read.alone)
            else:
                h = self.labels(read.h, self.queries(), labels, rng, asked)
                found.append(self._classify(h, read.mean_token, rng, asked))
        return found

    def _read(
        self, tokens: Tensor, mask: Tensor, rng: torch.Generator | None, asked: Asked | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries after the last block, (M, B, Q, d) or those asked for (M, 1, N, d), and the mean token (B, D)."""
        x = tokens.to(torch.float32, copy=True).sub_(self.token_mean).mul_(self.token_scale).mul_(mask[..., None])
        mean_token = x.sum(1) / mask.sum(1, keepdim=True)  # (B, D)
        hidden = hide(mask, self.config.token_dropout, rng)
        if self.config.pooled_path:
            x = torch.cat([mean_token[:, None], x], 1)
            hidden = nn.functional.pad(hidden, (1, 0))
        h = self.queries()
        for block in self.blocks:
            h = block(h, x, hidden, rng, asked if block is self.blocks[-1] else None)
        return h, mean_token

    def _classify(
        self, h: Tensor, mean_token: Tensor, rng: torch.Generator | None, asked: Asked | None = None
    ) -> Tensor:
        h = dropout(standard(h), self.config.dropout, rng)
        mean_token = dropout(mean_token, self.config.dropout, rng)
        if asked is None:
            return cast(Tensor, self.heads(h, mean_token))
        return asked.others_blank(self.heads(asked.spread(h), mean_token))

    @contextmanager
    def only(self, members: NDArray[np.integer]) -> Iterator[None]:
        """Be the network of some of its members for a while, for what the others are not asked; not for training."""
        if len(members) == self.members:
            yield
            return
        whole = [(parameter, parameter.data) for parameter in self.parameters()]
        index = torch.from_numpy(np.asarray(members, np.int64)).to(whole[0][1].device)
        count, self.members = self.members, len(members)
        try:
            for parameter, data in whole:
                parameter.data = data[index]
            yield
        finally:
            self.members = count
            for parameter, data in whole:
                parameter.data = data

    def penalty(self) -> Tensor:
        """Half the squared size of everything that belongs to one annotator alone, summed over members."""
        return 0.5 * self.deviation.square().sum() / self.config.width + self.heads.penalty()


def hide(mask: Tensor, share: float, rng: torch.Generator | None) -> Tensor:
    """What is added to the scores of tokens, (B, T): -inf for padding and, in training, for a share of the tokens."""
    visible = mask
    if rng is not None and share > 0:
        kept = keep_mask(mask.shape, share, rng)
        visible = mask & (kept | ~(mask & kept).any(1, keepdim=True))  # never hide all tokens of a task
    return torch.zeros_like(visible, dtype=torch.float32).masked_fill(~visible, -torch.inf)
