"""Small recordings made on the spot."""

from __future__ import annotations

import io
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np


def tone(
    seconds: float = 1.0, hertz: float = 440.0, rate: int = 22_050, form: str = "wav", codec: str = "pcm_s16le"
) -> bytes:
    """A sine of one pitch."""
    wave = (np.sin(np.arange(int(rate * seconds)) * 2 * np.pi * hertz / rate) * 20_000).astype(np.int16)
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(wave.reshape(1, -1), format="s16", layout="mono")
        frame.rate = rate
        size = stream.frame_size or 1024
        resampler = av.AudioResampler(format=stream.format, layout="mono", rate=rate, frame_size=size)
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return file.getvalue()


def clip(
    greys: Sequence[int], rate: int = 10, form: str = "mp4", codec: str = "mpeg4", gap_after: int | None = None
) -> bytes:
    """A video of one grey a frame; after `gap_after` frames nothing new is shown for ten seconds."""
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index, grey in enumerate(greys):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), grey, np.uint8), format="rgb24")
            frame.pts = index + (10 * rate if gap_after is not None and index >= gap_after else 0)
            frame.time_base = Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()
