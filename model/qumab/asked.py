"""Which queries a batch is asked about: in training those of who voted on a task, and the generic one.

All queries of a task read each other, so all of them pass through all blocks but the last, and give keys and values to
its self-attention. What comes after that, each query does alone; so there the others are left out, and where few of
many annotators vote on a task that is most of the last block. Queries that are asked for stand in one row, task after
task, without padding; only a product of the queries of a task with its tokens pads them.

Shape legend: M members, B tasks, Q queries (the last one generic), N queries asked for in all tasks, G the most that
one task asks for, n votes, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Asked:
    """The queries of each task that are answered for; the generic one is always among them."""

    these: Tensor  # (B, Q) bool
    task: Tensor  # (N,) int64
    query: Tensor  # (N,) int64
    padded: Tensor  # (B, G) int64 into N: those of each task, filled up with its generic one
    column: Tensor  # (N,) int64: where each stands among the G of its task
    back: Tensor  # (B, Q) int64 into N; the generic one's place for queries that are not asked

    @classmethod
    def of(
        cls, votes: Sequence[tuple[NDArray[np.integer], NDArray[np.integer]]], tasks: int, queries: int,
        device: torch.device,
    ) -> Asked | None:
        """From tasks (n,) and queries (n,) of the votes of each control; None where most queries are asked anyway."""
        these = np.zeros((tasks, queries), np.bool_)
        for row, query in votes:
            these[row, query] = True
        these[:, -1] = True
        task, query = np.nonzero(these)
        if 2 * len(task) > these.size:
            return None
        count = these.sum(1)
        end = np.cumsum(count)
        column = np.arange(len(task)) - np.repeat(end - count, count)
        generic = (end - 1)[:, None]
        padded = np.repeat(generic, int(count.max()), 1)
        padded[task, column] = np.arange(len(task))
        back = np.repeat(generic, queries, 1)
        back[task, query] = np.arange(len(task))
        return cls(*(torch.from_numpy(array).to(device) for array in (these, task, query, padded, column, back)))

    def pick(self, x: Tensor) -> Tensor:
        """Of the queries (M, b, Q, ...), b being B or 1, those asked for: (M, 1, N, ...)."""
        index = self.query if x.shape[1] == 1 else self.task * x.shape[2] + self.query
        return x.flatten(1, 2).index_select(1, index)[:, None]

    def pad(self, x: Tensor) -> Tensor:
        """(M, 1, N, ...) by task: (M, B, G, ...)."""
        return x[:, 0].index_select(1, self.padded.flatten()).view(len(x), *self.padded.shape, *x.shape[3:])

    def unpad(self, x: Tensor) -> Tensor:
        """Inverse of `pad`."""
        return x.flatten(1, 2).index_select(1, self.task * x.shape[2] + self.column)[:, None]

    def spread(self, x: Tensor) -> Tensor:
        """(M, 1, N, ...) to all queries, (M, B, Q, ...); what those get that were not asked means nothing."""
        return x[:, 0].index_select(1, self.back.flatten()).view(len(x), *self.back.shape, *x.shape[3:])

    def others_blank(self, logits: Tensor) -> Tensor:
        """Logits (M, B, Q, C) with 0 for queries that were not asked."""
        return logits * self.these[..., None]
