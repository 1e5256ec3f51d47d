"""How a parent and its decoder talk: JSON with its length in front over a pair of sockets, arrays in shared memory.

Question: {"do": name, "with": arguments}, and with its first byte two open files: the file to decode, and one for
results. Answer: {"found": [...]}, each entry of which is either {"dtype", "shape", "at"}, an array that begins at this
byte of the file for results, or {"error": sentence}; or {"error": sentence} for all; or {"memory": true}.

Nothing that a decoder sends is executed or unpickled: its answers are JSON within `MOST_BYTES`, its arrays numbers of a
few types, and the parent looks whether they lie within the file.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import tempfile
import time
from typing import Any

MOST_BYTES = 4_000_000  # of one message: the boxes of a picture, or what became of them
_LENGTH = struct.Struct("<I")


class Gone(ConnectionError):
    """The other side has closed its end."""


def send(sock: socket.socket, message: Any, files: tuple[int, ...] = (), *, until: float | None = None) -> None:
    """Raises OSError (TimeoutError among them), and ValueError for a message that is too long."""
    body = json.dumps(message).encode()
    if len(body) > MOST_BYTES:
        raise ValueError("the message is too long")
    data = _LENGTH.pack(len(body)) + body
    _patience(sock, until)
    sent = socket.send_fds(sock, [data[:1]], files) if files else 0
    sock.sendall(data[sent:])


def receive(sock: socket.socket, files: int = 0, *, until: float | None = None) -> tuple[Any, list[int]]:
    """A message and the files that came with it. Raises Gone, OSError (TimeoutError among them) and ValueError."""
    _patience(sock, until)
    first, fds = b"", list[int]()
    if files:
        first, fds, _, _ = socket.recv_fds(sock, 1, files)
        if not first:
            raise Gone
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size, until, first))
    if length > MOST_BYTES:
        raise ValueError("the message is too long")
    return json.loads(_exactly(sock, length, until)), fds


def shared_memory(name: str) -> int:
    """An open file in memory, without a name in any folder; where the system has none, a file that is deleted."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _exactly(sock: socket.socket, count: int, until: float | None, begun: bytes = b"") -> bytes:
    found = bytearray(begun)
    while len(found) < count:
        _patience(sock, until)
        part = sock.recv(min(count - len(found), 1 << 16))
        if not part:
            raise Gone
        found += part
    return bytes(found)


def _patience(sock: socket.socket, until: float | None) -> None:
    """Time-outs of sockets are for one call; `until` is for all of them, on the monotonic clock."""
    if until is not None:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
