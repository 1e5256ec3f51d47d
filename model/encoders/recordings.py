"""Bytes of an audio or video file -> waveform, or frames evenly spread over time, within limits.

FFmpeg (through PyAV) can follow playlists and concatenation lists to other files and addresses. It is therefore given
bytes and never a name, only container formats of `FORMATS` are opened, and no protocol at all is allowed to it.

A video costs at most about `MOST_PIXELS` decoded pixels; of a longer one only the frames are decoded that stand for
themselves (key frames), so an hour is read as fast as a minute.

Shape legend: N samples, F frames.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import av
import numpy as np
from numpy.typing import NDArray

from model.errors import ContentError

RATE = 16_000  # samples a second
FORMATS = (
    "wav", "w64", "aiff", "mp3", "flac", "ogg", "aac", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "avi", "mpegts",
    "mpeg",
)  # fmt: skip
MAX_SIDE = 8192  # pixels of a video frame
MOST_PIXELS = 10_000_000_000  # 10 to 20 s of processor time
_FRAME_COST = 50_000  # pixels: what a frame costs, however small it is
_THREADS = 2  # that decode a video; each holds a frame of its own
_OPTIONS = {"protocol_whitelist": "none", "format_whitelist": ",".join(FORMATS), "enable_drefs": "0"}
_DAMAGED = (av.FFmpegError, OSError, ValueError, EOFError, LookupError, ArithmeticError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Frames of a video and when they are shown."""

    pixels: NDArray[np.uint8]  # (F, side, side, 3) RGB
    seconds: NDArray[np.float64]  # (F,)


def read_sound(source: bytes | BinaryIO, *, max_seconds: float = 3600.0) -> NDArray[np.float32]:
    """The waveform (N,) of the first audio track, the mean of its channels, `RATE` samples a second, cut at
    `max_seconds`. FFmpeg's own downmix adds channels up, up to three times too loud, and cuts off what is too loud.

    Raises ContentError with a sentence for a file that cannot be read or has no sound, and MemoryError.
    """
    return np.concatenate(list(sound_pieces(source, max_seconds=max_seconds)))


def sound_pieces(source: bytes | BinaryIO, *, max_seconds: float = 3600.0) -> Iterator[NDArray[np.float32]]:
    """What `read_sound` reads, piece by piece, so that an hour is never in memory."""
    limit, read = int(max_seconds * RATE), 0
    with _opened(source) as container:
        if not container.streams.audio:
            raise ContentError("The recording has no sound.")
        if container.streams.audio[0].codec_context is None:
            raise ContentError("The sound has a coding that is not known.")
        for frame in _resampled(container):
            piece = _mean_of_channels(frame)[: limit - read]
            read += len(piece)
            if len(piece):
                yield piece.clip(-1.0, 1.0)
            if read >= limit:
                break
    if not read:
        raise ContentError("The recording lasts no time.")


def _resampled(container: Any) -> Iterator[Any]:
    resampler = av.AudioResampler(format="flt", rate=RATE)  # the layout stays what it is
    for frame in container.decode(container.streams.audio[0]):
        yield from resampler.resample(frame)
    yield from resampler.resample(None)


def _mean_of_channels(frame: Any) -> NDArray[np.float32]:
    """(N,) of a frame with packed channels (N * channels); damaged samples say nothing."""
    samples = np.nan_to_num(np.asarray(frame.to_ndarray(), np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
    return np.asarray(samples.reshape(-1, len(frame.layout.channels)).mean(axis=1, dtype=np.float64), np.float32)


def read_frames(source: bytes | BinaryIO, *, frames: int, side: int) -> Frames:
    """At most `frames` frames, evenly spread over the time that is shown, squeezed to squares.

    Neither the duration nor the frame rate of the file is trusted: frames are kept at a distance in time that doubles
    whenever twice too many are kept, so memory is bounded and a variable frame rate changes nothing. Raises
    ContentError and MemoryError.
    """
    kept = _spread(source, frames, side, key_frames=False)
    if kept is None:
        kept = _spread(source, frames, side, key_frames=True)
    if kept is None:
        raise ContentError("The video takes too long to read; make it shorter or its frames smaller.")
    if not kept:
        raise ContentError("The recording lasts no time.")
    seconds = np.array([at for at, _ in kept])
    wanted = np.linspace(seconds[0], seconds[-1], min(frames, len(kept)))
    chosen = np.unique(np.abs(seconds[:, None] - wanted).argmin(0))
    return Frames(pixels=np.stack([kept[row][1] for row in chosen]), seconds=seconds[chosen])


def _spread(
    source: bytes | BinaryIO, frames: int, side: int, *, key_frames: bool
) -> list[tuple[float, NDArray[np.uint8]]] | None:
    """Up to twice as many frames as wanted, and when each is shown; None where that takes more than `MOST_PIXELS`."""
    kept: list[tuple[float, NDArray[np.uint8]]] = []
    step, decoded = 0.0, 0
    with _opened(source) as container:
        stream = _video(container)
        if key_frames:
            stream.codec_context.skip_frame = "NONKEY"
        for index, frame in enumerate(container.decode(stream)):
            decoded += frame.width * frame.height + _FRAME_COST
            if decoded > MOST_PIXELS:
                return None
            at = float(frame.time) if frame.time is not None else index / 25.0
            if kept and at < kept[-1][0] + step:
                continue
            kept.append((at, frame.reformat(width=side, height=side, format="rgb24").to_ndarray()))
            if len(kept) > 2 * frames:
                step = max(2 * step, (kept[-1][0] - kept[0][0]) / frames)
                kept = _thinned(kept, step)
    return kept


def _video(container: Any) -> Any:
    """The first video track, ready to be decoded. Raises ContentError."""
    if not container.streams.video:
        raise ContentError("The recording has no picture.")
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    if stream.codec_context is None:
        raise ContentError("The video has a coding that is not known.")
    stream.codec_context.thread_count = _THREADS
    if max(stream.codec_context.width, stream.codec_context.height) > MAX_SIDE:
        raise ContentError(f"The video is wider or higher than {MAX_SIDE} pixels.")
    return stream


def _thinned(kept: list[tuple[float, NDArray[np.uint8]]], step: float) -> list[tuple[float, NDArray[np.uint8]]]:
    """Frames at a distance of at least `step` seconds, the first among them."""
    found = kept[:1]
    for frame in kept[1:]:
        if frame[0] >= found[-1][0] + step:
            found.append(frame)
    return found


@contextmanager
def _opened(source: bytes | BinaryIO) -> Iterator[Any]:
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    file.seek(0)
    if not file.read(1):
        raise ContentError("The recording is empty.")
    file.seek(0)
    try:
        with av.open(file, mode="r", options=_OPTIONS, metadata_errors="replace") as container:
            yield container
    except (ContentError, MemoryError):
        raise
    except _DAMAGED as error:
        raise ContentError("The file is no recording that can be read, or it is damaged.") from error
