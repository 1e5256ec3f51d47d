"""The event loop in front of the threads: how long a connection may stay, whatever happens between two looks at it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from backend import web_worker
from demo.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
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


def test_requests_that_come_ahead_are_answered_in_order_and_parsed_one_at_a_time(
    front: tuple[int, Callable[[float], None]], monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, run = front
    parsed: list[int] = []  # requests that waited after each look at what came
    received = web_worker.Channel.received

    def looked(channel: Any, data: bytes) -> bool:
        done = received(channel, data)
        parsed.append(len(channel.requests))
        return done

    monkeypatch.setattr(web_worker.Channel, "received", looked)
    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n\r\n\r\nab"
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall((ASK + post) * 40)
        client.sendall(ASK[:10])
        answers = b""
        for _ in range(100):
            run(0.05)
            answers += _read(client) or b""
            if answers.count(b"HTTP/1.1 200") == 80:
                break
        assert answers.count(b"HTTP/1.1 200") == 80 and max(parsed) == 1
        client.sendall(ASK[10:])
        run(0.3)
        assert (_read(client) or b"").startswith(b"HTTP/1.1 200"), "one that came in two parts"


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


SLOW = """
import sys, time
from gunicorn.app.base import BaseApplication

def answer(environ, start):
    if environ["PATH_INFO"] == "/predict":
        time.sleep(4.0)
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]

class Application(BaseApplication):
    def load_config(self):
        for name, value in {"bind": "127.0.0.1:" + sys.argv[1], "worker_class": "backend.web_worker.FrontWorker",
                            "threads": 3, "loglevel": "warning", "control_socket_disable": True}.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self):
        return answer

Application().run()
"""


def test_what_is_light_is_answered_while_predictions_hold_all_threads() -> None:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", SLOW, str(port)], cwd=ROOT)
    try:
        until = time.monotonic() + 30.0
        while _status(port, "/health") != 200:
            assert time.monotonic() < until, "the server does not begin"
            time.sleep(0.1)
        with ThreadPoolExecutor(3) as pool:
            predicted = [pool.submit(_status, port, "/predict") for _ in range(3)]
            while _status(port, "/other", 0.5) == 200:  # until all threads predict
                assert not any(each.done() for each in predicted)
            assert [_status(port, path) for path in ("/webhook", "/health", "/webhook")] == [200, 200, 200]
            assert not any(each.done() for each in predicted)
            assert [each.result() for each in predicted] == [200, 200, 200]
    finally:
        server.terminate()
        server.wait(30)


def _status(port: int, path: str, seconds: float = 10.0) -> int | None:
    """What a GET is answered with; None where nothing comes in time."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        asked.request("GET", path)
        return asked.getresponse().status
    except OSError:
        return None
    finally:
        asked.close()


@pytest.mark.parametrize("sent, status", [
    (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n", b"200"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n", b"413"),
    (b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
    (b"GET http://[::x]/ HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
], ids=["expects with nothing to send", "expects with too much to send", "half an address", "an address that is none"])
def test_a_head_that_is_whole_is_answered(
    front: tuple[int, Callable[[float], None]], caplog: pytest.LogCaptureFixture, sent: bytes, status: bytes,
) -> None:
    port, run = front
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(sent)
        until = time.monotonic() + 10.0
        while (answer := _read(client)) is None and time.monotonic() < until:
            run(0.05)
    assert (answer or b"").split(b" ")[1:2] == [status]
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_many_connections_at_once_take_few_turns_of_the_loop(
    front: tuple[int, Callable[[float], None]], monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each turn looks at all connections; one connection a turn is a time that grows with their square."""
    port, run = front
    turns, readable = 0, web_worker.Server.readable

    def counted(server: web_worker.Server) -> bool:
        nonlocal turns
        turns += 1
        return readable(server)

    monkeypatch.setattr(web_worker.Server, "readable", counted)
    with contextlib.ExitStack() as stack:
        *_, last = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(80)]
        last.sendall(ASK)
        while (answer := _read(last)) is None:
            run(0.01)
    assert answer.startswith(b"HTTP/1.1 200") and turns < 30
