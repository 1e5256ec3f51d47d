"""What a training step eats: padded tokens of some units, and their votes.

Tokens stay in memory (on the device) as one flat array while they fit; otherwise they are fetched batch by batch.

Shape legend: B units of a batch, T tokens, D token width, N votes of a control, n of them in a batch, M members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.data.dataset import Targets, Tokens, check_tokens

_MB = 1 << 20
_STATISTICS_TOKENS = 50_000  # enough to standardise tokens by


def pad(tokens: Sequence[Tokens], device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens of B units, (B, T, D) float16, and which of them are real, (B, T) bool."""
    lengths = np.array([len(array) for array in tokens])
    mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
    padded = np.zeros((*mask.shape, tokens[0].shape[1]), np.float16)
    padded[mask] = np.concatenate(tokens)
    return torch.from_numpy(padded).to(device), torch.from_numpy(mask).to(device)


class TokenStore:
    """Tokens of a fixed list of units by position; the units of the mask `trained` say how to standardise them.

    Raises ModelError for unusable tokens when it is built.
    """

    def __init__(
        self, units: Sequence[str], tokens: Callable[[Sequence[str]], list[Tokens]], *, trained: NDArray[np.bool_],
        resident_mb: int, device: torch.device,
    ) -> None:
        self.units = tuple(units)
        self.device = device
        self._fetch = tokens
        self._flat: Tensor | None = None
        self.lengths = np.zeros(len(units), np.int64)
        parts: list[Tokens] | None = []
        means, statistics, size, dim = [], np.zeros((3, 1)), 0, None
        for start in range(0, len(units), 512):
            names = self.units[start : start + 512]
            arrays = tokens(names)
            dim = check_tokens(names, arrays, dim)
            self.lengths[start : start + len(names)] = [len(array) for array in arrays]
            means.append(np.stack([array.mean(0, dtype=np.float32) for array in arrays]))
            if statistics[0, 0] < _STATISTICS_TOKENS:
                learned = [array for array, on in zip(arrays, trained[start:], strict=False) if on]
                flat = np.concatenate([np.empty((0, dim)), *learned])
                statistics = statistics + np.stack([np.full(dim, len(flat)), flat.sum(0), np.square(flat).sum(0)])
            size += sum(array.nbytes for array in arrays)
            parts = None if parts is None or size > resident_mb * _MB else [*parts, np.concatenate(arrays)]
        self.dim = check_tokens((), (), dim)
        self.mean_tokens = np.concatenate(means)  # (U, D)
        count = np.maximum(statistics[0], 1)
        self.centre = statistics[1] / count  # (D,)
        self.scale = 1.0 / np.sqrt(np.maximum(statistics[2] / count - np.square(self.centre), 1e-6))  # (D,)
        if parts is not None:
            self._flat = torch.from_numpy(np.concatenate(parts).astype(np.float16)).to(device)
        self._start = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    def batch(self, positions: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """(B, T, D) float16 and the mask (B, T)."""
        if self._flat is None:
            return pad(self._fetch([self.units[position] for position in positions]), self.device)
        lengths = self.lengths[positions]
        column = np.arange(lengths.max())
        mask = column < lengths[:, None]
        rows = torch.from_numpy(np.where(mask, self._start[positions][:, None] + column, 0)).to(self.device)
        return self._flat[rows], torch.from_numpy(mask).to(self.device)


@dataclass(frozen=True, slots=True)
class VoteBatch:
    """Votes of one control on the units of a batch."""

    row: Tensor  # (n,) position in the batch
    annotator: Tensor  # (n,)
    y: Tensor  # (n, C)
    weight: Tensor  # (M, n): how much each member makes of a vote
    trust: Tensor  # (n,) how much it says about other votes: an accepted suggestion says less


class VoteTable:
    """Votes of several controls, found by unit, each with a weight for every member."""

    def __init__(self, controls: Mapping[str, Targets], weights: Mapping[str, NDArray[np.floating]]) -> None:
        """`weights` (M, N) of each control."""
        self.controls = {}
        for name, targets in controls.items():
            order = np.argsort(targets.unit, kind="stable")
            self.controls[name] = (
                targets.unit[order], targets.annotator[order], targets.y[order],
                np.ascontiguousarray(weights[name][:, order], dtype=np.float32), targets.weight[order],
            )
        used = [unit[(weight > 0).any(0)] for unit, _, _, weight, _ in self.controls.values()]
        self.units = np.unique(np.concatenate([*used, np.empty(0, np.int64)]))
        sums = [weight.sum(1, dtype=np.float64) for *_, weight, _ in self.controls.values()]
        self.totals = np.sum(sums, axis=0)  # (M,)

    def groups(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Members that share their units, with these units: votes on others weigh nothing for them."""
        members: dict[bytes, list[int]] = {}
        for member in range(len(self.totals)):
            used = [unit[weight[member] > 0] for unit, _, _, weight, _ in self.controls.values()]
            units = np.unique(np.concatenate([*used, np.empty(0, np.int64)]))
            members.setdefault(units.tobytes(), []).append(member)
        return [(np.array(who), np.frombuffer(units, np.int64)) for units, who in members.items()]

    def batch(
        self, positions: NDArray[np.int64], device: torch.device, members: NDArray[np.int64] | None = None
    ) -> dict[str, VoteBatch]:
        """The votes on the units at these positions, with the weights of some members or of all; controls without any
        are left out."""
        found = {}
        for name, (unit, annotator, y, weight, trust) in self.controls.items():
            first, last = np.searchsorted(unit, positions, "left"), np.searchsorted(unit, positions, "right")
            count = last - first
            if not count.sum():
                continue
            within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            rows = np.repeat(first, count) + within
            row = np.repeat(np.arange(len(positions)), count)
            own = weight[:, rows] if members is None else weight[np.ix_(members, rows)]
            columns = (row, annotator[rows], y[rows], own, trust[rows])
            found[name] = VoteBatch(*(torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in columns))
        return found
