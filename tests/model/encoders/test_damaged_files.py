"""Damaged files of every kind, derandomised: each is read or refused with a sentence, within bounds of time and size.

`POLYVOX_FUZZ_FILES` says how many (100 by default; `make fuzz` runs 2,000). A case depends on its number alone.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from PIL import Image

from model.encoders.pictures import FORMATS, read_picture
from model.encoders.recordings import RATE, read_frames, read_sound
from model.errors import ContentError
from tests.model.encoders.recordings import clip, tone

SEED = 20261128
FILES = int(os.environ.get("POLYVOX_FUZZ_FILES", "100"))
PART = 50
LONGEST_S = 20.0  # of processor time, for one small file
SOUND_S = 30.0


def _picture(form: str) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (24, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def _look(data: bytes) -> None:
    assert read_picture(data, 16).shape == (16, 16, 3)


def _listen(data: bytes) -> None:
    wave = read_sound(data, max_seconds=SOUND_S)
    assert wave.ndim == 1 and len(wave) <= (SOUND_S + 1.0) * RATE and np.isfinite(wave).all()


def _watch(data: bytes) -> None:
    assert 1 <= len(read_frames(data, frames=4, side=16).pixels) <= 4


@pytest.fixture(scope="module")
def originals() -> list[tuple[str, bytes, Callable[[bytes], None]]]:
    """Sound files, and how each kind is read."""
    pictures = [(form, _picture(form), _look) for form in FORMATS]
    sounds = [("wav", tone(0.3), _listen), ("flac", tone(0.3, form="flac", codec="flac"), _listen),
              ("mp3", tone(0.3, form="mp3", codec="mp3"), _listen)]
    videos = [("mp4", clip(range(0, 200, 40)), _watch), ("avi", clip(range(0, 200, 40), form="avi"), _watch)]
    return [*pictures, *sounds, *videos]


def damaged(random: Random, data: bytes, other: bytes) -> bytes:
    """The file with a few places broken: mostly near its beginning, where sizes and lengths stand."""
    raw = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at = min(int(random.expovariate(1 / 40)) if random.random() < 0.6 else random.randrange(len(raw) + 1), len(raw))
        kind = random.randrange(6)
        if kind == 0:
            raw[at : at + 1] = bytes([random.randrange(256)])
        elif kind == 1:
            raw[at : at + 4] = random.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00" * 4, b"\xff\xff\xff\x7f"))
        elif kind == 2:
            raw = raw[:at]
        elif kind == 3:
            raw[at:at] = raw[:64] if random.random() < 0.5 else random.randbytes(random.randrange(64))
        elif kind == 4:
            del raw[at : at + random.randrange(1, 64)]
        else:
            raw[at:] = other[at:]
    return bytes(raw)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow warns of what it skips
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(0, FILES, PART))
def test_damaged_files_are_read_or_refused(
    originals: list[tuple[str, bytes, Callable[[bytes], None]]], part: int
) -> None:
    refused = 0
    for number in range(part, min(part + PART, FILES)):
        random = Random(f"{SEED}:{number}")
        name, data, read = originals[number % len(originals)]
        began = time.process_time()
        try:
            read(damaged(random, data, originals[random.randrange(len(originals))][1]))
        except ContentError as error:
            refused += 1
            assert str(error).endswith(".") and len(str(error)) < 300, f"file {number} ({name})"
        except Exception as error:
            raise AssertionError(f"file {number} ({name}): {error!r}") from error
        assert time.process_time() - began < LONGEST_S, f"file {number} ({name})"
    assert refused > 0
