"""A fresh network, and one that grows out of an earlier one by annotators and classes.

Old annotators keep their index and parameters. A new annotator starts as the generic query; a new class starts with
small weights and the log-frequency it has, on the scale of the classes that are known.

Shape legend: M members, A annotators, Q = A + 1, C classes of all controls side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from model.config import NetworkConfig
from model.qumab.batches import TokenStore
from model.qumab.builds import build_network
from model.qumab.network import QueryNetwork
from model.qumab.slots import Slot

Floats = NDArray[np.float64]


def new_network(
    annotators: int, slots: Mapping[str, Slot], priors: Sequence[Mapping[str, Floats]], store: TokenStore,
    config: NetworkConfig, *, seed: int,
) -> QueryNetwork:
    """An untrained network whose members answer with an annotator prior: M times scores (Q, C) by control."""
    rng = torch.Generator().manual_seed(seed)
    classes = sum(len(slot.space.classes) for slot in slots.values())
    network = build_network(len(priors), annotators, classes, store.dim, config, rng)
    with torch.no_grad():
        network.token_mean.copy_(torch.from_numpy(store.centre))
        network.token_scale.copy_(torch.from_numpy(store.scale))
        for member, prior in enumerate(priors):
            for name, slot in slots.items():
                scores = torch.from_numpy(prior[name])
                network.heads.bias[member, slot.start : slot.stop] = scores[-1].float()
                network.heads.own_bias[member, :, slot.start : slot.stop] = (scores - scores[-1]).float()
    return network


def grow(
    old: QueryNetwork, old_slots: Mapping[str, Slot], fresh: QueryNetwork, slots: Mapping[str, Slot]
) -> QueryNetwork:
    """`fresh` (made by `new_network` for at least the annotators of `old`) with all that `old` learned copied in."""
    old_columns, columns = _columns(old_slots, slots)
    before, after = old.annotators, fresh.annotators
    rows = [index if index < before else before for index in range(after)] + [before]  # `before` is the generic row
    state = fresh.state_dict()
    for name, source in old.state_dict().items():
        source, target = source.detach().to(state[name].device), state[name]
        if name == "deviation":
            target[:, :before] = source
            target[:, before:] = 0.0
        elif name == "heads.mix":
            target.copy_(source[:, rows])
        elif name in ("heads.own", "heads.own_bias"):
            target[..., columns] = source[:, rows][..., old_columns]
        elif name == "heads.bias":
            target.copy_(_aligned_bias(source[:, old_columns], target, columns, slots))
        elif name == "labels.embed":
            target[:, columns] = source[:, old_columns]
        elif name in ("heads.weight", "heads.pooled", "heads.basis"):
            target[..., columns] = source[..., old_columns]
        else:
            target.copy_(source)
    fresh.load_state_dict(state)
    return fresh


def _columns(old_slots: Mapping[str, Slot], slots: Mapping[str, Slot]) -> tuple[list[int], list[int]]:
    """Output columns of the same control and class in the old and in the new network."""
    pairs = [
        (old_slots[name].start + old_slots[name].space.classes.index(label), slot.start + index)
        for name, slot in slots.items()
        if name in old_slots and old_slots[name].space.kind is slot.space.kind
        for index, label in enumerate(slot.space.classes)
        if label in old_slots[name].space.classes
    ]
    return [old for old, _ in pairs], [new for _, new in pairs]


def _aligned_bias(
    source: torch.Tensor, fresh: torch.Tensor, columns: list[int], slots: Mapping[str, Slot]
) -> torch.Tensor:
    """The old biases (M, common), and for new classes the prior's, shifted by the mean difference of common ones."""
    bias = fresh.clone()  # (M, C)
    bias[:, columns] = source
    for slot in slots.values():
        here = range(slot.start, slot.stop)
        common, added = [c for c in here if c in set(columns)], [c for c in here if c not in set(columns)]
        if common and added:
            shift = (bias[:, common] - fresh[:, common]).mean(1, keepdim=True)
            bias[:, added] = fresh[:, added] + shift
    return bias
