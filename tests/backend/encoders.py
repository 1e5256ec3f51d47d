"""A tiny deterministic encoder for tests: every word becomes a vector drawn from a generator seeded by its hash.

Like the real one it gives one token a word and at least one token a text; unlike it, it needs no weights and takes
microseconds. The same word has the same vector in every process, so a small network can learn what words mean.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.encoders.decoders import Inline
from model.errors import ContentError


class WordHashEncoder:
    """`model.encoders.Encoder` over hashed words. `calls` keeps every batch, so that tests can count the work."""

    def __init__(self, dim: int = 32, *, name: str = "word-hash") -> None:
        self.id = f"{name}-{dim}"
        self.dim = dim
        self.calls: list[list[str]] = []
        self._lock = threading.Lock()
        self._words: dict[str, NDArray[np.float16]] = {}

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float16]]:
        """Tokens (T_i, D), T_i = number of words, at least 1."""
        with self._lock:
            self.calls.append(list(texts))
        return [np.stack([self._word(word) for word in text.lower().split() or [""]]) for text in texts]

    def spans(self, text: str) -> NDArray[np.int64]:
        """(T, 2) where each word stands."""
        found = [match.span() for match in re.finditer(r"\S+", text)]
        return np.array(found or [(0, 0)], np.int64)

    @property
    def encoded(self) -> list[str]:
        """All texts encoded so far, in order."""
        return [text for batch in self.calls for text in batch]

    def _word(self, word: str) -> NDArray[np.float16]:
        if word not in self._words:
            self._words[word] = self._vector(word)
        return self._words[word]

    def _vector(self, word: str) -> NDArray[np.float16]:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self.dim)
        return (vector / np.linalg.norm(vector)).astype(np.float16)  # (D,)


class AsIs(Inline):
    """A decoder whose parts of a picture are the whole file."""

    def crops(self, data: bytes, boxes: Sequence[Sequence[float]]) -> list[bytes | ContentError]:
        return [data for _ in boxes]
