"""Training of a query network: masked loss over given votes, each member early-stopped on units it never trains on.

Loss of member m for a vote v of annotator a on task b (nats, averaged over its weighted votes):

    w[m, v] [ (1 - g) l(z[m, b, a], v) + g l(z[m, b, generic], v) ],    w[m, v] = weight of v * n_a^(tau - 1), or 0

and, with label conditioning, `label_share` times the same of predictions that read a random part of the other votes;
l is cross-entropy (single choice) or the sum of Bernoulli losses (several choices) and g is `generic_share`: the
expectation of replacing an annotator at random by the generic query. A vote that was not given appears nowhere, and one
on a unit of a member's own fold weighs nothing for it.

Shape legend: M members, B units, Q queries, C classes, n votes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import NetworkConfig
from model.data.dataset import Targets
from model.data.numbers import NumberBins
from model.data.spaces import SingleChoice, Space, ValueKind
from model.qumab.asked import Asked
from model.qumab.batches import TokenStore, VoteBatch, VoteTable
from model.qumab.labels import GivenColumns, LabelTokens, tokens_of
from model.qumab.network import QueryNetwork
from model.qumab.optimiser import FlatAdamW
from model.qumab.slots import Slot

_EVALUATION_UNITS = 128
_IRRATIONAL = (0.6180339887498949, 0.7548776662466927, 0.5698402909980532)
_TRAINING_CELLS = 100_000_000  # numbers in one layer of a training step, 400 MB; only hundreds of annotators reach it
_EVALUATION_CELLS = 25_000_000
# No weight decay: what belongs to one annotator has a prior of its own (`penalty`).
_OWN = frozenset({"generic", "deviation", "heads.own", "heads.own_bias", "heads.mix", "heads.basis"})


def vote_weights(targets: Targets, tau: float) -> NDArray[np.float64]:
    """Weight of each vote, (N,), with a mean of 1 for manual ones: an annotator with n votes weighs n^tau in all."""
    n = np.bincount(targets.annotator)[targets.annotator] if len(targets) else np.empty(0)
    share = n ** (tau - 1.0)
    return np.asarray(targets.weight * share / (share.mean() if len(share) else 1.0))


_REACH = 0.3  # in classes; by simulated ordinal crowds (`python -m benchmarks.ordinal`)


def vote_losses(space: Space, logits: Tensor, y: Tensor) -> Tensor:
    """Negative log-likelihood of each vote, (..., n), of logits and encoded votes (..., n, C).

    A vote for one of several ordered classes stands a little for its neighbours too, exp(-distance / 0.3) normalised:
    an annotator might as well have given these. Base models and weights are judged by the plain likelihood all the
    same. The bins of numbers are learned as plain classes.
    """
    if space.kind is ValueKind.CLASS:
        if isinstance(space, SingleChoice) and space.ordered and not isinstance(space, NumberBins):
            place = torch.arange(y.shape[-1], device=y.device, dtype=y.dtype)
            y = y @ torch.softmax(-(place[:, None] - place).abs() / _REACH, 1)
        return -(torch.log_softmax(logits, -1) * y).sum(-1)
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits, y.expand_as(logits), reduction="none"
    ).sum(-1)


def masked_loss(
    logits: Tensor, slots: Mapping[str, Slot], table: VoteTable, positions: NDArray[np.int64], generic_share: float
) -> Tensor:
    """Weighted sum of the losses of the votes on the units at `positions`, (M,); `logits` (M, B, Q, C)."""
    return summed_loss(logits, slots, table.batch(positions, logits.device), generic_share)


def summed_loss(
    logits: Tensor, slots: Mapping[str, Slot], batch: Mapping[str, VoteBatch], generic_share: float,
    read: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Tensor:
    """The same for the votes of a batch. The generic query learns nothing from votes that it could `read` (n,)."""
    total = logits.new_zeros(len(logits))
    for name, votes in batch.items():
        slot = slots[name]
        mine = logits[..., slot.start : slot.stop]
        loss = (1.0 - generic_share) * vote_losses(slot.space, mine[:, votes.row, votes.annotator], votes.y)
        if generic_share:
            generic = vote_losses(slot.space, mine[:, votes.row, -1], votes.y)
            if read is not None:
                generic = generic * torch.from_numpy(~read[name]).to(generic)
            loss = loss + generic_share * generic
        total = total + (loss * votes.weight).sum(-1)
    return total


def draw_visible(
    batch: Mapping[str, VoteBatch], tasks: int, rng: np.random.Generator
) -> dict[str, NDArray[np.bool_]]:
    """Which votes of a batch may be read, (n,) by control: a share of each task's, itself drawn anew for each task."""
    share = rng.random(tasks)
    return {name: rng.random(len(votes.row)) < share[votes.row.cpu().numpy()] for name, votes in batch.items()}


def fixed_visible(batch: Mapping[str, VoteBatch], positions: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """The same as a function of unit and annotator alone, spread evenly: fractional parts of irrational multiples."""
    share, found = positions * _IRRATIONAL[0] % 1.0, {}
    for name, votes in batch.items():
        row, annotator = votes.row.cpu().numpy(), votes.annotator.cpu().numpy()
        found[name] = (positions[row] * _IRRATIONAL[1] + annotator * _IRRATIONAL[2]) % 1.0 < share[row]
    return found


def asked_by(batch: Mapping[str, VoteBatch], tasks: int, queries: int, device: torch.device) -> Asked | None:
    """The queries that the losses of a batch look at."""
    return Asked.of([(v.row.cpu().numpy(), v.annotator.cpu().numpy()) for v in batch.values()], tasks, queries, device)


def visible_tokens(
    batch: Mapping[str, VoteBatch], visible: Mapping[str, NDArray[np.bool_]], slots: Mapping[str, Slot], tasks: int,
    device: torch.device,
) -> LabelTokens | None:
    """Label tokens of the visible votes of a batch."""
    columns = {}
    for name, votes in batch.items():
        row, giver, y, trust = (part.cpu().numpy() for part in (votes.row, votes.annotator, votes.y, votes.trust))
        seen = visible[name]
        columns[name] = GivenColumns(row=row[seen], giver=giver[seen], y=y[seen], trust=trust[seen])
    return tokens_of(columns, slots, tasks, device)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How a training went."""

    epochs: int
    best_epoch: list[int]  # of each member; 0 is the state it came with
    validation: list[list[float]]  # nats a vote of each member, before training and after each epoch


def train(
    network: QueryNetwork, slots: Mapping[str, Slot], store: TokenStore, learn: VoteTable, validate: VoteTable,
    config: NetworkConfig, *, seed: int, epochs: int, progress: Callable[[float], None],
    latest: NDArray[np.int64] | None = None,
) -> History:
    """Train in place; each member ends with the weights of its best epoch (which may be those it came with).

    With `latest`, positions of units, an epoch is these and `config.replay` times as many others, drawn anew, or more
    until a batch is full; where `latest` is empty, nothing is learned. A member without votes to learn from stays as it
    is; one without validation votes ends where the last of the others does. Where no member can be validated, nothing
    changes.
    """
    usable = learn.totals > 0
    checked = usable & (validate.totals > 0)
    if not checked.any() or epochs < 1:
        return History(epochs=0, best_epoch=[0] * len(learn.totals), validation=[])
    shuffle, masks = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    rng = torch.Generator(device=store.device).manual_seed(seed)
    size = units_at_once(network, store, learn.units, config.batch_units, _TRAINING_CELLS)
    lesson = _Lesson.of(learn.units, latest, config.replay, size)
    steps_per_epoch = math.ceil(lesson.size / size)
    optimiser = FlatAdamW(
        network, steps=steps_per_epoch * epochs, learning_rate=config.learning_rate, weight_decay=config.weight_decay,
        undecayed=_OWN, clip=config.clip, ema=config.ema,
    )
    per_vote = torch.from_numpy(np.where(usable, 1.0 / np.maximum(learn.totals, 1e-9), 0.0)).float().to(store.device)
    prior = config.shrinkage / float(learn.totals.max())
    scale = steps_per_epoch * lesson.share  # a step's loss is as large as one over all units, which `prior` is for
    history = [evaluate(network, slots, store, validate)]
    best = _Best(optimiser.values, usable, checked)
    for epoch in range(1, epochs + 1):
        for positions in _batches(lesson.draw(shuffle), store.lengths, size, shuffle):
            batch = learn.batch(positions, store.device)
            data = _training_loss(network, slots, store, positions, batch, config, rng, masks) * per_vote
            optimiser.step(scale * data.sum() + prior * network.penalty())
        optimiser.swap()
        history.append(evaluate(network, slots, store, validate))
        best.look(history, optimiser.values)
        optimiser.swap()
        progress(epoch / epochs)
        if (epoch - best.epoch[usable] >= config.patience).all():
            break
    optimiser.release(best.values)
    return History(
        epochs=len(history) - 1, best_epoch=best.epoch.tolist(), validation=[losses.tolist() for losses in history]
    )


class _Best:
    """The weights (M, P) of each member's best epoch so far; 0 is the state that it came with."""

    def __init__(self, values: Tensor, usable: NDArray[np.bool_], checked: NDArray[np.bool_]) -> None:
        self.values, self.epoch = values.clone(), np.zeros(len(usable), np.int64)
        self._usable, self._checked = usable, checked

    def look(self, history: Sequence[NDArray[np.float64]], values: Tensor) -> None:
        """Keep the weights of the members whose newest loss is their least; those without one go with any of these."""
        members = np.arange(len(self.epoch))
        better = self._checked & (history[-1] < np.array(history)[self.epoch, members])
        if better.any():
            better |= self._usable & ~self._checked
        self.values[better] = values[better]
        self.epoch[better] = len(history) - 1


def _training_loss(
    network: QueryNetwork, slots: Mapping[str, Slot], store: TokenStore, positions: NDArray[np.int64],
    batch: Mapping[str, VoteBatch], config: NetworkConfig, rng: torch.Generator, masks: np.random.Generator,
) -> Tensor:
    """Loss of a step, (M,): of the prediction from content alone, and of that which also reads some of the votes."""
    tokens, mask = store.batch(positions)
    asked = asked_by(batch, len(positions), network.annotators + 1, store.device)
    if not config.labels:
        return summed_loss(network.both(tokens, mask, (), rng, asked)[0], slots, batch, config.generic_share)
    visible = draw_visible(batch, len(positions), masks)
    labels = visible_tokens(batch, visible, slots, len(positions), store.device)
    alone, given = network.both(tokens, mask, [labels], rng, asked)
    return summed_loss(alone, slots, batch, config.generic_share) + config.label_share * summed_loss(
        given, slots, batch, config.generic_share, visible
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
    """Mean weighted loss of each member, nats a vote, (M,); with label conditioning the mean of that without votes
    and that with some visible, the same ones at each call."""
    total = np.zeros(len(votes.totals))
    for members, units in votes.groups():
        order = units[np.argsort(store.lengths[units], kind="stable")]
        with network.only(members):
            size = units_at_once(network, store, order, _EVALUATION_UNITS, _EVALUATION_CELLS)
            for start in range(0, len(order), size):
                positions = np.sort(order[start : start + size])
                batch = votes.batch(positions, store.device, members)
                total[members] += _evaluated(network, slots, store, positions, batch)
    return np.asarray(total / np.maximum(votes.totals, 1e-9))


def _evaluated(
    network: QueryNetwork, slots: Mapping[str, Slot], store: TokenStore, positions: NDArray[np.int64],
    batch: Mapping[str, VoteBatch],
) -> NDArray[np.float64]:
    """Summed weighted loss of each member on one batch, (M,)."""
    asked, given = asked_by(batch, len(positions), network.annotators + 1, store.device), list[LabelTokens | None]()
    if network.config.labels:
        given = [visible_tokens(batch, fixed_visible(batch, positions), slots, len(positions), store.device)]
    ways = network.both(*store.batch(positions), given, asked=asked)
    return np.asarray(sum(summed_loss(way, slots, batch, 0.0).double().cpu().numpy() for way in ways) / len(ways))


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What an epoch goes through: always `fixed`, and `drawn` of the others.

    Where anything is new it is a full batch at least, if there are as many units: Adam's first steps are as long for
    the gradient of two units as for that of thirty, and would mostly be noise.
    """

    fixed: NDArray[np.int64]
    others: NDArray[np.int64]
    drawn: int

    @classmethod
    def of(
        cls, units: NDArray[np.int64], latest: NDArray[np.int64] | None, replay: float, batch: int
    ) -> _Lesson:
        if latest is None:
            return cls(units, units[:0], 0)
        fixed, others = np.intersect1d(units, latest), np.setdiff1d(units, latest)
        drawn = max(math.ceil(replay * len(fixed)), batch - len(fixed)) if len(fixed) else 0
        return cls(fixed, others, min(len(others), drawn))

    @property
    def size(self) -> int:
        return len(self.fixed) + self.drawn

    @property
    def share(self) -> float:
        """All units by those of an epoch."""
        return (len(self.fixed) + len(self.others)) / max(self.size, 1)

    def draw(self, rng: np.random.Generator) -> NDArray[np.int64]:
        if not self.drawn:
            return self.fixed
        return np.sort(np.concatenate([self.fixed, rng.choice(self.others, self.drawn, replace=False)]))


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
