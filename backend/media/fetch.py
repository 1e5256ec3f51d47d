"""Fetching one file: pinned address, redirects judged again, capped in size and time.

Invariants: a connection goes to the address that `guard` judged, never to a name; the token goes to Label Studio's own
origin only, and no redirect carries it elsewhere; no answer is read beyond `Limits.bytes`, no fetch lasts beyond
`Limits.seconds`, also when the other side sends a byte now and then; compressed answers are refused, since a small one
may unpack to any size. Proxies of the environment are not used: behind one, the judged address would mean nothing.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import urljoin

import certifi
from urllib3 import HTTPResponse
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from backend.errors import MediaError
from backend.media.addresses import as_browser, location_text
from backend.media.guard import Guard, Target

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one file may cost."""

    bytes: int = 64_000_000
    seconds: float = 60.0
    redirects: int = 4


class Fetcher:
    """Reads files over HTTP. Safe for several threads; every fetch has a connection of its own."""

    def __init__(
        self, guard: Guard, *, limits: Limits, authorization: Callable[[], str] | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`authorization` gives the value of the header for Label Studio."""
        self._guard = guard
        self._limits = limits
        self._authorization = authorization
        self._seconds = seconds
        self._tls = ssl.create_default_context(cafile=certifi.where())
        self._tls.load_default_certs()

    def fetch(self, url: str, into: IO[bytes]) -> int:
        """Write the file into an open file and return its size in bytes. Raises MediaError."""
        until = self._seconds() + self._limits.seconds
        target = self._guard.admit(url)
        for _ in range(self._limits.redirects + 1):
            with self._answer(target, until) as answer:
                if answer.status not in _REDIRECTS:
                    return self._body(answer, target, into, until)
                location = answer.headers.get("Location", "")
            try:
                url = urljoin(as_browser(url), location_text(location).replace("\\", "/"))
            except ValueError as error:
                raise MediaError(f"The host {target.host} redirects to what is no address.") from error
            target = self._guard.admit(url, sent_by_label_studio=target.own)
        raise MediaError(f"The host {target.host} redirects more than {self._limits.redirects} times.")

    @contextmanager
    def _answer(self, target: Target, until: float) -> Iterator[HTTPResponse]:
        """The answer's head, with the body still to be read; the connection is cut when time is over."""
        connection = self._connection(target, until)
        sockets: list[Any] = []  # the connection itself forgets its socket where the answer ends with it
        cut = threading.Timer(max(until - self._seconds(), 0.0), _cut, [connection, sockets])
        cut.daemon = True
        try:
            cut.start()
            connection.connect()
            sockets.append(connection.sock)
            headers = {"Host": target.netloc, "Accept-Encoding": "identity", "User-Agent": "polyvox"}
            if target.own and self._authorization is not None:
                headers["Authorization"] = self._authorization()
            connection.request("GET", target.path, headers=headers, preload_content=False, decode_content=False)
            yield connection.getresponse()
        except (HTTPError, OSError) as error:
            if self._seconds() >= until:
                raise self._late(target) from error
            raise MediaError(f"The host {target.host} cannot be reached.", retry=True) from error
        except (ValueError, HTTPException) as error:  # an address or an answer that HTTP cannot carry
            raise MediaError(f"The host {target.host} cannot be asked for the file.") from error
        finally:
            cut.cancel()
            connection.close()

    def _connection(self, target: Target, until: float) -> HTTPConnection:
        timeout = max(min(10.0, until - self._seconds()), 0.001)
        if target.scheme == "http":
            return HTTPConnection(target.address, target.port, timeout=timeout)
        return HTTPSConnection(
            target.address, target.port, timeout=timeout, ssl_context=self._tls, server_hostname=target.host,
            assert_hostname=target.host,
        )  # fmt: skip

    def _body(self, answer: HTTPResponse, target: Target, into: IO[bytes], until: float) -> int:
        if answer.status != 200:
            gone = answer.status in (401, 403, 404, 410)
            raise MediaError(f"The host {target.host} answered {answer.status} for the file.", retry=not gone)
        if answer.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
            raise MediaError(f"The host {target.host} sent a compressed answer, which was not asked for.")
        announced = answer.headers.get("Content-Length", "")
        size = int(announced) if announced.isdecimal() else None
        if size is not None and size > self._limits.bytes:
            raise self._large()
        read = 0
        while chunk := answer.read(min(_CHUNK, self._limits.bytes + 1 - read)):
            read += len(chunk)
            if read > self._limits.bytes:
                raise self._large()
            if self._seconds() >= until:
                raise self._late(target)
            into.write(chunk)
        if self._seconds() >= until:  # a connection that was cut looks like the end of a body without a length
            raise self._late(target)
        if size is not None and read != size:
            raise MediaError(f"The host {target.host} broke off in the middle of the file.", retry=True)
        return read

    def _large(self) -> MediaError:
        return MediaError(f"The file is larger than {self._limits.bytes / 1e6:g} MB (POLYVOX_MEDIA_MAX_MB).")

    def _late(self, target: Target) -> MediaError:
        message = f"The host {target.host} did not send the file within {self._limits.seconds:g} s."
        return MediaError(message, retry=True)


def _cut(connection: HTTPConnection, sockets: list[Any]) -> None:
    """End a connection from another thread: what waits for it wakes up."""
    for sock in [*sockets, connection.sock]:
        if sock is not None:
            with suppress(OSError):  # closed in the meantime
                sock.shutdown(socket.SHUT_RDWR)
