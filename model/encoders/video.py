"""Video encoder: a few tokens of each of a few frames, by the image encoder; the sound goes through the sound encoder.

Frames are spread evenly over the time that is shown. Of each, the grid of the image encoder is averaged to its four
quarters, so that a video has `FRAMES` x 4 tokens and a cache of many videos stays small.

Shape legend: F frames, T = 4 F tokens of one video, D dim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.encoders.decoders import Decoder, Inline
from model.encoders.image import ImageEncoder
from model.errors import ContentError

FRAMES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Tokens of a video and when each is shown."""

    tokens: NDArray[np.float16]  # (T, D)
    seconds: NDArray[np.float32]  # (T,)


class VideoEncoder:
    """Videos as bytes -> `Seen`."""

    def __init__(self, images: ImageEncoder, *, frames: int = FRAMES, decoder: Decoder | None = None) -> None:
        """`decoder` None: this process decodes."""
        self._decoder = decoder or Inline()
        self._images = images
        self._frames = frames
        self.dim = images.dim
        self.id = f"frames{frames}-{images.id}"

    def encode(self, videos: Sequence[bytes]) -> list[Seen | ContentError]:
        """Tokens of each video, in order; for one that cannot be read the error that says why."""
        found: list[Seen | ContentError] = []
        for data in videos:
            try:
                frames = self._decoder.frames(data, frames=self._frames, side=self._images.side)
            except ContentError as error:
                found.append(error)
                continue
            quarters = _quarters(self._images.encode_pixels(frames.pixels))  # (F, Q, D)
            tokens = quarters.reshape(-1, self.dim)
            seconds = np.repeat(frames.seconds, quarters.shape[1]).astype(np.float32)
            found.append(Seen(tokens=tokens, seconds=seconds))
        return found


def _quarters(tokens: NDArray[np.float16]) -> NDArray[np.float16]:
    """(F, T, D) -> (F, 4, D) where tokens are a square grid of at least 2 x 2, else their mean (F, 1, D)."""
    side = math.isqrt(tokens.shape[1])
    wide = tokens.astype(np.float32)
    if side * side != tokens.shape[1] or side < 2:
        whole: NDArray[np.float16] = wide.mean(1, keepdims=True).astype(np.float16)
        return whole
    grid = wide.reshape(len(tokens), side, side, -1)
    halves = (slice(0, (side + 1) // 2), slice(side // 2, side))
    parts = [grid[:, rows, columns].mean((1, 2)) for rows in halves for columns in halves]
    quarters: NDArray[np.float16] = np.stack(parts, 1).astype(np.float16)
    return quarters
