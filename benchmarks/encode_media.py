"""Images and video: the image encoder beside its bare loop, and the memory that a video of 96 frames takes.

    python -m benchmarks.encode_media [--images 96]

Images are noise and gradients made on the spot, 1280 x 960, as JPEG. The bare loop gets the same pictures decoded and
scaled before; ours gets bytes. Both run the default encoder in the same batches, in turns. The video has 10 s at 1280 x
720 and as many frames as asked for, all kept; its memory is the highest resident memory of a process that encodes it,
above what the process has after the same encoder has seen one batch of images.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

from benchmarks.measure import Line, interleaved, median, over_repeats

FRAMES, SECONDS, REPEATS = 96, 10, 5
MOST_MB, LEAST = 500.0, 0.9


def image_speed(count: int) -> list[Line]:
    """Ours, decoding included, beside the network alone."""
    from model.encoders.image import ImageEncoder
    from model.encoders.pictures import read_picture

    encoder = ImageEncoder.load()
    files = [_picture(number) for number in range(count)]
    decoded = np.stack([read_picture(file, encoder.side) for file in files])
    encoder.encode_pixels(decoded[:16])  # what is slow the first time
    calls = {"ours": lambda: encoder.encode(files), "bare": lambda: encoder.encode_pixels(decoded),
             "decode": lambda: [read_picture(file, encoder.side) for file in files]}
    taken = interleaved(calls, rounds=REPEATS)
    ratios = [bare / ours for ours, bare in zip(taken["ours"], taken["bare"], strict=True)]
    overlap = [ours / (bare + decode) for ours, bare, decode in zip(*taken.values(), strict=True)]
    return [
        over_repeats("images a second", [count / each for each in taken["ours"]], "images"),
        over_repeats("image encoding / bare encoder loop", ratios, "x", least=LEAST),
        over_repeats("image encoding / (bare loop + decoding one after the other)", overlap, "x"),
        Line(what="decoding alone / bare loop", measured=median(taken["decode"]) / median(taken["bare"]), unit="x"),
    ]


def video_memory() -> Line:
    """In a process of its own, so that nothing else counts."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        above = pool.apply(_encode_video)
    return Line(what=f"{SECONDS} s of video, {FRAMES} frames: memory above the model", measured=above, unit="MB",
                target=f"below {MOST_MB:g} MB", hit=above < MOST_MB)


def _encode_video() -> float:
    from model.encoders.image import ImageEncoder
    from model.encoders.video import Seen, VideoEncoder

    images = ImageEncoder.load()
    images.encode([_picture(number) for number in range(16)])
    data = _video()
    before, highest, done = _resident_mb(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.005):
            highest = max(highest, _resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    (seen,) = VideoEncoder(images, frames=FRAMES).encode([data])
    done.set()
    watcher.join()
    if not isinstance(seen, Seen) or len(seen.tokens) != 4 * FRAMES:
        raise SystemExit("the video was not encoded whole")
    return max(highest, _resident_mb()) - before


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _picture(number: int) -> bytes:
    rng = np.random.default_rng(number)
    slope = np.linspace(0, 200, 1280)[None, :, None] + rng.integers(0, 55, (960, 1, 3))
    file = io.BytesIO()
    Image.fromarray((slope + rng.integers(0, 8, (960, 1280, 3))).clip(0, 255).astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


def _video() -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(FRAMES, SECONDS))
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for index in range(FRAMES):
            pixels = np.full((720, 1280, 3), 40 + index, np.uint8)
            pixels[:, index * 10 : index * 10 + 200] = 220
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--threads", type=int, default=1, help="of the network; decoding has two of its own")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d %H:%M')} UTC", flush=True)
    _tell([video_memory()])
    _tell(image_speed(options.images))


def _tell(lines: Sequence[Line]) -> None:
    for line in lines:
        spread = "" if line.low is None else f" ({line.low:.2f} to {line.high:.2f})"
        verdict = {True: ", hit", False: ", MISS", None: ""}[line.hit]
        print(f"{line.what}: {line.measured:.2f} {line.unit}{spread} {line.target}{verdict}", flush=True)


if __name__ == "__main__":
    main()
