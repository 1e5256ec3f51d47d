"""gunicorn's worker with an event loop in front: no thread is given to a request that has not arrived whole.

gunicorn looks after the processes (start, signals, restarts); Waitress takes connections, reads requests in one loop
and hands whole ones to the threads. gunicorn's own threaded worker gives a thread to whoever connects: eight clients
that never finish their request stop it.

An annotator's Submit waits for /webhook, so what is that light has threads of its own beside the common ones, all of
which predictions can hold for as long as encoding takes.

What a client may take its time for is limited on a monotonic clock, in total and not from one byte to the next:
the head and the body of a request, the pause between two requests, and reading the answer.

Invariants: a connection beyond its limit is closed within about a second; connections cost memory, never a thread;
an error that the server itself answers is JSON with one sentence, as those of the app.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, ThreadedTaskDispatcher

MOST_CONNECTIONS = 8000  # or half of the files that the process may open
HEAD_BYTES = 64 * 1024
ACCEPTED = 64  # connections in one turn of the loop
LAST_ANSWERS_S = 3.0  # for answers under way when somebody presses Ctrl-C
HEAD_ENDS = b"\r\n\r\n"
CHUNKED_PIECE = 1024  # bytes of a body without a length that are read at once, since another request may follow in them
LIGHT = frozenset({"/webhook", "/health"})
LIGHT_THREADS = 2
SWITCH_S = 0.0005  # a thread that computes gives way so soon; by default a webhook waits 5 ms after each statement
LOOP_S = 0.5  # how often the loop looks at the clock while nothing happens
LIMITS_S: Mapping[str, float] = MappingProxyType({
    "head": 10.0,  # from connecting, or from the first byte of a later request, to the end of its headers
    "body": 120.0,
    "pause": 75.0,  # between two requests of one connection
    "answer": 900.0,  # computing and reading one: exports stream
})
SENTENCES: Mapping[int, str] = MappingProxyType({
    400: "The request is no HTTP that can be read.",
    413: "The body is larger than this server takes (POLYVOX_MAX_BODY_MB).",
    431: "The headers are larger than 64 kB.",
    500: "Something went wrong before the request reached Polyvox.",
    501: "This transfer encoding is not supported.",
})


class _Error(ErrorTask):  # type: ignore[misc]
    def execute(self) -> None:
        """One sentence, as the app answers; nothing of the request is repeated."""
        code = self.request.error.code
        body = json.dumps({"error": SENTENCES.get(code, "The request was refused.")}).encode()
        self.status = f"{code} {self.request.error.reason}"
        self.content_length = len(body)
        self.response_headers.append(("Content-Type", "application/json"))
        self.response_headers.append(("Connection", "close"))
        self.close_on_finish = True
        self.write(body)


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """One request as it arrives; whatever its head is, it is answered."""

    def parse_header(self, header_plus: bytes) -> None:
        """As the parent's, which lets the error of an address such as `http://[` through: the connection would be
        closed without an answer, and the log get a traceback for each."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:
            raise ParsingError("Bad URI") from error


class Channel(HTTPChannel):  # type: ignore[misc]
    """One connection, which knows what it has been waiting for and since when."""

    error_task_class = _Error
    parser_class = Parser

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._phase: tuple[str, int] = ("head", 0)
        self._since = time.monotonic()
        self._served = 0  # requests
        self._ahead = b""  # what came behind a request that is not answered yet
        super().__init__(*arguments, **options)

    def overdue(self, now: float) -> bool:
        """Whether the client has used up its time; looked at about once a second, so phases begin that exactly."""
        phase = self._now()
        if phase != self._phase:
            self._phase, self._since = phase, now
        return now - self._since > LIMITS_S[phase[0]]

    def _now(self) -> tuple[str, int]:
        """The phase, and what tells one request from the next."""
        if self.requests or self.total_outbufs_len:
            return "answer", self._served
        if self.request is None:
            return ("pause" if self._served else "head"), self._served
        return ("body" if self.request.headers_finished else "head"), self._served

    def received(self, data: bytes) -> bool:
        """As the parent's, but one request at a time: those that a client sends ahead stay bytes until it has read the
        answer. The parent parses all at once, in the loop: forty thousand of them kept everybody waiting for seconds.
        """
        data, self._ahead = self._ahead + data, b""
        while data and not self.requests:
            end = self._until(data)
            if not super().received(data[:end]):
                return False
            data = data[end:]
        self._ahead = data
        return True

    def _until(self, data: bytes) -> int:
        """How many bytes may belong to the present request: to the end of its head, or of its body."""
        if self.request is not None and self.request.headers_finished:
            return int(getattr(self.request.body_rcv, "remain", 0)) or CHUNKED_PIECE
        at = data.find(HEAD_ENDS)
        return len(data) if at < 0 else at + len(HEAD_ENDS)

    def readable(self) -> bool:
        """Called at every turn of the loop: what came ahead has its turn once all before it was answered and read."""
        if self._ahead and self._idle():
            self.received(b"")
        return not self._ahead and bool(super().readable())

    def _idle(self) -> bool:
        return not (self.requests or self.total_outbufs_len or self.will_close or self.close_when_flushed)

    def send_continue(self) -> None:
        """As the parent's, but not for a request that has arrived whole, without a body or refused: the parent would
        wait for more of it, and never answer."""
        if not self.request.completed:
            super().send_continue()

    def service(self) -> None:
        """As the parent's, in a thread; counted, since all of it may happen between two looks."""
        try:
            super().service()
        finally:
            self._served += 1


class Server(TcpWSGIServer):  # type: ignore[misc]
    """Waitress' server, which closes what is overdue."""

    channel_class = Channel
    light: ThreadedTaskDispatcher | None = None
    _next_look = 0.0

    def add_task(self, task: Channel) -> None:
        """Called when a request has arrived whole: gives it to the threads that it is for."""
        light = self.light
        path = getattr(task.requests[0], "path", "")  # what is no HTTP has none
        if light is not None and not light.queue and path in LIGHT:
            light.add_task(task)
        else:
            self.task_dispatcher.add_task(task)

    def readable(self) -> bool:
        """Called at every turn of the loop; looks at all connections about once a second."""
        moment = time.monotonic()
        if moment >= self._next_look:
            self._next_look = moment + 1.0
            for channel in list(self.active_channels.values()):
                if channel.overdue(moment):
                    channel.cancel()
        return bool(super().readable())

    def handle_accept(self) -> None:
        """As the parent's, which takes one connection in a turn of the loop: a turn looks at all connections, so that
        thousands at once would take it a time that grows with their square, and others wait for it."""
        for _ in range(ACCEPTED):
            before = len(self._map)
            super().handle_accept()
            if len(self._map) <= before or len(self._map) >= self.adj.connection_limit:
                return

    def maintenance(self, now: float) -> None:
        """Nothing: the parent calls it by the wall clock, which may jump."""


class FrontWorker(Worker):  # type: ignore[misc]
    """The worker class for gunicorn: `worker_class = "backend.web_worker.FrontWorker"`."""

    def run(self) -> None:
        """Serve until told to stop; then answer what has arrived, within the grace time."""
        # It warns once for each request that waits for a thread: a log that anybody could fill, and whose reader, where
        # it falls behind, would hold all threads.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        sys.setswitchinterval(SWITCH_S)
        dispatcher, light = ThreadedTaskDispatcher(), ThreadedTaskDispatcher()
        dispatcher.set_thread_count(self.cfg.threads)
        light.set_thread_count(LIGHT_THREADS)
        channels: dict[int, Any] = {}
        adjustments = Adjustments(
            sockets=[each.sock for each in self.sockets], connection_limit=_most_connections(), cleanup_interval=1,
            channel_timeout=10**9, asyncore_use_poll=True, max_request_header_size=HEAD_BYTES, ident="polyvox",
            max_request_body_size=_most_body(self.wsgi), log_socket_errors=False, clear_untrusted_proxy_headers=False,
        )
        servers = [
            Server(self.wsgi, channels, True, each.sock, dispatcher=dispatcher, adj=adjustments, bind_socket=False,
                   sockinfo=(each.sock.family, each.sock.type, each.sock.proto, each.sock.getsockname()))
            for each in self.sockets
        ]
        for server in servers:
            server.light = light
        try:
            while self.alive and os.getppid() == self.ppid:
                self._turn(channels)
            for server in servers:
                server.accepting = False
            self._finish(channels, self.cfg.graceful_timeout)
        except SystemExit:  # Ctrl-C: gunicorn raises it from a signal handler
            self._finish(channels, LAST_ANSWERS_S)
            raise
        finally:
            for each in (dispatcher, light):
                each.shutdown(timeout=0)
            wasyncore.close_all(channels, ignore_all=True)

    def _finish(self, channels: dict[int, Any], seconds: float) -> None:
        """Answer the requests that have arrived whole, as far as there is time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and _busy(channels):
            self._turn(channels)

    def _turn(self, channels: dict[int, Any]) -> None:
        self.notify()
        wasyncore.loop(timeout=LOOP_S, use_poll=True, map=channels, count=1)


def _busy(channels: Mapping[int, Any]) -> bool:
    """Whether a whole request is being answered, or its answer read."""
    each = [channel for channel in channels.values() if isinstance(channel, Channel)]
    return any(channel.requests or channel.total_outbufs_len for channel in each)


def _most_body(app: Any) -> int:
    """What the app takes at most, in bytes."""
    limit = getattr(app, "config", {}).get("MAX_CONTENT_LENGTH")
    return int(limit) if limit else 2**30


def _most_connections() -> int:
    """Raises the limit of open files of this process as far as it may, and leaves half of them to the app."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 2 * MOST_CONNECTIONS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(100, min(MOST_CONNECTIONS, max(soft, wanted) // 2))
