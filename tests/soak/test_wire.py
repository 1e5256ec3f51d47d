"""Answers are read as they are framed, and what is sent is what the case says, byte by byte."""

from __future__ import annotations

import socket
from random import Random

import pytest

from tests.backend.matrix.mutations import Sent
from tests.soak.framing import FRAMINGS
from tests.soak.wire import bytes_of, read


@pytest.mark.parametrize("raw, body, rest, closed", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP", b"ok", b"HTTP", False),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nnext", b"abcde",
     b"next", False),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", b"", False),
    (b"HTTP/1.1 200 OK\r\n\r\nto the end", b"to the end", b"", True),
    (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", b"x", b"", True),
], ids=["length", "chunks", "continue", "to the end", "closes"])
def test_an_answer_is_read_to_its_end_and_no_further(raw: bytes, body: bytes, rest: bytes, closed: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(raw)
        theirs.shutdown(socket.SHUT_WR)
        got, left = read(ours)
    assert (got.body, left, got.closed) == (body, rest, closed)


def test_an_answer_that_is_cut_off_is_none() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf")
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(ValueError, match="cut off"):
            read(ours)


def test_nothing_of_a_request_is_tidied() -> None:
    request = Sent(method="get", path="/\u00e9", query="a=%ff", body=b"{}", headers={"Host": "", "X-\u00e9": "a b"})
    lines = "get /\u00e9?a=%ff HTTP/1.1\r\nHost: \r\nContent-Length: 2\r\nX-\u00e9: a b\r\n\r\n{}"
    assert bytes_of(request, 9) == lines.encode()
    chunked = bytes_of(Sent(method="POST", path="/", body=b"{}", chunked=True), 9)
    assert chunked.endswith(b"\r\n\r\n2\r\n{}\r\n0\r\n\r\n")


def test_each_framing_changes_what_is_sent() -> None:
    head, _, body = bytes_of(Sent(method="POST", path="/predict", body=b'{"tasks": []}'), 9).partition(b"\r\n\r\n")
    whole = head + b"\r\n\r\n"
    assert [name for name, make in FRAMINGS.items() if make(Random(1), whole, body) == whole + body] == []
