"""The process that decodes: `python -m backend.decoding.child SOCKET`. It knows no settings and keeps nothing.

It ends when its parent has gone, when nothing was asked for `IDLE_S`, and when memory did not suffice: what is left
then is in pieces, and a fresh process costs a fifth of a second.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from backend.decoding import limits, talk
from model.encoders.crops import crops
from model.encoders.pictures import read_picture
from model.encoders.recordings import read_frames, sound_pieces
from model.errors import ContentError

IDLE_S = 300.0
Array = NDArray[Any]


class Results:
    """Arrays in a file, and the list that says where."""

    def __init__(self, file: int) -> None:
        self._file, self._at = file, 0
        self.found: list[dict[str, Any]] = []

    def array(self, pieces: Iterable[Array], shape: tuple[int, ...] | None = None) -> None:
        """One array, written piece by piece; of the first one's shape, or as long as all are together."""
        begin, dtype = self._at, ""
        for piece in pieces:
            dtype = piece.dtype.str
            data = memoryview(np.ascontiguousarray(piece).data).cast("B")
            while data:
                written = os.pwrite(self._file, data, self._at)
                self._at += written
                data = data[written:]
        size = (self._at - begin) // np.dtype(dtype).itemsize
        self.found.append({"dtype": dtype, "shape": shape or (size,), "at": begin})
        self._at = -(-self._at // 16) * 16  # so that the next one is aligned

    def refused(self, sentence: str) -> None:
        """One part of the file, such as a box, could not be had."""
        self.found.append({"error": sentence})


def _picture(file: BinaryIO, results: Results, size: int) -> None:
    pixels = read_picture(file, size)
    results.array([pixels], pixels.shape)


def _crops(file: BinaryIO, results: Results, boxes: list[list[float]]) -> None:
    for each in crops(file, boxes):
        if isinstance(each, ContentError):
            results.refused(str(each))
        else:
            results.array([np.frombuffer(each, np.uint8)])


def _sound(file: BinaryIO, results: Results) -> None:
    results.array(sound_pieces(file))


def _frames(file: BinaryIO, results: Results, frames: int, side: int) -> None:
    seen = read_frames(file, frames=frames, side=side)
    results.array([seen.pixels], seen.pixels.shape)
    results.array([seen.seconds])


DO: Mapping[str, Callable[..., None]] = MappingProxyType({
    "picture": _picture, "crops": _crops, "sound": _sound, "frames": _frames,
})


def answer(question: Mapping[str, Any], files: tuple[int, int]) -> dict[str, Any]:
    """Decode one file; what to say of it."""
    results = Results(files[1])
    try:
        limits.begin(limits.COSTS[question["do"]])
        with open(files[0], "rb", closefd=False) as file:
            file.seek(0)  # the place in it is shared with the parent, who has just written it
            DO[question["do"]](file, results, **question["with"])
    except ContentError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # a decoder's own kind of failure; its message may quote the file
        return {"error": f"The file cannot be read ({type(error).__name__})."}
    return {"found": results.found}


def main() -> int:
    """Answer until there is nobody to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes its end
    limits.confine()
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        while True:
            try:
                sock.settimeout(IDLE_S)
                question, files = talk.receive(sock, 2)
            except (talk.Gone, TimeoutError):
                return 0
            found = answer(question, (files[0], files[1]))
            for each in files:
                os.close(each)
            talk.send(sock, found)
            if "memory" in found:
                return 0


if __name__ == "__main__":
    raise SystemExit(main())
