"""A hostile file server: every path misbehaves in its own way, and all requests are kept for inspection."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PICTURE = b"\x89PNG the bytes of a picture"


class Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))
        path = self.path.partition("?")[0]
        if path in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[path])
            self.end_headers()
        elif path == "/missing.png":
            self.send_error(404)
        elif path == "/busy.png":
            self.send_error(503)
        elif path == "/endless.png":
            self._start(None)
            self._until_closed(b"x" * 65536)
        elif path == "/announced-huge.png":
            self._start(10**12)
        elif path == "/drip.png":
            self._start(1000)
            self._until_closed(b"x", pause=0.05)
        elif path == "/silent.png":
            time.sleep(3)
        elif path == "/broken-off.png":
            self._start(1000)
            self.wfile.write(b"only this")
        elif path == "/bomb.png":
            self._start(None, encoding="gzip")
            self.wfile.write(gzip.compress(bytes(10_000_000)))
        elif path == "/empty.png":
            self._start(0)
        else:
            self._start(len(PICTURE))
            self.wfile.write(PICTURE)

    def _start(self, length: int | None, encoding: str = "") -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()

    def _until_closed(self, data: bytes, pause: float = 0.0) -> None:
        try:
            while True:
                self.wfile.write(data)
                self.wfile.flush()
                time.sleep(pause)
        except OSError:
            return

    def log_message(self, *args: object) -> None:
        """Nothing: the requests are in `seen`."""


class FileServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.redirects: dict[str, str] = {}

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def file_server() -> Iterator[FileServer]:
    server = FileServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
