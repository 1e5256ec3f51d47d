"""One request as bytes and one answer off a socket: nothing is tidied on the way, as clients of libraries do it."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass, field

from demo.processes import LOOPBACK
from tests.backend.matrix.mutations import Sent

PATIENCE_S = 30.0
CHUNK = 1000  # bytes


@dataclass(frozen=True, kw_only=True)
class Got:
    """An answer as it came; status 0: none."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)  # lower-case names
    body: bytes = b""
    seconds: float = 0.0
    closed: bool = False  # the server closes the connection after it


def bytes_of(request: Sent, port: int) -> bytes:
    """HTTP/1.1; a header of the request stands in the place of the usual one of that name."""
    path = request.path + (f"?{request.query}" if request.query else "")
    usual = {"Host": f"{LOOPBACK}:{port}"}
    usual |= {"Transfer-Encoding": "chunked"} if request.chunked else {"Content-Length": str(len(request.body))}
    headers = usual | request.headers
    lines = [f"{request.method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + _body(request)


def _body(request: Sent) -> bytes:
    if not request.chunked:
        return request.body
    parts = [request.body[at : at + CHUNK] for at in range(0, len(request.body), CHUNK)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Connection:
    """Kept alive as long as the server lets it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._rest = b""

    def ask(self, raw: bytes, *, head: bool = False, patience_s: float = PATIENCE_S) -> Got:
        """Send it and read one answer. A kept connection that the server had closed is opened once more."""
        begun, kept = time.perf_counter(), self._socket is not None
        got = self._try(raw, head, patience_s)
        if kept and not got.status and time.perf_counter() - begun < patience_s:
            got = self._try(raw, head, patience_s)
        if got.closed or not got.status:
            self.close()
        return Got(status=got.status, headers=got.headers, body=got.body, closed=got.closed,
                   seconds=time.perf_counter() - begun)

    def close(self) -> None:
        """Safe to call twice."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def _try(self, raw: bytes, head: bool, patience_s: float) -> Got:
        try:
            if self._socket is None:
                self._socket = socket.create_connection((LOOPBACK, self._port), timeout=patience_s)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(patience_s)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has answered and closed already
                self._socket.sendall(raw)
            got, self._rest = read(self._socket, self._rest, head=head)
        except (OSError, ValueError):
            got = Got()
        if not got.status:
            self.close()
        return got


def read(client: socket.socket, rest: bytes = b"", *, head: bool = False) -> tuple[Got, bytes]:
    """One answer, without `100 Continue`, and what came after it. Raises OSError, ValueError for what is no HTTP."""
    while True:
        while b"\r\n\r\n" not in rest:
            more = client.recv(65536)
            if not more:
                return Got(), b""
            rest += more
        top, _, rest = rest.partition(b"\r\n\r\n")
        first, *lines = top.decode("latin-1").split("\r\n")
        status = int(first.split(" ", 2)[1])
        if status != 100:
            break
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    closed = headers.get("connection", "").lower() == "close" or first.startswith("HTTP/1.0")
    if head or status in (204, 304):
        body = b""
    elif "chunked" in headers.get("transfer-encoding", ""):
        body, rest = _chunks(client, rest)
    elif "content-length" in headers:
        body, rest = _exactly(client, rest, int(headers["content-length"]))
    else:
        body, rest, closed = rest + _all(client), b"", True
    return Got(status=status, headers=headers, body=body, closed=closed), rest


def _exactly(client: socket.socket, rest: bytes, size: int) -> tuple[bytes, bytes]:
    parts, there = [rest], len(rest)
    while there < size:
        parts.append(client.recv(65536))
        if not parts[-1]:
            raise ValueError("cut off")
        there += len(parts[-1])
    whole = b"".join(parts)
    return whole[:size], whole[size:]


def _chunks(client: socket.socket, rest: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        while b"\r\n" not in rest:
            rest += _some(client)
        line, _, rest = rest.partition(b"\r\n")
        part, rest = _exactly(client, rest, int(line.split(b";")[0], 16) + 2)
        if part == b"\r\n":
            return body, rest
        body += part[:-2]


def _some(client: socket.socket) -> bytes:
    more = client.recv(65536)
    if not more:
        raise ValueError("cut off")
    return more


def _all(client: socket.socket) -> bytes:
    parts = []
    while more := client.recv(65536):
        parts.append(more)
    return b"".join(parts)
