"""Reading sound and video: what is heard and seen, in bounded memory, and nothing that a file names."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pytest

from model.encoders.recordings import RATE, read_frames, read_sound
from model.errors import ContentError
from tests.model.encoders.recordings import clip, tone


@pytest.mark.parametrize(("form", "codec"), [("wav", "pcm_s16le"), ("flac", "flac"), ("mp3", "libmp3lame")])
def test_sound_is_one_channel_at_16_khz(form: str, codec: str) -> None:
    wave = read_sound(tone(1.0, 440.0, form=form, codec=codec))
    assert wave.dtype == np.float32 and abs(len(wave) - RATE) < RATE / 10
    middle = wave[2000:12_000]
    strongest = np.abs(np.fft.rfft(middle)).argmax() * RATE / len(middle)
    assert abs(strongest - 440) < 5 and 0.3 < np.abs(middle).max() <= 1.0


def test_sound_is_cut_where_it_is_too_long() -> None:
    assert len(read_sound(tone(3.0), max_seconds=1.5)) == int(1.5 * RATE)


def test_frames_are_spread_over_the_whole_clip() -> None:
    seen = read_frames(clip(list(range(0, 192, 2))), frames=8, side=16)
    assert seen.pixels.shape == (8, 16, 16, 3)
    assert np.all(np.diff(seen.pixels[:, 8, 8, 0].astype(int)) > 10) and seen.pixels[-1, 8, 8, 0] > 150
    assert np.ptp(np.diff(seen.seconds)) <= 0.45


def test_a_variable_frame_rate_is_followed_by_time_not_by_count() -> None:
    seen = read_frames(clip([10] * 40 + [200] * 4, gap_after=40), frames=4, side=16)
    assert seen.seconds[-1] > 13 and seen.pixels[-1, 8, 8, 0] > 150


def test_few_frames_are_all_kept() -> None:
    assert len(read_frames(clip([0, 100, 200]), frames=16, side=16).pixels) == 3


@pytest.mark.parametrize("data", [b"", b"garbage" * 50, b"<html></html>", tone()[:50]])
def test_what_is_no_recording(data: bytes) -> None:
    for read in (read_sound, lambda found: read_frames(found, frames=4, side=16)):
        with pytest.raises(ContentError):
            read(data)


def test_sound_without_picture_and_picture_without_sound() -> None:
    with pytest.raises(ContentError, match="no picture"):
        read_frames(tone(), frames=4, side=16)
    with pytest.raises(ContentError, match="no sound"):
        read_sound(clip([0, 1, 2]))


@pytest.mark.parametrize(
    "playlist",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile '{}'\n",
        "#EXTM3U\n#EXTINF:1,\nfile://{}\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:1/{}\n#EXT-X-ENDLIST\n",
    ],
)
def test_a_playlist_that_names_a_file_is_not_followed(tmp_path: Path, playlist: str) -> None:
    secret = tmp_path / "secret.wav"
    secret.write_bytes(tone())
    with pytest.raises(ContentError):
        read_sound(playlist.format(secret).encode())


def test_damaged_files_are_refused_or_read_but_never_crash() -> None:
    rng = np.random.default_rng(3)
    for good in (tone(0.3), clip([0, 80, 160])):
        for _ in range(30):
            bad = bytearray(good[: int(rng.integers(1, len(good)))] if rng.random() < 0.5 else good)
            for place in rng.integers(0, len(bad), 4):
                bad[place] = int(rng.integers(256))
            for read in (read_sound, lambda found: read_frames(found, frames=4, side=16)):
                try:
                    read(bytes(bad))
                except ContentError as error:
                    assert str(error).endswith(".")


def _several_channels(waves: np.ndarray, layout: str) -> bytes:
    """A WAV file of (channels, N) samples."""
    file = io.BytesIO()
    with av.open(file, "w", format="wav") as container:
        stream = container.add_stream("pcm_f32le", rate=RATE, layout=layout)
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(waves.T.reshape(1, -1), np.float32), format="flt", layout=layout)
        frame.rate = RATE
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(("layout", "channels"), [("mono", 1), ("stereo", 2), ("5.1", 6), ("7.1", 8)])
def test_several_channels_are_as_loud_as_their_mean(layout: str, channels: int) -> None:
    tone = 0.9 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE)
    for shares in (np.ones(channels), np.linspace(0.1, 1.0, channels)):
        wave = read_sound(_several_channels(shares[:, None] * tone, layout))
        assert np.abs(wave - shares.mean() * tone).max() < 1e-3
    noise = np.random.default_rng(0).uniform(-1, 1, (channels, RATE))
    assert np.abs(read_sound(_several_channels(noise, layout)) - noise.mean(axis=0)).max() < 1e-3
