"""Training of a query network: masked loss over given votes, each member early-stopped on units it never trains on.

Loss of member m for a vote v of annotator a on task b (nats, averaged over its weighted votes):

    w[m, v] [ (1 - g) l(z[m, b, a], v) + g l(z[m, b, generic], v) ],    w[m, v] = echo weight * n_a^(tau - 1), or 0

where l is cross-entropy (single choice) or the sum of Bernoulli losses (several choices) and g is `generic_share`: the
expectation of replacing an annotator at random by the generic query. A vote that was not given appears nowhere, and one
on a unit of a member's own fold weighs nothing for it.

Shape legend: M members, B units, Q queries, C classes, n votes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import NetworkConfig
from model.dataset import Targets
from model.qumab.batches import TokenStore, VoteTable
from model.qumab.network import QueryNetwork
from model.qumab.optimiser import FlatAdamW
from model.spaces import Space, ValueKind

_EVALUATION_UNITS = 128
_TRAINING_CELLS = 100_000_000  # numbers in one layer of a training step, 400 MB; only hundreds of annotators reach it
_EVALUATION_CELLS = 25_000_000
# No weight decay: what belongs to one annotator has a prior of its own (`penalty`).
_OWN = frozenset({"generic", "deviation", "heads.own", "heads.own_bias", "heads.mix", "heads.basis"})


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a control's classes stand among the network's outputs."""

    space: Space
    start: int
    stop: int


def lay_out(spaces: Mapping[str, Space]) -> dict[str, Slot]:
    """Controls side by side, in the order given."""
    slots, start = {}, 0
    for name, space in spaces.items():
        slots[name] = Slot(space, start, start + len(space.classes))
        start += len(space.classes)
    return slots


def vote_weights(targets: Targets, tau: float) -> NDArray[np.float64]:
    """Weight of each vote, (N,), with a mean of 1 for manual ones: an annotator with n votes weighs n^tau in all."""
    n = np.bincount(targets.annotator)[targets.annotator] if len(targets) else np.empty(0)
    share = n ** (tau - 1.0)
    return np.asarray(targets.weight * share / (share.mean() if len(share) else 1.0))


def vote_losses(space: Space, logits: Tensor, y: Tensor) -> Tensor:
    """Negative log-likelihood of each vote, (..., n), of logits and encoded votes (..., n, C)."""
    if space.kind is ValueKind.CLASS:
        return -(torch.log_softmax(logits, -1) * y).sum(-1)
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits, y.expand_as(logits), reduction="none"
    ).sum(-1)


def masked_loss(
    logits: Tensor, slots: Mapping[str, Slot], table: VoteTable, positions: NDArray[np.int64], generic_share: float
) -> Tensor:
    """Weighted sum of the losses of the votes on the units at `positions`, (M,); `logits` (M, B, Q, C)."""
    total = logits.new_zeros(len(logits))
    for name, votes in table.batch(positions, logits.device).items():
        slot = slots[name]
        mine = logits[..., slot.start : slot.stop]
        loss = (1.0 - generic_share) * vote_losses(slot.space, mine[:, votes.row, votes.annotator], votes.y)
        if generic_share:
            loss = loss + generic_share * vote_losses(slot.space, mine[:, votes.row, -1], votes.y)
        total = total + (loss * votes.weight).sum(-1)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How a training went."""

    epochs: int
    best_epoch: list[int]  # of each member; 0 is the state it came with
    validation: list[list[float]]  # nats a vote of each member, before training and after each epoch


def train(
    network: QueryNetwork, slots: Mapping[str, Slot], store: TokenStore, learn: VoteTable, validate: VoteTable,
    config: NetworkConfig, *, seed: int, epochs: int, progress: Callable[[float], None],
) -> History:
    """Train in place; each member ends with the weights of its best epoch (which may be those it came with).

    A member without votes to learn from stays as it is; one without validation votes ends where the last of the others
    does. Where no member can be validated, nothing changes.
    """
    members = len(learn.totals)
    usable = learn.totals > 0
    checked = usable & (validate.totals > 0)
    if not checked.any() or epochs < 1:
        return History(epochs=0, best_epoch=[0] * members, validation=[])
    shuffle = np.random.default_rng(seed)
    rng = torch.Generator(device=store.device).manual_seed(seed)
    size = units_at_once(network, store, learn.units, config.batch_units, _TRAINING_CELLS)
    steps_per_epoch = math.ceil(len(learn.units) / size)
    optimiser = FlatAdamW(
        network, steps=steps_per_epoch * epochs, learning_rate=config.learning_rate, weight_decay=config.weight_decay,
        undecayed=_OWN, clip=config.clip, ema=config.ema,
    )
    per_vote = torch.from_numpy(np.where(usable, 1.0 / np.maximum(learn.totals, 1e-9), 0.0)).float().to(store.device)
    prior = config.shrinkage / float(learn.totals.max())
    history = [evaluate(network, slots, store, validate)]
    best, best_epoch = optimiser.values.clone(), np.zeros(members, np.int64)
    for epoch in range(1, epochs + 1):
        for positions in _batches(learn.units, store.lengths, size, shuffle):
            logits = network(*store.batch(positions), rng=rng)
            data = masked_loss(logits, slots, learn, positions, config.generic_share) * per_vote
            optimiser.step(steps_per_epoch * data.sum() + prior * network.penalty())
        optimiser.swap()
        history.append(evaluate(network, slots, store, validate))
        better = checked & (history[-1] < np.array(history)[best_epoch, np.arange(members)])
        if better.any():
            better |= usable & ~checked
        best[better] = optimiser.values[better]
        best_epoch[better] = epoch
        optimiser.swap()
        progress(epoch / epochs)
        if (epoch - best_epoch[usable] >= config.patience).all():
            break
    optimiser.release(best)
    return History(
        epochs=len(history) - 1, best_epoch=best_epoch.tolist(), validation=[losses.tolist() for losses in history]
    )


def units_at_once(
    network: QueryNetwork, store: TokenStore, units: NDArray[np.int64], most: int, cells: int
) -> int:
    """How many of the units fit into a batch of about `cells` numbers in a layer; at most `most`, at least one."""
    queries, heads = network.members * (network.annotators + 1), network.config.heads
    longest = int(store.lengths[units].max(initial=1))
    each = queries * (heads * (longest + network.token_width) + 8 * network.config.width)
    return max(1, min(most, cells // each))


@torch.no_grad()
def evaluate(
    network: QueryNetwork, slots: Mapping[str, Slot], store: TokenStore, votes: VoteTable
) -> NDArray[np.float64]:
    """Mean weighted loss of each member, nats a vote, (M,)."""
    total = np.zeros(len(votes.totals))
    order = votes.units[np.argsort(store.lengths[votes.units], kind="stable")]
    size = units_at_once(network, store, order, _EVALUATION_UNITS, _EVALUATION_CELLS)
    for start in range(0, len(order), size):
        positions = np.sort(order[start : start + size])
        total += masked_loss(network(*store.batch(positions)), slots, votes, positions, 0.0).double().cpu().numpy()
    return np.asarray(total / np.maximum(votes.totals, 1e-9))


def _batches(
    units: NDArray[np.int64], lengths: NDArray[np.int64], size: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Random batches of units of similar length (sorted within stretches of eight batches), in random order."""
    order = rng.permutation(units)
    stretch = 8 * size
    for start in range(0, len(order), stretch):
        part = order[start : start + stretch]
        order[start : start + stretch] = part[np.argsort(lengths[part], kind="stable")]
    batches = [np.sort(order[start : start + size]) for start in range(0, len(order), size)]
    return [batches[index] for index in rng.permutation(len(batches))]
