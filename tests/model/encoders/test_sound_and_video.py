"""The encoders of sound and video: as many tokens as there is time, in its order."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model.encoders.image import ImageEncoder
from model.encoders.recordings import RATE
from model.encoders.sound import MAX_WINDOWS, SECONDS_PER_TOKEN, Heard, SoundEncoder, _windows
from model.encoders.video import Seen, VideoEncoder
from model.errors import ContentError
from tests.model.encoders.recordings import clip, tone


@pytest.fixture(scope="module")
def sounds() -> SoundEncoder:
    torch.set_num_threads(1)
    return SoundEncoder.load()


def test_sound_has_a_token_for_every_stretch_of_time(sounds: SoundEncoder) -> None:
    low, high, broken = sounds.encode([tone(1.2, 220.0), tone(3.0, 880.0), b"no sound"])
    assert isinstance(low, Heard) and isinstance(high, Heard) and isinstance(broken, ContentError)
    assert low.tokens.shape == (2, sounds.dim) and high.tokens.shape == (5, sounds.dim)
    assert np.all(np.diff(high.seconds) > 0) and 0 < high.seconds[0] < SECONDS_PER_TOKEN
    assert np.isfinite(high.tokens).all()


def test_whisper_hears_a_difference_between_tones_and_none_between_equal_ones(sounds: SoundEncoder) -> None:
    one, same, other = sounds.encode([tone(1.2, 220.0), tone(1.2, 220.0), tone(1.2, 1760.0)])
    assert isinstance(one, Heard) and isinstance(same, Heard) and isinstance(other, Heard)
    assert np.array_equal(one.tokens, same.tokens)
    assert np.abs(one.tokens - other.tokens).mean() > 0.1


def test_a_long_recording_is_heard_in_windows_spread_over_it() -> None:
    wave = np.zeros(RATE * 60 * 20, np.float32)
    windows = _windows(wave)
    assert len(windows) == MAX_WINDOWS and windows[0][0] == 0 and windows[-1][0] == 60 * 20 - 30
    assert [start for start, _ in _windows(wave[: RATE * 65])] == [0, 30, 60]


def test_video_has_four_tokens_a_frame_with_their_times() -> None:
    videos = VideoEncoder(ImageEncoder.load(), frames=3)
    seen, broken = videos.encode([clip([0] * 10 + [255] * 10), b"no video"])
    assert isinstance(seen, Seen) and isinstance(broken, ContentError)
    assert seen.tokens.shape == (12, videos.dim)
    assert seen.seconds.tolist() == sorted(seen.seconds.tolist()) and seen.seconds[0] == 0 and seen.seconds[-1] > 1.5
    assert np.abs(seen.tokens[0].astype(float) - seen.tokens[-1]).mean() > 0.01
