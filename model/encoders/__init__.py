"""Encoders: frozen models that turn content into tokens. Importing this package loads no torch; `text` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Encoder(Protocol):
    """What every encoder offers. Its output is a pure function of `id` and the content."""

    @property
    def id(self) -> str:
        """Name and hash of weights and settings; equal ids give equal features, so caches are keyed by it."""

    @property
    def dim(self) -> int:
        """D, the width of a token."""

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float16]]:
        """Tokens of each content, (T_i, D) with T_i >= 1, in the order given."""


@runtime_checkable
class LocatingEncoder(Protocol):
    """An encoder that knows which part of a text each token stands for."""

    def spans(self, text: str) -> NDArray[np.int64]:
        """(T, 2) from and to, in characters; empty for a token that stands for none. Raises ModelError."""


@runtime_checkable
class FallibleEncoder(Encoder, Protocol):
    """An encoder that reads more than it is given, such as files, and may find some of them missing."""

    def failures(self, contents: Sequence[str]) -> dict[str, str]:
        """content -> a sentence, for those that were not encoded whole: their tokens are used now but never kept."""
