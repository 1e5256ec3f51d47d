"""`DecoderPool`: decoders in processes of their own, started when they are needed, kept, and replaced when they die.

Each file costs at most `limits.COSTS`; one that costs more, or breaks its decoder, is refused in a sentence, and the
next file finds another decoder. As many processes live as threads have asked at the same time; one that is not asked
for five minutes ends by itself.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.decoding import limits, talk
from model.errors import ContentError

if TYPE_CHECKING:
    from model.encoders.crops import Box
    from model.encoders.recordings import Frames

logger = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[2]  # where Python finds the package
COMMAND = (sys.executable, "-m", "backend.decoding.child")
BOXES = 64  # that are cut out at once
TOO_LONG = "The file takes too long to be decoded and is not read."
TOO_LARGE = "The file needs more memory to be decoded than Polyvox gives it (500 MB) and is not read."
BROKEN = "The file stops the program that decodes it and is not read."
_TYPES = frozenset({"|u1", "<f4", "<f8"})
Array = NDArray[Any]


class DecoderError(RuntimeError):
    """No decoder can be started: nothing about a file, and nothing that another file would change."""


class DecoderPool:
    """Implements `model.encoders.decoders.Decoder`. Safe for threads."""

    def __init__(self, *, command: Sequence[str] = COMMAND, wall_s: float = limits.WALL_S) -> None:
        self._command = command
        self._wall_s = wall_s
        self._free: list[_Child] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _end_all, self._free, self._lock)

    def picture(self, data: bytes, *, size: int) -> NDArray[np.uint8]:
        """RGB (size, size, 3). Raises ContentError, DecoderError."""
        (pixels,) = self._arrays("picture", data, size=size)
        return pixels

    def crops(self, data: bytes, boxes: Sequence[Box]) -> list[bytes | ContentError]:
        """A PNG for each box, or why there is none. Raises ContentError, DecoderError."""
        found: list[bytes | ContentError] = []
        for begin in range(0, len(boxes), BOXES):
            asked = [[float(each) for each in box] for box in boxes[begin : begin + BOXES]]
            parts = self._ask("crops", data, boxes=asked)
            found += [part if isinstance(part, ContentError) else part.tobytes() for part in parts]
        return found

    def sound(self, data: bytes) -> NDArray[np.float32]:
        """The waveform (N,), in memory that is filled as it is read. Raises ContentError, DecoderError."""
        (wave,) = self._arrays("sound", data)
        return wave

    def frames(self, data: bytes, *, frames: int, side: int) -> Frames:
        """At most `frames` frames (F, side, side, 3). Raises ContentError, DecoderError."""
        from model.encoders.recordings import Frames

        pixels, seconds = self._arrays("frames", data, frames=frames, side=side)
        return Frames(pixels=pixels, seconds=seconds)

    def processes(self) -> list[int]:
        """Process ids of the decoders that are free now."""
        with self._lock:
            return [child.process.pid for child in self._free]

    def close(self) -> None:
        """End the decoders that are free; the pool can still be used."""
        _end_all(self._free, self._lock)

    def _arrays(self, do: str, data: bytes, **arguments: Any) -> list[Array]:
        found = self._ask(do, data, **arguments)
        for each in found:
            if isinstance(each, ContentError):
                raise each
        return [each for each in found if not isinstance(each, ContentError)]

    def _ask(self, do: str, data: bytes, **arguments: Any) -> list[Array | ContentError]:
        """What the decoder made of a file. Raises ContentError, DecoderError."""
        source, results = _spooled(data), talk.shared_memory("results")
        try:
            while True:
                child = self._take()
                try:
                    said = child.ask({"do": do, "with": arguments}, (source, results), self._wall_s)
                except _IdleEnd:
                    continue  # it had not begun
                except BaseException:
                    child.kill()
                    raise
                break
            if "memory" in said:
                child.kill()
                raise ContentError(TOO_LARGE)
            with self._lock:
                self._free.append(child)
            if "error" in said:
                raise ContentError(said["error"])
            return _found(said["found"], results)
        finally:
            os.close(source)
            os.close(results)

    def _take(self) -> _Child:
        with self._lock:
            if self._free:
                return self._free.pop()
        return _Child(self._command)


class _IdleEnd(Exception):
    """A decoder that was kept had just ended by itself."""


class _Child:
    """One process. Used by one thread at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        env = limits.environment() | {"PYTHONPATH": os.pathsep.join((str(ROOT), *_packages()))}
        try:
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())], pass_fds=(theirs.fileno(),), env=env, cwd=ROOT,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._sock = ours
        self._answered = 0

    def ask(self, question: dict[str, Any], files: tuple[int, int], wall_s: float) -> dict[str, Any]:
        """Its answer. Raises ContentError where the file was too much for it, _IdleEnd, DecoderError."""
        until = time.monotonic() + wall_s
        try:
            talk.send(self._sock, question, files, until=until)
            said, _ = talk.receive(self._sock, until=until)
        except TimeoutError as error:
            raise ContentError(TOO_LONG) from error
        except OSError as error:
            self._sock.close()
            raise self._ended() from error
        if not isinstance(said, dict) or not ({"memory", "error", "found"} & said.keys()):
            raise ContentError(BROKEN)
        self._answered += 1
        return said

    def _ended(self) -> Exception:
        """What it means that the process has gone."""
        status = self.process.wait()
        if status == 0 and self._answered:
            return _IdleEnd()
        if status == -signal.SIGXCPU:
            return ContentError(TOO_LONG)
        if status > 0 and not self._answered:
            return DecoderError(f"The program that decodes files does not start (status {status}): run "
                                f"`python -m backend.decoding.child 0` to see why.")
        logger.warning("a decoder ended with status %d in the middle of a file", status)
        return ContentError(BROKEN)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self._sock.close()
        self.process.kill()
        self.process.wait()


def _end_all(children: list[_Child], lock: threading.Lock) -> None:
    with lock:
        while children:
            children.pop().kill()


def _packages() -> list[str]:
    """Folders that this process finds packages in beyond those that the interpreter knows by itself."""
    return [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]


def _spooled(data: bytes) -> int:
    """A file that holds the data and can be read only, as far as the system knows such files."""
    file = talk.shared_memory("file")
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        _seal(file, "F_SEAL_WRITE", "F_SEAL_SHRINK", "F_SEAL_GROW")
        return file
    except BaseException:
        os.close(file)
        raise


def _seal(file: int, *names: str) -> None:
    import fcntl

    if hasattr(fcntl, "F_ADD_SEALS") and hasattr(os, "memfd_create"):
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, sum(getattr(fcntl, name) for name in names))


def _found(listed: Sequence[dict[str, Any]], file: int) -> list[Array | ContentError]:
    """The arrays in the file for results. It can't become shorter any more, so that reading it is safe."""
    _seal(file, "F_SEAL_SHRINK", "F_SEAL_GROW")
    size = os.fstat(file).st_size
    memory = mmap.mmap(file, size, access=mmap.ACCESS_COPY) if size else b""
    found: list[Array | ContentError] = []
    for each in listed:
        if "error" in each:
            found.append(ContentError(str(each["error"])))
            continue
        dtype, shape, at = str(each["dtype"]), [int(side) for side in each["shape"]], int(each["at"])
        count = int(np.prod(shape, dtype=np.int64))
        if dtype not in _TYPES or min(shape, default=-1) < 0 or not 0 <= at <= size - count * np.dtype(dtype).itemsize:
            raise ContentError(BROKEN)
        found.append(np.frombuffer(memory, dtype, count, at).reshape(shape))
    return found
