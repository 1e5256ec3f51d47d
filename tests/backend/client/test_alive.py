"""Whether Label Studio answers: seen within seconds, asked seldom, never an error."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from backend.client.alive import EVERY_S, Alive


@pytest.fixture
def studio():
    """A server that counts what it is asked; `status` is what it answers."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(self.server.status)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_is_asked_seldom_and_without_a_token(studio):
    now = [0.0]
    alive = Alive(f"http://127.0.0.1:{studio.server_port}/", seconds=lambda: now[0])
    assert all(alive.answers() for _ in range(9))
    assert studio.asked == [("/health", None)]
    now[0] = EVERY_S
    assert alive.answers() and len(studio.asked) == 2


@pytest.mark.parametrize("status, answers", [(200, True), (302, True), (404, True), (502, False), (503, False)])
def test_a_proxy_without_a_server_behind_it_is_no_answer(studio, status, answers):
    studio.status = status
    assert Alive(f"http://127.0.0.1:{studio.server_port}").answers() is answers


def test_nobody_there_is_seen_and_so_is_the_return(studio):
    now = [0.0]
    port = studio.server_port
    alive = Alive(f"http://127.0.0.1:{port}", seconds=lambda: now[0])
    assert alive.answers()
    studio.status = 503
    now[0] += EVERY_S
    assert not alive.answers()
    studio.status = 200
    now[0] += EVERY_S
    assert alive.answers()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://[::1"])
def test_what_cannot_be_reached_is_down(url):
    assert not Alive(url).answers()


def test_without_an_address_nothing_is_asked():
    assert Alive("").answers()
