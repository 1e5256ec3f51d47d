"""Features: text in, tokens out, each text encoded once while it is cached.

Invariants: `texts(ts)[i]` belongs to `ts[i]`; equal texts are encoded once; the cache never decides what is answered,
only how fast. The encoder is made on first need, once a process, by a factory; a process that asks for what is cached
under an id it knows never loads it.

Shape legend: T_i tokens of text i, D dimension of the encoder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backend.labeling.content import unpack
from backend.ports import Progress
from backend.services.token_cache import TokenCache
from model.errors import ModelError

if TYPE_CHECKING:
    from model.encoders import Encoder

Tokens = NDArray[np.float16]  # (T_i, D)


class Features:
    """A `ports.TokenSource` over an encoder and an LMDB cache. Safe for threads; processes share the folder."""

    def __init__(
        self, *, encoder_factory: Callable[[], Encoder], folder: Path, max_mb: float, batch_size: int = 64,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._factory = encoder_factory
        self._cache = TokenCache(folder, max_mb=max_mb)
        self._batch_size = batch_size
        self._seconds = seconds
        self._starting = threading.Lock()
        self._encoder: Future[Encoder] | None = None
        self._encoding = threading.Lock()  # tokenizers refuse two threads at once

    def texts(self, texts: Sequence[str], *, progress: Progress | None = None) -> list[Tokens]:
        """Tokens (T_i, D) of each text, in order; what is not cached is encoded in batches and then cached."""
        known = self._lookup(texts, self.encoder_id)
        missing = _shortest_first(text for text in texts if text not in known)
        for begin in range(0, len(missing), self._batch_size):
            if progress is not None:
                progress(begin / len(missing), f"encoded {begin} of {len(missing)} texts")
            known.update(self._encode(missing[begin : begin + self._batch_size]))
        if progress is not None:
            progress(1.0, f"encoded {len(missing)} of {len(missing)} texts")
        return [known[text] for text in texts]

    def texts_within(self, texts: Sequence[str], *, encoder_id: str, seconds: float) -> list[Tokens | None]:
        """Tokens made by the encoder `encoder_id`, as far as they can be had within `seconds`; None for the others.

        Cached tokens are always returned, without loading the encoder. The others are encoded while time remains and
        only where `encoder_id` is the encoder of this process. A batch that has begun is finished, so batches are small
        here; an encoder that is still loading when time is over goes on, and the next call finds it.
        """
        until = self._seconds() + seconds
        known = self._lookup(texts, encoder_id)
        missing = _shortest_first(text for text in texts if text not in known)
        if missing and self._loaded_until(until) == encoder_id:
            for begin in range(0, len(missing), 8):
                if self._seconds() >= until:
                    break
                known.update(self._encode(missing[begin : begin + 8], until=until))
        return [known.get(text) for text in texts]

    def known(self, texts: Sequence[str], *, encoder_id: str) -> list[Tokens | None]:
        """Tokens made by the encoder `encoder_id` that are cached, None for the others; loads and encodes nothing."""
        found = self._lookup(texts, encoder_id)
        return [found.get(text) for text in texts]

    def cached(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text has tokens in the cache."""
        known = self._lookup(texts, self.encoder_id)
        return [text in known for text in texts]

    def failures(self, texts: Sequence[str]) -> dict[str, str]:
        """text -> a sentence, for those of which a file could not be read when this process last tried; loads nothing.
        """
        if self._encoder is None or not self._encoder.done():
            return {}
        return _failures(self._encoder.result(), texts)

    def spans(self, text: str, *, seconds: float | None = None) -> NDArray[np.int64] | None:
        """Where the tokens of a text stand in it, (T, 2); None when the encoder is not free within `seconds`.

        Raises ModelError for an encoder that cannot say.
        """
        from model.encoders import LocatingEncoder

        until = None if seconds is None else self._seconds() + seconds
        if until is not None and self._loaded_until(until) is None:
            return None
        encoder = self._start().result()
        if not isinstance(encoder, LocatingEncoder):
            raise ModelError("this text encoder does not say where its tokens stand")
        if not self._encoding.acquire(timeout=-1.0 if until is None else max(until - self._seconds(), 0.0)):
            return None
        try:
            return encoder.spans(text)
        finally:
            self._encoding.release()

    @property
    def encoder_id(self) -> str:
        """The id of the encoder; loads it when that has not happened yet."""
        return self._start().result().id

    def close(self) -> None:
        """Close the cache."""
        self._cache.close()

    def _start(self) -> Future[Encoder]:
        """The encoder that is or will be loaded. A load that failed is tried again by the next caller."""
        with self._starting:
            failed = self._encoder is not None and self._encoder.done() and self._encoder.exception() is not None
            if self._encoder is None or failed:
                loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")
                self._encoder = loader.submit(self._factory)
                loader.shutdown(wait=False)  # the one thread ends after the load
            return self._encoder

    def _loaded_until(self, until: float) -> str | None:
        """The id of the encoder, None when it is not loaded by then."""
        starting = self._start()
        try:
            return starting.result(timeout=max(until - self._seconds(), 0.0)).id
        except TimeoutError:
            if starting.done():  # the factory itself failed with a time-out: not ours to hide
                raise
            return None

    def _lookup(self, texts: Sequence[str], encoder_id: str) -> dict[str, Tokens]:
        unique = list(dict.fromkeys(texts))
        found = self._cache.get(encoder_id, unique)
        return {text: tokens for text, tokens in zip(unique, found, strict=True) if tokens is not None}

    def _encode(self, batch: list[str], *, until: float | None = None) -> dict[str, Tokens]:
        """Encode and cache one batch; nothing when the encoder stays busy with somebody else's texts until `until`."""
        encoder = self._start().result()
        patience = -1.0 if until is None else max(until - self._seconds(), 0.0)
        if not self._encoding.acquire(timeout=patience):
            return {}
        try:
            tokens = encoder.encode(batch)
        finally:
            self._encoding.release()
        whole = _whole(encoder, batch)
        self._cache.put(encoder.id, [batch[row] for row in whole], [tokens[row] for row in whole])
        return dict(zip(batch, tokens, strict=True))


def _whole(encoder: Encoder, batch: Sequence[str]) -> list[int]:
    """Rows of a batch that were encoded whole. Tokens that lack a file must not stay when the file is there again."""
    failed = _failures(encoder, batch)
    return [row for row, text in enumerate(batch) if text not in failed]


def _failures(encoder: Encoder, texts: Sequence[str]) -> dict[str, str]:
    from model.encoders import FallibleEncoder

    return encoder.failures(texts) if isinstance(encoder, FallibleEncoder) else {}


def _shortest_first(texts: Iterable[str]) -> list[str]:
    """Unique texts by length: a batch of similar lengths is padded little, and a deadline is met by the most texts.
    Those with media come last, by where these are: parts of a picture that share a batch share its decoding."""

    def place(packed: str) -> tuple[list[tuple[str, str, int]], int]:
        content = unpack(packed)
        return [(one.modality, one.address, content.task or 0) for one in content.media], len(packed)

    return sorted(dict.fromkeys(texts), key=place)
