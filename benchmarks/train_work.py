"""What `train_step` trains: STREET-size work, the plain loop and ours with the same weights, operations, agreement.

Shape legend: N images, B of a batch, A annotators, K controls, C classes, T tokens, D token width, d width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import Blip2QFormerConfig, Blip2QFormerModel

from model.qumab.folded import Reading, among, attend, attend_plainly
from model.qumab.qformer_layers import QFormer, QFormerShape
from model.qumab.qformer_weights import from_original
from model.qumab.resident import ResidentFeatures

ANNOTATORS, CONTROLS, CLASSES = 10, 5, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is trained on."""

    shape: QFormerShape
    tokens: Tensor  # (N, T, D)
    votes: Tensor  # (N, A, K) int64, -1 where none was given
    device: torch.device


class Plain(nn.Module):
    """The Q-Former of transformers and a list of heads, one loop over them."""

    def __init__(self, shape: QFormerShape) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, ANNOTATORS, shape.width))
        self.qformer = Blip2QFormerModel(original_config(shape))
        self.heads = nn.ModuleList(nn.Linear(shape.width, CLASSES) for _ in range(ANNOTATORS * CONTROLS))

    def forward(self, tokens: Tensor, votes: Tensor) -> Tensor:
        h = self.qformer(
            query_embeds=self.queries.expand(len(tokens), -1, -1), encoder_hidden_states=tokens
        ).last_hidden_state
        total = h.new_zeros(())
        for annotator in range(ANNOTATORS):
            for control in range(CONTROLS):
                logits = self.heads[annotator * CONTROLS + control](h[:, annotator])
                total = total + nn.functional.cross_entropy(logits, votes[:, annotator, control], ignore_index=-1)
        return cast(Tensor, total / (ANNOTATORS * CONTROLS))


class Ours(nn.Module):
    """The same function: all heads in one product, all losses in one."""

    def __init__(self, shape: QFormerShape) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.queries = nn.Parameter(torch.randn(1, 1, ANNOTATORS, shape.width))
        self.qformer = QFormer(1, shape, rng)
        self.weight = nn.Parameter(torch.randn(ANNOTATORS, shape.width, CONTROLS * CLASSES) * shape.width**-0.5)
        self.bias = nn.Parameter(torch.zeros(ANNOTATORS, CONTROLS * CLASSES))

    @torch.no_grad()
    def copy(self, plain: Plain) -> None:
        """Take over the weights of the plain one."""
        self.queries.copy_(plain.queries[None])
        self.qformer.load_state_dict(from_original(plain.qformer.state_dict(), self.qformer))
        heads = [cast(nn.Linear, head) for head in plain.heads]
        weights = torch.stack([head.weight.T for head in heads]).view(ANNOTATORS, CONTROLS, -1, CLASSES)
        self.weight.copy_(weights.transpose(1, 2).flatten(2))
        self.bias.copy_(torch.stack([head.bias for head in heads]).view(ANNOTATORS, -1))

    def forward(self, reading: Reading, votes: Tensor) -> Tensor:
        h = self.qformer(self.queries, reading)[0]  # (B, A, d)
        logits = torch.einsum("baw,awc->bac", h, self.weight) + self.bias
        apart = logits.float().view(*logits.shape[:2], CONTROLS, CLASSES)
        scores = nn.functional.log_softmax(apart, -1)  # (B, A, K, C)
        given = votes >= 0
        found = scores.gather(3, votes.clamp(min=0)[..., None])[..., 0] * given
        count = given.sum(0).clamp(min=1)
        return -(found.sum(0) / count).sum() / (ANNOTATORS * CONTROLS)


def original_config(shape: QFormerShape) -> Blip2QFormerConfig:
    return Blip2QFormerConfig(
        hidden_size=shape.width, num_hidden_layers=shape.layers, num_attention_heads=shape.heads,
        intermediate_size=shape.inner, encoder_hidden_size=shape.token_width, cross_attention_frequency=shape.every,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )


def operations(shape: QFormerShape, tokens: int, *, folded: bool) -> dict[str, float]:
    """Operations an image, of the forward pass and of a whole training step."""
    q, d, wide, t = ANNOTATORS, shape.width, shape.token_width, tokens
    linear = 2.0 * q * d * d
    reads = len(range(0, shape.layers, shape.every))
    if folded:
        with_tokens = reads * 4.0 * q * shape.heads * t * wide
        others = reads * (2 * linear + 4.0 * q * d * wide) - linear - 2.0 * q * d * wide  # the first one: once a batch
    else:
        with_tokens = reads * 4.0 * t * wide * d
        others = reads * (2 * linear + 4.0 * q * t * d) - linear
    others += shape.layers * (4 * linear + 4.0 * q * d * shape.inner) - 4 * linear
    others += 2.0 * q * d * CONTROLS * CLASSES
    return {"forward": with_tokens + others, "step": 2 * with_tokens + 3 * others}


def agreement(work: Work) -> dict[str, float]:
    """Relative difference of ours from the plain loop with the same weights: loss, and gradient of the queries."""
    plain, ours = Plain(work.shape).to(work.device), Ours(work.shape).to(work.device)
    ours.copy(plain)
    rows = torch.arange(min(32, len(work.tokens)), device=work.device)
    reading = ResidentFeatures(work.tokens, torch.zeros(work.tokens.shape[:2]), work.device).reading(rows)
    found = {}
    exact = plain(work.tokens[rows].float(), work.votes[rows])
    exact_gradient, = torch.autograd.grad(exact, plain.queries)
    with torch.autocast(work.device.type, torch.bfloat16):
        losses = {"plain": plain(work.tokens[rows], work.votes[rows]), "ours": ours(reading, work.votes[rows])}
    for name, model in (("plain", plain), ("ours", ours)):
        gradient, = torch.autograd.grad(losses[name], model.queries)
        found[f"{name} bf16, loss against fp32"] = abs(float((losses[name] / exact).detach()) - 1.0)
        off = gradient.view_as(exact_gradient) - exact_gradient
        found[f"{name} bf16, query gradient against fp32"] = float(off.norm() / exact_gradient.norm())
    return found


def kernel_agreement(device: torch.device) -> list[dict[str, Any]]:
    """Relative difference of the kernels (bf16) from the plain form in fp32, with padding, for several shapes."""
    found = []
    for queries, heads, tokens, width, e in ((10, 12, 257, 1408, 64), (37, 12, 300, 768, 64), (5, 4, 40, 384, 32)):
        side = torch.randn(heads, 6, queries, width, device=device).bfloat16() / width**0.5
        features = torch.randn(9, tokens, width, device=device).bfloat16()
        hidden = torch.zeros(6, tokens, device=device)
        hidden[1, tokens // 2 :] = -torch.inf
        reading = Reading(tokens=features, rows=torch.tensor([8, 0, 3, 3, 1, 7], device=device), hidden=hidden)
        exact = Reading(tokens=features.float(), rows=reading.rows, hidden=hidden)
        packed = torch.randn(6, queries, 3 * heads * e, device=device).bfloat16()
        shape = f"{queries} queries, {heads} heads, {tokens} x {width} tokens"
        found.append({
            "shape": shape,
            "attend": _difference(partial(attend, reading=reading), partial(attend_plainly, reading=exact), side),
            "among": _difference(partial(among, heads=heads), partial(among, heads=heads), packed),
        })
    return found


def _difference(fast: Callable[[Tensor], Tensor], exact: Callable[[Tensor], Tensor], x: Tensor) -> dict[str, float]:
    a, b = x.clone().requires_grad_(), x.float().requires_grad_()
    left, right = fast(a), exact(b)
    weight = torch.randn_like(right)
    (ga,), (gb,) = torch.autograd.grad(left, a, weight.to(left.dtype)), torch.autograd.grad(right, b, weight)
    off = (left.float() - right).detach().norm() / right.detach().norm()
    return {"output": float(off), "gradient": float((ga - gb).norm() / gb.norm())}
