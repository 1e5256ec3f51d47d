"""A small HTTP server that answers by script and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(kw_only=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    authorization: str
    body: Any


@dataclass(kw_only=True)
class Answer:
    status: int = 200
    body: Any = None  # encoded as JSON, unless it is text
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    body_delay_s: float = 0.0  # between the headers and the body


Script = Callable[[Request], Answer]


@dataclass(kw_only=True)
class Server:
    url: str
    requests: list[Request]

    def paths(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.requests]


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    """Serve on a free port of the loopback interface while the block runs."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            address = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(
                method=self.command,
                path=address.path,
                query={name: values[0] for name, values in parse_qs(address.query).items()},
                authorization=self.headers.get("Authorization", ""),
                body=json.loads(raw) if raw else None,
            )
            requests.append(request)
            answer = script(request)
            time.sleep(answer.delay_s)
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            content = b"" if answer.body is None else text.encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            time.sleep(answer.body_delay_s)
            with suppress(BrokenPipeError, ConnectionResetError):  # the client lost patience, as it should
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Server(url=f"http://127.0.0.1:{server.server_address[1]}", requests=requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
