"""Attention of every annotator over the tokens of a task, as data, for both builds of the network.

The mean over members, heads and layers that read tokens. Attention alone proves nothing: see `deletion` for whether
removing what it points at changes the answer, and `rationales` for whether people point there too.

Invariants: rows are not negative, are zero on padding and sum to at most one (less where the network also reads the
mean token, which is no place in the text); permuting annotators permutes rows; other tasks change nothing.

Shape legend: L layers that read, M members, H heads, B tasks, Q = A + 1 queries (the last one generic), T tokens,
D token width, d width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from model.qumab.attention import CrossAttention, project, standard
from model.qumab.network import Block, QueryNetwork, hide
from model.qumab.qformer import QFormerNetwork


@torch.inference_mode()
def attention(network: QueryNetwork, tokens: Tensor, mask: Tensor) -> Tensor:
    """(B, Q, T) from `tokens` (B, T, D) and `mask` (B, T), True for real tokens."""
    if isinstance(network, QFormerNetwork):
        return network.attention(tokens, mask).mean((0, 1, 2))
    x = ((tokens.float() - network.token_mean) * network.token_scale) * mask[..., None]
    hidden = hide(mask, 0.0, None)
    if network.config.pooled_path:
        x = torch.cat([(x.sum(1) / mask.sum(1, keepdim=True))[:, None], x], 1)
        hidden = torch.nn.functional.pad(hidden, (1, 0))
    h, total = network.queries(), torch.zeros(())
    for block in network.blocks:
        assert isinstance(block, Block)
        before = h + block.among(standard(h)) if block.self_attention else h
        total = total + _weights(block.read, standard(before), x, hidden).mean(0)
        h = block(h, x, hidden, None)
    return (total / len(network.blocks))[..., -tokens.shape[1] :]


def _weights(layer: CrossAttention, x: Tensor, tokens: Tensor, hidden: Tensor) -> Tensor:
    """(M, B, Q, T), the mean over heads; queries (M, b, Q, d)."""
    q = project(x, layer.query).view(*x.shape[:3], layer.heads, -1)  # (M, b, Q, H, e)
    side = torch.einsum("mbqhe,mhed->mbqhd", q / math.sqrt(q.shape[-1]), layer.key)
    side = side.expand(-1, len(tokens), -1, -1, -1)
    scores = torch.einsum("mbqhd,btd->mbqht", side, tokens) + hidden[:, None, None]
    return torch.softmax(scores, -1).mean(3)
