"""Several query networks that answer as one: each was early-stopped on another fold, their scores are averaged.

Averaging is what makes a small network trained from scratch on few votes beat a linear model; and the members of a fold
give an honest prediction for it, since they never trained on it.

Shape legend: M members, B units, Q = A + 1 queries (the last one generic), C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import NetworkConfig
from model.data.dataset import Tokens
from model.data.spaces import Space, ValueKind
from model.qumab.asked import Asked
from model.qumab.batches import pad
from model.qumab.builds import build_network
from model.qumab.labels import GivenColumns, LabelTokens, tokens_of
from model.qumab.network import QueryNetwork
from model.qumab.readings import Read, Readings, key_of
from model.qumab.slots import lay_out

Floats = NDArray[np.float64]
_CELLS = 4_000_000  # numbers held at once in one layer; larger batches are hardly faster and cost 140 MB more
_MAX_UNITS = 256
_KEPT_AT_ONCE = 32  # units of a request; what larger work reads is not kept


class Committee:
    """A trained network of M members with the controls that it answers for."""

    def __init__(self, network: QueryNetwork, spaces: Mapping[str, Space], *, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.network = network.to(self.device).eval().requires_grad_(False)
        self.slots = lay_out(spaces)
        self._readings: Readings | None = None

    def keep_readings(self, most_bytes: int) -> None:
        """From now on what was read of units stays, within so many bytes, for the next votes on them. For who answers
        one request after another; the network may not be trained any more."""
        if self._readings is None:
            self._readings = Readings(most_bytes)

    def scores(self, tokens: Sequence[Tokens]) -> dict[str, Floats]:
        """control -> scores (B, Q, C), the mean over the members."""
        return self.scores_given(tokens, None)[0]

    def scores_given(
        self, tokens: Sequence[Tokens], given: Mapping[str, GivenColumns] | None
    ) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The same from content alone, and with the given votes of each control read; `row` counts the B units.

        Without given votes, or with networks that do not read any, both are one.
        """
        queries = self.network.annotators + 1
        read = bool(given) and self.network.config.labels
        alone = {name: np.empty((len(tokens), queries, s.stop - s.start)) for name, s in self.slots.items()}
        with_votes = {name: np.empty_like(array) for name, array in alone.items()} if read else alone
        lengths = np.array([len(array) for array in tokens], dtype=np.int64)
        for rows in self.split(np.argsort(lengths, kind="stable"), lengths):
            labels = [tokens_of(_among(given, rows), self.slots, len(rows), self.device)] if given and read else []
            parts = [tokens[row] for row in rows]
            said = (self._said(parts, labels) if self._readings is not None and len(tokens) <= _KEPT_AT_ONCE
                    else self.member_scores(*pad(parts, self.device), labels))
            for found, scores in zip((alone, with_votes), said, strict=False):
                for name, array in scores.items():
                    found[name][rows] = array.mean(0)
        return alone, with_votes

    @torch.inference_mode()
    def member_scores(
        self, tokens: Tensor, mask: Tensor, given: Sequence[LabelTokens | None] = (), asked: Asked | None = None
    ) -> list[dict[str, Floats]]:
        """control -> scores of every member (M, B, Q, C) for one padded batch: from content alone, and with each of
        several sets of given votes. With `asked`, those of other queries mean nothing."""
        return [self._split_up(logits.double()) for logits in self.network.both(tokens, mask, given, asked=asked)]

    @torch.inference_mode()
    def _said(self, tokens: Sequence[Tokens], given: Sequence[LabelTokens | None]) -> list[dict[str, Floats]]:
        """As `member_scores`, of units that are read only where that was not kept."""
        assert self._readings is not None
        keys = [key_of(array) for array in tokens]
        found = {key: read for key in keys if (read := self._readings.find(key)) is not None}
        new = {key: array for key, array in zip(keys, tokens, strict=True) if key not in found}
        if new:
            read = self.network.read_content(*pad(list(new.values()), self.device))
            for key, one in zip(new, read.each(), strict=True):
                self._readings.keep(key, one)
                found[key] = one
        read = Read.together([found[key] for key in keys])
        return [self._split_up(logits.double()) for logits in self.network.said(read, given)]

    def _split_up(self, logits: Tensor) -> dict[str, Floats]:
        found = {}
        for name, slot in self.slots.items():
            part = logits[..., slot.start : slot.stop]
            found[name] = (torch.log_softmax(part, -1) if slot.space.kind is ValueKind.CLASS else part).cpu().numpy()
        return found

    def split(self, order: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Batches of `order`, whose units are sorted by length, that fit in memory."""
        network = self.network
        members, queries, heads = network.members, network.annotators + 1, network.config.heads
        fixed = members * queries * (heads * network.token_width + 8 * network.config.width)
        start = 0
        while start < len(order):
            block = order[start : start + _MAX_UNITS]
            cells = lengths[block] * (members * queries * heads + network.token_width) + fixed
            size = max(1, int((cells * np.arange(1, len(block) + 1) <= _CELLS).sum()))
            yield block[:size]
            start += size

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Parameters and buffers by name, for a checkpoint."""
        return {name: tensor.cpu().numpy() for name, tensor in self.network.state_dict().items()}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], *, members: int, annotators: int, spaces: Mapping[str, Space],
        dim: int, config: NetworkConfig, device: str = "cpu",
    ) -> Committee:
        """Inverse of `arrays`. Raises KeyError or RuntimeError when they do not fit."""
        classes = sum(len(space.classes) for space in spaces.values())
        untrained = replace(config, pretrained="")  # the arrays hold everything
        network = build_network(members, annotators, classes, dim, untrained, torch.Generator().manual_seed(0))
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        return cls(network, spaces, device=device)


def _among(given: Mapping[str, GivenColumns], rows: NDArray[np.integer]) -> dict[str, GivenColumns]:
    """The votes on these units, counted within them."""
    found = {}
    for name, part in given.items():
        order = np.argsort(rows, kind="stable")
        at = np.searchsorted(rows[order], part.row).clip(max=len(rows) - 1)
        here = rows[order][at] == part.row
        found[name] = GivenColumns(
            row=order[at[here]], giver=part.giver[here], y=part.y[here], trust=part.trust[here]
        )
    return found
