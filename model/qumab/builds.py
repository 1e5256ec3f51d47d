"""The one place that chooses which build of the query network a configuration asks for."""

from __future__ import annotations

import torch

from model.config import NetworkConfig
from model.errors import ModelError
from model.qumab.network import QueryNetwork
from model.qumab.qformer import QFormerNetwork


def build_network(
    members: int, annotators: int, classes: int, token_width: int, config: NetworkConfig, rng: torch.Generator
) -> QueryNetwork:
    """An untrained network, `light` or `qformer`. Raises ModelError when the configuration does not make sense."""
    if config.build == "light":
        if config.pretrained:
            raise ModelError("pretrained weights are those of a Q-Former; set build to 'qformer' or pretrained to ''")
        return QueryNetwork(members, annotators, classes, token_width, config, rng)
    if config.build == "qformer":
        return QFormerNetwork(members, annotators, classes, token_width, config, rng)
    raise ModelError(f"no build of the network named {config.build!r}; there are light and qformer")
