"""Requests that are wrong as HTTP: bytes for a connection of their own, made from right ones.

Each is sent whole and then the writing side is closed, so that what never ends is known to have ended.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from random import Random

from demo.processes import LOOPBACK
from tests.soak.wire import Got, read

PATIENCE_S = 20.0
Framing = Callable[[Random, bytes, bytes], bytes]  # chances, head with its empty line, body -> what is sent


def send(port: int, raw: bytes) -> Got:
    """What is answered first; status 0 where the connection is closed without an answer."""
    begun = time.perf_counter()
    try:
        with socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S) as client:
            try:
                client.sendall(raw)
                client.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has answered and closed already
            got, _ = read(client, head=raw.startswith(b"HEAD "))
    except TimeoutError:
        return Got(seconds=time.perf_counter() - begun, body=b"no answer in time")
    except (OSError, ValueError):
        return Got(seconds=time.perf_counter() - begun)
    return Got(status=got.status, headers=got.headers, body=got.body, seconds=time.perf_counter() - begun)


def _lines(head: bytes) -> list[bytes]:
    return head.rstrip(b"\r\n").split(b"\r\n")


def _with(*more: bytes, without: bytes = b"") -> Framing:
    """Headers beside those that are there, or in the place of those of one name."""
    def make(_: Random, head: bytes, body: bytes) -> bytes:
        kept = [line for line in _lines(head) if not without or not line.lower().startswith(without)]
        return b"\r\n".join([*kept, *more]) + b"\r\n\r\n" + body

    return make


def _length(value: bytes) -> Framing:
    return _with(b"Content-Length: " + value, without=b"content-length")


def _chunks(raw: bytes) -> Framing:
    """A chunked body of these bytes."""
    headed = _with(b"Transfer-Encoding: chunked", without=b"content-length")
    return lambda random, head, body: headed(random, head, raw)


def _first(change: Callable[[list[bytes]], list[bytes]]) -> Framing:
    """Another request line, from its three words."""
    def make(_: Random, head: bytes, body: bytes) -> bytes:
        first, *others = _lines(head)
        return b"\r\n".join([b" ".join(change(first.split(b" "))), *others]) + b"\r\n\r\n" + body

    return make


def _noise(random: Random, head: bytes, body: bytes) -> bytes:
    raw = bytearray(head + body)
    for _ in range(random.randint(1, 8)):
        raw[random.randrange(min(len(raw), 400))] = random.randrange(256)
    return bytes(raw)


FRAMINGS: dict[str, Framing] = {
    "two lengths": _with(b"Content-Length: 3"), "length and chunks": _with(b"Transfer-Encoding: chunked"),
    "negative length": _length(b"-1"), "length with a sign": _length(b"+5"), "length in words": _length(b"five"),
    "length beyond numbers": _length(b"9" * 40), "length in Arabic": _length("\u0665".encode()),
    "length over the limit": _length(b"999999999"), "no length": _with(without=b"content-length"),
    "empty length": _length(b""), "length as a list": _length(b"5, 5"),
    "chunk size of letters": _chunks(b"ZZ\r\n{}\r\n0\r\n\r\n"),
    "chunk size beyond numbers": _chunks(b"F" * 40 + b"\r\n{"),
    "negative chunk size": _chunks(b"-2\r\n{}\r\n0\r\n\r\n"), "chunk without an end": _chunks(b"2\r\n{}"),
    "chunk longer than said": _chunks(b"2\r\n{}{}{}\r\n0\r\n\r\n"),
    "chunk with words": _chunks(b"2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n"),
    "odd transfer encoding": _with(b"Transfer-Encoding: gzip, identity, x"),
    "line feeds only": lambda random, head, body: head.replace(b"\r\n", b"\n") + body,
    "carriage returns only": lambda random, head, body: head.replace(b"\r\n", b"\r") + body,
    "header without a colon": _with(b"X-Nothing"), "blank before the colon": _with(b"X-Odd : 1"),
    "folded header": _with(b"X-Folded: a\r\n b"), "zero byte in a header": _with(b"X-Zero: a\x00b"),
    "bytes in a header": _with(b"X-Bytes: \xff\xfe\xed\xa0\x80"), "bytes in a name": _with(b"X-\xff: 1"),
    "a header of 70 kB": _with(b"X-Long: " + b"a" * 70_000),
    "a thousand headers": _with(*(b"X-%d: 1" % number for number in range(1000))),
    "two hosts": _with(b"Host: other.example"), "no host": _with(without=b"host"),
    "no version": _first(lambda words: words[:2]), "version 0.9": _first(lambda words: [*words[:2], b"HTTP/0.9"]),
    "version 1.0": _first(lambda words: [*words[:2], b"HTTP/1.0"]),
    "version 9.9": _first(lambda words: [*words[:2], b"HTTP/9.9"]),
    "version of letters": _first(lambda words: [*words[:2], b"HTTP/x.y"]),
    "whole address": _first(lambda words: [words[0], b"http://other.example" + words[1], words[2]]),
    "asterisk": _first(lambda words: [b"OPTIONS", b"*", words[2]]),
    "broken address": _first(lambda words: [words[0], b"http://[", words[2]]),
    "bytes in the address": _first(lambda words: [words[0], words[1] + b"\xff\x00", words[2]]),
    "an address of 70 kB": _first(lambda words: [words[0], words[1] + b"?" + b"a" * 70_000, words[2]]),
    "more blanks": _first(lambda words: [words[0], b"", words[1], b"", words[2]]),
    "HTTP/2": lambda random, head, body: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + body,
    "a TLS hello": lambda random, head, body: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(100),
    "empty lines first": lambda random, head, body: b"\r\n" * random.randint(1, 5) + head + body,
    "cut in the head": lambda random, head, body: head[: random.randrange(len(head))],
    "cut in the body": lambda random, head, body: head + body[: len(body) // 2],
    "expects to be asked": _with(b"Expect: 100-continue"), "expects the odd": _with(b"Expect: tea"),
    "two at once": lambda random, head, body: (head + body) * 2, "noise": _noise, "noise again": _noise,
    "upgrade": _with(b"Connection: Upgrade", b"Upgrade: websocket"),
}
