"""Decoders in processes of their own: what bombs cost, and that a file that breaks one hurts no other file."""

from __future__ import annotations

import io
import os
import signal
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from backend.decoding import limits
from backend.decoding.pool import BROKEN, TOO_LARGE, TOO_LONG, DecoderError, DecoderPool
from model.encoders.decoders import Inline
from model.encoders.recordings import MOST_PIXELS, RATE, read_frames
from model.errors import ContentError
from tests.model.encoders.recordings import clip, tone

MOST_KB = 500_000  # that a decoder may ever have had


@pytest.fixture
def pool() -> Iterator[DecoderPool]:
    made = DecoderPool()
    yield made
    made.close()


def png(side: int, depth: int, kind: int, bytes_a_pixel: int) -> bytes:
    """A black square, a few hundred kilobytes as a file."""
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    packer, rows = zlib.compressobj(9), bytes(1 + side * bytes_a_pixel) * 100
    body = b"".join(packer.compress(rows) for _ in range(side // 100)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def jpeg(colour: str = "red") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (60, 40), colour).save(file, "JPEG")
    return file.getvalue()


def silence(seconds: int) -> bytes:
    """A FLAC without a sound."""
    file, block = io.BytesIO(), np.zeros((1, 4608), np.int16)
    with av.open(file, "w", format="flac") as container:
        stream = container.add_stream("flac", rate=8000, layout="mono")
        for start in range(0, seconds * 8000, 4608):
            frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
            frame.rate, frame.pts = 8000, start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def video(frames: int, side: int) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = side, side, "yuv420p"
        frame = av.VideoFrame(side, side, "yuv420p")
        for index in range(frames):
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def peak_kb(pid: int) -> int:
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1])


def test_results_are_those_of_the_same_code_in_this_process(pool: DecoderPool) -> None:
    inline, wave, moving = Inline(), tone(0.5), clip(range(0, 200, 20))
    assert (pool.picture(jpeg(), size=32) == inline.picture(jpeg(), size=32)).all()
    assert (pool.sound(wave) == inline.sound(wave)).all()
    ours, theirs = (each.frames(moving, frames=4, side=16) for each in (pool, inline))
    assert (ours.pixels == theirs.pixels).all() and (ours.seconds == theirs.seconds).all()
    boxes = [(0, 0, 50, 50, 0)] * 70 + [(200, 0, 1, 1, 0)]
    ours, theirs = pool.crops(jpeg(), boxes), inline.crops(jpeg(), boxes)
    assert ours[:70] == theirs[:70] and str(ours[70]) == str(theirs[70]) == "The box lies outside the picture."
    assert len(pool.processes()) == 1  # one was enough for all
    with pytest.raises(ContentError, match="web page"):
        pool.picture(b"<html>", size=16)


def test_pictures_that_unpack_to_gigabytes(pool: DecoderPool) -> None:
    """16 bits and 9,900 squared (196 MB of pixels, 1.9 GB in the process that used to decode it), and RGB (392 MB)."""
    for data in (png(9900, 16, 0, 2), png(9900, 8, 2, 3)):
        assert len(data) < 400_000 and pool.picture(data, size=32).shape == (32, 32, 3)
        (pid,) = pool.processes()
        assert peak_kb(pid) < MOST_KB


def test_an_hour_of_silence(pool: DecoderPool) -> None:
    wave = pool.sound(silence(3700))
    (pid,) = pool.processes()
    assert len(wave) == 3600 * RATE and not wave[:: RATE * 60].any() and peak_kb(pid) < MOST_KB // 4


def test_a_video_of_large_frames(pool: DecoderPool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = video(30, 4096)
    assert pool.frames(data, frames=4, side=16).pixels.shape == (4, 16, 16, 3)
    (pid,) = pool.processes()
    assert peak_kb(pid) < MOST_KB
    monkeypatch.setattr("model.encoders.recordings.MOST_PIXELS", 5 * 4096**2)  # key frames stand 12 apart
    assert MOST_PIXELS > 400 * 4096**2 and len(read_frames(data, frames=16, side=16).pixels) == 3
    monkeypatch.setattr("model.encoders.recordings.MOST_PIXELS", 4096**2)
    with pytest.raises(ContentError, match="takes too long to read"):
        read_frames(data, frames=16, side=16)


def child(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A decoder in which some reading is replaced."""
    file = tmp_path / "decoder.py"
    head = "import os, sys, time\nfrom backend.decoding import child\n"
    file.write_text(f"{head}{body}\nraise SystemExit(child.main())\n")
    return sys.executable, str(file)


TRAP = """
usual = child.read_picture
def trap(file, size):
    if file.read(4) == b"trap":
        %s
    file.seek(0)
    return usual(file, size)
child.read_picture = trap
"""


def test_too_much_memory_is_a_sentence_and_the_next_file_is_read(tmp_path: Path) -> None:
    costs = "child.limits.COSTS = {'picture': child.limits.Cost(memory=120_000_000, result=10**7)}"
    pool = DecoderPool(command=child(tmp_path, costs))
    with pytest.raises(ContentError) as refused:
        pool.picture(png(5000, 8, 2, 3), size=32)  # 100 MB of pixels
    assert str(refused.value) == TOO_LARGE
    assert pool.picture(jpeg(), size=16).shape == (16, 16, 3)
    pool.close()


def test_a_decoder_that_hangs_is_killed_and_replaced(tmp_path: Path) -> None:
    pool = DecoderPool(command=child(tmp_path, TRAP % "time.sleep(600)"), wall_s=2.0)
    pool.picture(jpeg(), size=16)
    (first,) = pool.processes()
    with pytest.raises(ContentError) as refused:
        pool.picture(b"trap", size=16)
    assert str(refused.value) == TOO_LONG and not Path(f"/proc/{first}").exists()
    assert pool.picture(jpeg(), size=16).shape == (16, 16, 3) and pool.processes() != [first]
    pool.close()


def test_processor_time_has_a_limit(tmp_path: Path) -> None:
    costs = "child.limits.COSTS = {'picture': child.limits.Cost(memory=490_000_000, result=10**7, seconds=1)}"
    pool = DecoderPool(command=child(tmp_path, costs + TRAP % "while True: pass"))
    with pytest.raises(ContentError) as refused:
        pool.picture(b"trap", size=16)
    assert str(refused.value) == TOO_LONG and pool.picture(jpeg(), size=16).shape == (16, 16, 3)
    pool.close()


def test_a_decoder_that_is_killed_in_the_middle_of_a_file(tmp_path: Path) -> None:
    """The others of a batch, which other threads ask for, are read."""
    mark = tmp_path / "pid"
    body = f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    pool = DecoderPool(command=child(tmp_path, TRAP % body))
    found: list[object] = []

    def ask() -> None:
        try:
            pool.picture(b"trap", size=16)
        except ContentError as error:
            found.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    end = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert pool.picture(jpeg(), size=16).shape == (16, 16, 3)
    os.kill(int(mark.read_text()), signal.SIGKILL)
    thread.join(60)
    assert found == [BROKEN] and pool.picture(jpeg(), size=16).shape == (16, 16, 3)
    pool.close()


def test_a_decoder_that_had_ended_while_nothing_was_asked(pool: DecoderPool, tmp_path: Path) -> None:
    idle = DecoderPool(command=child(tmp_path, "child.IDLE_S = 0.2"))
    idle.picture(jpeg(), size=16)
    (pid,) = idle.processes()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert idle.picture(jpeg(), size=16).shape == (16, 16, 3) and idle.processes() != [pid]
    idle.close()


def test_what_a_decoder_says_is_looked_at(tmp_path: Path) -> None:
    lies = "child.Results.array = lambda self, pieces, shape=None: self.found.append(%s)"
    for lie in ({"dtype": "|O", "shape": [1], "at": 0}, {"dtype": "<f8", "shape": [10**9], "at": 0},
                {"dtype": "|u1", "shape": [-1], "at": 0}, {"dtype": "|u1", "shape": [4], "at": -9}):
        pool = DecoderPool(command=child(tmp_path, lies % lie))
        with pytest.raises(ContentError) as refused:
            pool.picture(jpeg(), size=16)
        assert str(refused.value) == BROKEN
        pool.close()


def test_a_decoder_that_does_not_start_is_no_fault_of_a_file() -> None:
    with pytest.raises(DecoderError, match="does not start"):
        DecoderPool(command=(sys.executable, "-c", "raise SystemExit(3)")).picture(jpeg(), size=16)


def test_a_decoder_knows_no_secret_and_holds_no_file_of_its_parent(
    pool: DecoderPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "secret")
    with open(tmp_path / "open", "w") as file:
        os.set_inheritable(file.fileno(), True)
        pool.picture(jpeg(), size=16)
        (pid,) = pool.processes()
        assert b"LABEL_STUDIO" not in Path(f"/proc/{pid}/environ").read_bytes()
        opened = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
    assert sorted(each.split(":")[0] for each in opened) == ["/dev/null", "socket"]
    bound = Path(f"/proc/{pid}/limits").read_text()
    assert f"{limits.COSTS['picture'].memory} " in bound and "Max core file size        0  " in bound
