"""A deadline for a whole exchange over HTTP: from the first byte that is sent to the last one that is read.

The time-outs of `requests` and urllib3 are for each single read: an answer that drips a byte a second lasts as long as
it drips, in its headers as well as in its body. So every connection of these pools tells the watch of its thread which
socket it uses, and the watch cuts that socket when time is over, which wakes whoever waits for it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

_this_thread = threading.local()


class Watch:
    """Cuts the sockets of one thread's exchange when its time is over."""

    def __init__(self) -> None:
        self.over = False
        self._sockets: list[Any] = []
        self._lock = threading.Lock()

    def uses(self, sock: Any) -> None:
        """A socket that the exchange is about to read from."""
        with self._lock:
            self._sockets.append(sock)
            if self.over:
                _cut(sock)

    def cut(self) -> None:
        """Time is over: end what is being read, and what will be."""
        with self._lock:
            self.over = True
            for sock in self._sockets:
                _cut(sock)


@contextmanager
def within(seconds: float) -> Iterator[Watch]:
    """Give what this thread asks of pools of `DeadlineAdapter` in the block so much time, all in all."""
    watch = Watch()
    timer = threading.Timer(seconds, watch.cut)
    timer.daemon = True
    outer, _this_thread.watch = _current(), watch  # a token is refreshed in the middle of another exchange
    timer.start()
    try:
        yield watch
    finally:
        timer.cancel()
        _this_thread.watch = outer


def is_over() -> bool:
    """Whether the exchange that this thread is in has used up its time."""
    watch = _current()
    return watch is not None and watch.over


class DeadlineAdapter(HTTPAdapter):
    """An adapter of `requests` whose connections can be cut by `within`."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """As the parent's, with pools of our connections."""
        super().init_poolmanager(*arguments, **options)  # type: ignore[no-untyped-call,unused-ignore]
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}


class _Connection(HTTPConnection):
    def getresponse(self) -> Any:
        _tell(self.sock)
        return super().getresponse()


class _SecureConnection(HTTPSConnection):
    def getresponse(self) -> Any:
        _tell(self.sock)
        return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _current() -> Watch | None:
    watch: Watch | None = getattr(_this_thread, "watch", None)
    return watch


def _tell(sock: Any) -> None:
    watch = _current()
    if watch is not None:
        watch.uses(sock)


def _cut(sock: Any) -> None:
    if sock is not None:
        with suppress(OSError):  # closed in the meantime
            sock.shutdown(socket.SHUT_RDWR)
