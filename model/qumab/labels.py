"""Label conditioning: annotator queries read the votes that a unit already has.

A given vote is a static token, the giver's query plus an embedding of what they said. After the last block every query
reads the tokens of its unit once, beside a sink that stands for "nothing of interest", so that few votes say little:

    h'[q] = h[q] + sum_g softmax_g(h[q] K t[g]; sink) V t[g] W_out,      t[g] = query of the giver + E[label]

Invariants: tokens read nothing; the token of an annotator is hidden from their own query, and votes of unknown givers
are hidden from the generic query, which answers for them; no query reads another one after a label was read, since
the reading is the last thing that happens. So no vote can come back to its giver. A unit without votes gets h' = h.

Shape legend: M members, B tasks, Q = A + 1 queries, G label tokens of a task, H heads, e = d / H, d width, C classes of
all controls side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.config import NetworkConfig
from model.qumab.asked import Asked
from model.qumab.attention import dropout, normal, project, standard
from model.qumab.slots import Slot


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """Given votes on B tasks, padded to G."""

    giver: Tensor  # (B, G) query of who gave it; the last query for anybody unknown
    y: Tensor  # (B, G, C) what was said, 0 outside the control; 0 for padding
    log_trust: Tensor  # (B, G) log of how much the vote says; -inf for padding


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenColumns:
    """Votes of one control that may be read, as columns."""

    row: NDArray[np.integer]  # (n,) task in the batch
    giver: NDArray[np.integer]  # (n,) query, the last one for anybody unknown
    y: NDArray[np.floating]  # (n, C of the control)
    trust: NDArray[np.floating]  # (n,) how much a vote says


def tokens_of(
    given: Mapping[str, GivenColumns], slots: Mapping[str, Slot], tasks: int, device: torch.device
) -> LabelTokens | None:
    """Tokens of the votes of several controls on B tasks; None when there are none."""
    classes = sum(slot.stop - slot.start for slot in slots.values())
    parts = [(part, slots[name].spread(part.y, classes)) for name, part in given.items() if len(part.row)]
    if not parts:
        return None
    return label_tokens(
        np.concatenate([part.row for part, _ in parts]), np.concatenate([part.giver for part, _ in parts]),
        np.concatenate([y for _, y in parts]), np.concatenate([part.trust for part, _ in parts]), tasks, device,
    )


def label_tokens(
    row: NDArray[np.integer], giver: NDArray[np.integer], y: NDArray[np.floating], trust: NDArray[np.floating],
    tasks: int, device: torch.device,
) -> LabelTokens:
    """Tokens from n >= 1 votes: task (n,), giver (n,), what was said (n, C), trust (n,)."""
    order = np.argsort(row, kind="stable")
    row = row[order]
    count = np.bincount(row, minlength=tasks)
    place = np.arange(len(row)) - (np.cumsum(count) - count)[row]
    shape = (tasks, int(count.max()))
    givers = np.zeros(shape, np.int64)
    said = np.zeros((*shape, y.shape[1]), np.float32)
    log_trust = np.full(shape, -np.inf, np.float32)
    givers[row, place], said[row, place] = giver[order], y[order]
    log_trust[row, place] = np.log(np.maximum(trust[order], 1e-6))
    return LabelTokens(*(torch.from_numpy(array).to(device) for array in (givers, said, log_trust)))


class LabelReader(nn.Module):
    """Queries read label tokens: (M, B, Q, d) -> (M, B, Q, d)."""

    def __init__(self, members: int, classes: int, config: NetworkConfig, rng: torch.Generator) -> None:
        super().__init__()
        d, self.heads, self.share = config.width, config.heads, config.dropout
        scale = 1.0 / math.sqrt(d)
        self.embed = normal((members, classes, d), 1.0, rng)
        self.query = normal((members, d, d), scale, rng)
        self.key = normal((members, d, d), scale, rng)
        self.value = normal((members, d, d), scale, rng)
        self.out = normal((members, d, d), 0.5 * scale, rng)
        self.sink = nn.Parameter(torch.zeros(members, self.heads))

    def forward(
        self, h: Tensor, queries: Tensor, labels: LabelTokens, rng: torch.Generator | None, asked: Asked | None = None
    ) -> Tensor:
        """`h` (M, B, Q, d), or (M, 1, N, d) of those asked for, after the last block; `queries` (M, 1, Q, d) before
        the first."""
        t = queries[:, 0][:, labels.giver] + torch.einsum("bgc,mcd->mbgd", labels.y, self.embed)  # (M, B, G, d)
        t = standard(t)
        q = project(standard(h), self.query)
        q = q if asked is None else asked.pad(q)
        members, tasks, n_queries, width = q.shape
        q = q.view(members, tasks, n_queries, self.heads, width // self.heads)
        k = project(t, self.key).view(members, tasks, -1, self.heads, q.shape[-1])
        v = project(t, self.value).view(k.shape)
        scores = torch.einsum("mbqhe,mbghe->mbhqg", q / math.sqrt(q.shape[-1]), k)
        reader = torch.arange(n_queries, device=h.device)[None] if asked is None else asked.query[asked.padded]
        own = labels.giver[:, None] == reader[..., None]  # (B, Q, G)
        unread = labels.log_trust[:, None].masked_fill(own, -torch.inf)
        scores = scores + unread[:, None]
        sink = self.sink[:, None, :, None, None].expand(-1, tasks, -1, n_queries, 1)
        weights = torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]
        read = torch.einsum("mbhqg,mbghe->mbqhe", weights, v).flatten(3)
        read = read if asked is None else asked.unpad(read)
        return h + dropout(project(read, self.out), self.share, rng)
