"""Whether Label Studio answers: seen within seconds, asked seldom, never an error; what is no Label Studio is named."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from backend.client.alive import ELSEWHERE, EVERY_S, FOREIGN, SILENT, SLOW, Alive
from tests.backend.client.server import Answer, Request, Server, serving

UP = {"status": "UP"}


@contextlib.contextmanager
def studio(**at: Answer) -> Iterator[Server]:
    """Answers `health` and `version` as told; 404 for what it is not told of."""
    def script(request: Request) -> Answer:
        name = {"/health/": "health", "/api/version/": "version"}.get(request.path, "")
        return at.get(name, Answer(status=404, body="<h1>Not found</h1>"))

    with serving(script) as server:
        yield server


def said(**at: Answer) -> str:
    with studio(**at) as server:
        return Alive(server.url).problem()


def test_it_is_asked_seldom_and_without_a_token() -> None:
    now = [0.0]
    with studio(health=Answer(body=UP)) as server:
        alive = Alive(f"{server.url}/", seconds=lambda: now[0])
        assert [alive.problem() for _ in range(9)] == [""] * 9
        assert server.paths() == ["GET /health/"] and server.requests[0].authorization == ""
        now[0] = EVERY_S
        assert alive.problem() == "" and len(server.requests) == 2


def test_a_proxy_without_a_server_behind_it_is_no_answer() -> None:
    for status in (500, 502, 503):
        assert f"answers with an error ({status})" in said(health=Answer(status=status), version=Answer(status=status))


@pytest.mark.parametrize("answer", [
    Answer(body="<!doctype html><form action=login>"), Answer(body="UP"), Answer(body=["a"]), Answer(body=None),
    Answer(status=404, body="{}"), Answer(status=401, body={"detail": "no"}), Answer(body="x" * 100_000),
    Answer(body="[" * 20_000),
], ids=["login page", "text", "list", "empty", "not found", "refused", "long", "deep"])
def test_what_is_no_label_studio_is_named(answer: Answer) -> None:
    assert said(health=answer, version=answer) == FOREIGN


def test_a_proxy_that_hides_the_one_path_shows_the_other() -> None:
    assert said(health=Answer(status=403, body="no"), version=Answer(body={"release": "1.23"})) == ""


def test_redirects_within_the_same_address_are_followed() -> None:
    assert said(health=Answer(status=302, headers={"Location": "/api/version/"}), version=Answer(body=UP)) == ""
    login = Answer(status=302, headers={"Location": "https://login.example.org/"})
    assert said(health=login, version=login) == ELSEWHERE
    around = Answer(status=302, headers={"Location": "/health/"})
    assert said(health=around, version=around) == FOREIGN


def test_nobody_there_is_seen_and_so_is_the_return() -> None:
    now, answer = [0.0], Answer(body=UP)
    with studio(health=answer) as server:
        alive = Alive(server.url, seconds=lambda: now[0])
        assert alive.problem() == ""
        answer.status = 503
        now[0] += EVERY_S
        assert alive.problem() != ""
        answer.status = 200
        now[0] += EVERY_S
        assert alive.problem() == ""


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://[::1"])
def test_what_cannot_be_reached_is_down(url: str) -> None:
    assert Alive(url).problem() == SILENT


@contextlib.contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """Sends what it is told, then a byte a fifth of a second."""
    listener, done = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(4096)
                    client.sendall(head)
                    while not done.wait(0.2):
                        client.sendall(b" ")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@pytest.mark.parametrize("head", [
    b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
], ids=["head", "body", "body of a length"])
def test_an_answer_that_drips_is_none(head: bytes) -> None:
    with dripping(head) as url:
        begun = time.monotonic()
        assert Alive(url).problem() == SLOW
        assert time.monotonic() - begun < 4.0


def test_without_an_address_nothing_is_asked() -> None:
    assert Alive("").problem() == ""
