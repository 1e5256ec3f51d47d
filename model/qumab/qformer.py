"""The Q-Former build: annotator queries in the Q-Former of BLIP-2, with the interface of the light network.

Everything around the layers is the light network's: the generic query and each annotator's deviation from it, heads
with shrinkage, the reading of given votes. Only what reads the content is exchanged, so that training, growing,
committees and explanations take either build. `NetworkConfig(build="qformer", width=768, heads=12, blocks=12)` is the
size of the published weights; `pretrained` names a local folder of them.

Invariants: those of the light network; in prediction the layers equal `Blip2QFormerModel` with the same weights.

Shape legend: M members, B tasks, Q = A + 1 queries, T tokens, D token width, d width, C classes of all controls.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from model.config import NetworkConfig
from model.errors import ModelError
from model.qumab.asked import Asked
from model.qumab.folded import Reading
from model.qumab.network import QueryNetwork, hide
from model.qumab.qformer_layers import QFormer, QFormerShape
from model.qumab.qformer_weights import load_folder


class QFormerNetwork(QueryNetwork):
    """Logits of every annotator, and of an unknown one, by every member; see `QueryNetwork`."""

    def __init__(
        self, members: int, annotators: int, classes: int, token_width: int, config: NetworkConfig, rng: torch.Generator
    ) -> None:
        _check(members, annotators, classes, token_width, config)
        super().__init__(members, annotators, classes, token_width, replace(config, blocks=0), rng)
        self.config = config
        shape = QFormerShape(
            width=config.width, heads=config.heads, layers=config.blocks, inner=4 * config.width,
            token_width=token_width, dropout=config.dropout,
        )
        self.qformer = QFormer(members, shape, rng)
        if config.pretrained:
            load_folder(self.qformer, Path(config.pretrained))

    def read(self, reading: Reading, rng: torch.Generator | None = None) -> Tensor:
        """Queries after the last layer, (M, B, Q, d): what the fast step on a GPU calls with resident features."""
        return cast(Tensor, self.qformer(self.queries(), reading, rng))

    def attention(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Maps of each layer that reads tokens, (L, M, H, B, Q, T); `tokens` (B, T, D), `mask` (B, T).

        With the pooled path the mean token is read too; what it gets is left out, so rows sum to at most one.
        """
        reading, _ = self._reading(tokens, mask, None)
        return self.qformer.attention(self.queries(), reading)[..., -tokens.shape[1] :]

    def _read(
        self, tokens: Tensor, mask: Tensor, rng: torch.Generator | None, asked: Asked | None = None
    ) -> tuple[Tensor, Tensor]:
        reading, mean_token = self._reading(tokens, mask, rng)
        return self.read(reading, rng), mean_token

    def _reading(self, tokens: Tensor, mask: Tensor, rng: torch.Generator | None) -> tuple[Reading, Tensor]:
        """Standardised tokens, with their mean as one more where the pooled path is on, and the mean (B, D)."""
        x = ((tokens.float() - self.token_mean) * self.token_scale) * mask[..., None]
        mean_token = x.sum(1) / mask.sum(1, keepdim=True)
        hidden = hide(mask, self.config.token_dropout, rng)
        if self.config.pooled_path:
            x = torch.cat([mean_token[:, None], x], 1)
            hidden = torch.nn.functional.pad(hidden, (1, 0))
        return Reading.of(x, hidden), mean_token


def _check(members: int, annotators: int, classes: int, token_width: int, config: NetworkConfig) -> None:
    for value, what in ((members, "member"), (annotators, "annotator"), (classes, "class"), (token_width, "token dim")):
        if value < 1:
            raise ModelError(f"a query network needs at least one {what}, got {value}")
    if config.width % config.heads:
        raise ModelError(f"width {config.width} is not a multiple of {config.heads} heads; choose another")
    if config.blocks < 1:
        raise ModelError("the Q-Former needs at least one layer; set blocks to 1 or more")
    if not config.self_attention:
        raise ModelError("the Q-Former's queries always read each other; use the light build without self-attention")
