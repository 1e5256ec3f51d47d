"""The event loop in front of the threads: how long a connection may stay, whatever happens between two looks at it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from backend import web_worker

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def _app(environ: Any, start: Any) -> list[bytes]:
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Callable[[float], None]]]:
    """A port, and what runs the loop for some seconds."""
    monkeypatch.setattr(web_worker, "LIMITS_S", {"head": 1.5, "body": 5.0, "pause": 60.0, "answer": 60.0})
    dispatcher = ThreadedTaskDispatcher()
    dispatcher.set_thread_count(1)
    channels: dict[int, Any] = {}
    listening = socket.create_server(("127.0.0.1", 0))
    adjustments = Adjustments(sockets=[listening], cleanup_interval=1, channel_timeout=10**9,
                              clear_untrusted_proxy_headers=False)
    web_worker.Server(_app, channels, True, listening, dispatcher=dispatcher, adj=adjustments, bind_socket=False,
                      sockinfo=(listening.family, listening.type, listening.proto, listening.getsockname()))

    def run(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            wasyncore.loop(timeout=0.02, use_poll=True, map=channels, count=1)

    yield listening.getsockname()[1], run
    dispatcher.shutdown(timeout=1)
    wasyncore.close_all(channels, ignore_all=True)


def _read(client: socket.socket) -> bytes | None:
    """What has come; b"" where the connection was closed, None where nothing came."""
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        return client.recv(4096)
    return None


def test_a_connection_that_was_answered_between_two_looks_may_pause(front: tuple[int, Callable[[float], None]]) -> None:
    port, run = front
    run(0.1)  # so that the next look is a second away
    with socket.create_connection(("127.0.0.1", port)) as client:
        for _ in range(2):
            client.sendall(ASK)
            run(0.3)
            assert (_read(client) or b"").startswith(b"HTTP/1.1 200")
            run(3.0)  # longer than a head may take
            assert _read(client) is None


def test_a_clock_that_is_set_back_keeps_nobody(
    front: tuple[int, Callable[[float], None]], monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, run = front
    run(0.1)
    before = time.time()
    monkeypatch.setattr("waitress.server.time", SimpleNamespace(time=lambda: before - 3600.0))
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET / HT")
        run(3.5)
        assert _read(client) == b""


def test_an_answer_that_ends_during_a_look_stops_nothing() -> None:
    """Threads take requests off the list while the loop looks at it."""

    class Ending(list):  # type: ignore[type-arg]
        def __bool__(self) -> bool:
            self.clear()  # right after the loop has seen that one is there
            return True

    channel: Any = web_worker.Channel.__new__(web_worker.Channel)
    channel.__dict__.update(_phase=("head", 0), _since=0.0, _served=0, requests=Ending(["one"]), request=None)
    assert channel.overdue(5.0) is False
