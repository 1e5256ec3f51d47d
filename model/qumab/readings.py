"""What a network has read of tasks, kept for a while: votes are read after the content, so that an answer after a new
vote needs no second reading of a task that nobody changed.

Invariants: a task is known by a digest of its tokens; the last that were used stay, within a bound of bytes; what a
network read is that network's own, and its parameters must not change any more.

Shape legend: M members, B tasks, Q queries, T tokens, D token width, d width, C classes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from model.data.dataset import Tokens


@dataclass(frozen=True, slots=True)
class Read:
    """Some tasks, as they are before any vote is read."""

    h: Tensor  # (M, B, Q, d) queries after the last block
    mean_token: Tensor  # (B, D)
    alone: Tensor  # (M, B, Q, C) logits from content alone

    def each(self) -> list[Read]:
        """Of each task, in memory of its own."""
        return [Read(self.h[:, [at]], self.mean_token[[at]], self.alone[:, [at]]) for at in range(len(self.mean_token))]

    @classmethod
    def together(cls, parts: Sequence[Read]) -> Read:
        """The inverse of `each`."""
        if len(parts) == 1:
            return parts[0]
        return cls(torch.cat([part.h for part in parts], 1), torch.cat([part.mean_token for part in parts]),
                   torch.cat([part.alone for part in parts], 1))

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(part.nbytes for part in (self.h, self.mean_token, self.alone))


class Readings:
    """Safe for threads."""

    def __init__(self, most_bytes: int) -> None:
        """At most so many bytes."""
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Read] = OrderedDict()
        self._bytes = 0

    def find(self, key: bytes) -> Read | None:
        """What was read of the task with these tokens."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: bytes, read: Read) -> None:
        """Of one task."""
        with self._lock:
            before = self._kept.pop(key, None)
            self._kept[key] = read
            self._bytes += read.size - (0 if before is None else before.size)
            while self._bytes > self._most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1].size


def key_of(tokens: Tokens) -> bytes:
    """What tells the tokens (T, D) of one task from those of another."""
    head = f"{tokens.dtype.str} {tokens.shape}".encode()
    return blake2b(head + np.ascontiguousarray(tokens).tobytes(), digest_size=16).digest()
