"""Hostile connections, so many of each sort at a time, while others ask for /health.

Of each sort every third drips on, a byte every two seconds. Afterwards all are closed, and threads, open files and
memory of the web process are compared with those before.
"""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BODY = b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SORTS: Mapping[str, bytes] = {
    "silent": b"",
    "request line": b"POST /predict HT",
    "header": b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ",
    "body": BODY + b"Content-Length: 50\r\n\r\n{",
    "chunk size": BODY + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n{",
    "slow reader": b"GET /static/site.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20,
}
HEALTH_S = 1.0  # what others wait at most
DRIP_S = 2.0
SETTLE_S = 15.0  # for what was held to be given back
MOST_KB = 64_000  # that the process may have grown for good, with arenas of its threads
_ROOM = 200  # files of this process beside the connections


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of one sort."""

    sort: str
    connections: int
    asked: int  # how often /health was asked
    median_s: float
    slowest_s: float
    failed: int
    threads: int  # more than before
    files: int
    grown_kb: int

    @property
    def held(self) -> bool:
        """Whether nobody else noticed, and nothing stayed."""
        quick = self.asked > 0 and self.failed == 0 and self.slowest_s < HEALTH_S
        return quick and self.threads <= 0 and self.files <= 0 and self.grown_kb < MOST_KB


def attack(port: int, pid: int, sort: str, *, connections: int, seconds: float) -> Outcome:
    """Hold so many connections of a sort open; `pid` is of the process that serves. Raises OSError."""
    _allow(connections + _ROOM)
    before, clients, waits, failed = _state(pid), [], [], 0
    try:
        begun = time.monotonic()
        dripped = begun
        while time.monotonic() < begun + seconds:
            clients += [_hostile(port, SORTS[sort]) for _ in range(min(50, connections - len(clients)))]
            if time.monotonic() > dripped + DRIP_S:
                dripped = time.monotonic()
                _drip(clients[::3])
            wait = _health(port)
            failed += wait is None
            waits += [] if wait is None else [wait]
            if len(clients) == connections:
                time.sleep(0.05)
    finally:
        for client in clients:
            client.close()
    end = time.monotonic() + SETTLE_S
    while (after := _state(pid))["files"] > before["files"] and time.monotonic() < end:
        time.sleep(0.2)
    return Outcome(
        sort=sort, connections=len(clients), asked=len(waits) + failed, median_s=statistics.median(waits or [0.0]),
        slowest_s=max(waits, default=0.0), failed=failed, threads=after["threads"] - before["threads"],
        files=after["files"] - before["files"], grown_kb=after["kb"] - before["kb"],
    )


def _hostile(port: int, begun: bytes) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that a slow reader is one
    client.settimeout(5.0)
    client.connect(("127.0.0.1", port))
    client.sendall(begun)
    return client


def _drip(clients: list[socket.socket]) -> None:
    for client in clients:
        with contextlib.suppress(OSError):  # closed by the server, which is its cure
            client.send(b"a", socket.MSG_DONTWAIT)


def _health(port: int) -> float | None:
    """Seconds on a connection of its own; None where it is not answered."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * HEALTH_S)
    try:
        connection.request("GET", "/health")
        return time.monotonic() - began if connection.getresponse().status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _state(pid: int) -> dict[str, int]:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return {"threads": int(lines["Threads"]), "kb": int(lines["VmRSS"].split()[0]), "files": files}


def _allow(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
