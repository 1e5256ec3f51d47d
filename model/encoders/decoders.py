"""`Decoder`: bytes of files -> pixels and waveforms. Encoders are given one, and so never open a file themselves.

`Inline` decodes where it is called. What comes from strangers is decoded by a process of its own with limits of memory
and time (`backend.decoding`), which offers the same.

Shape legend: N samples, F frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from model.errors import ContentError

if TYPE_CHECKING:
    from model.encoders.crops import Box
    from model.encoders.recordings import Frames


class Decoder(Protocol):
    """Every method raises ContentError with a sentence for a file that cannot be read."""

    def picture(self, data: bytes, *, size: int) -> NDArray[np.uint8]:
        """RGB (size, size, 3); see `pictures.read_picture`."""

    def crops(self, data: bytes, boxes: Sequence[Box]) -> list[bytes | ContentError]:
        """A PNG for each box, or why there is none; see `crops.crops`."""

    def sound(self, data: bytes) -> NDArray[np.float32]:
        """The waveform (N,); see `recordings.read_sound`."""

    def frames(self, data: bytes, *, frames: int, side: int) -> Frames:
        """At most `frames` frames (F, side, side, 3); see `recordings.read_frames`."""


class Inline:
    """Decodes in this process, without limits of its own."""

    def picture(self, data: bytes, *, size: int) -> NDArray[np.uint8]:
        """RGB (size, size, 3). Raises ContentError and MemoryError."""
        from model.encoders.pictures import read_picture

        return read_picture(data, size)

    def crops(self, data: bytes, boxes: Sequence[Box]) -> list[bytes | ContentError]:
        """A PNG for each box, or why there is none. Raises ContentError and MemoryError."""
        from model.encoders.crops import crops

        return crops(data, boxes)

    def sound(self, data: bytes) -> NDArray[np.float32]:
        """The waveform (N,). Raises ContentError and MemoryError."""
        from model.encoders.recordings import read_sound

        return read_sound(data)

    def frames(self, data: bytes, *, frames: int, side: int) -> Frames:
        """At most `frames` frames (F, side, side, 3). Raises ContentError and MemoryError."""
        from model.encoders.recordings import read_frames

        return read_frames(data, frames=frames, side=side)
