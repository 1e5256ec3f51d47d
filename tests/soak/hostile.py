"""Hostile connections, so many of each sort at a time, while others ask for /health.

Of each sort every third drips on, a byte every two seconds. Afterwards all are closed, and threads, open files and
memory of the web process are compared with those before.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from backend.commands.progress import progress_bar
from tests.backend.test_serve import free_port, healthy, processes_of, serving, until
from tests.soak.report import Judged, Part, table
from tests.soak.watch import watching

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
    slowest_at_s: float  # from the beginning
    overslept_s: float  # by the process that asks: what the machine kept it from running
    failed: int
    threads: int  # more than before
    files: int
    grown_kb: int

    @property
    def held(self) -> bool:
        """Whether nobody else noticed, and nothing stayed."""
        quick = self.asked > 0 and self.failed == 0 and self.slowest_s < HEALTH_S
        return quick and self.threads <= 0 and self.files <= 0 and self.grown_kb < MOST_KB


def run(*, connections: Sequence[int], seconds: float) -> Part:
    """Every sort in every number against one server; each outcome is printed as it comes."""
    found, begun = list[Outcome](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with serving(Path(folder), port) as process:
            until(lambda: healthy(port) or process.poll() is not None)
            pid = web_process(Path(folder))
            with progress_bar("hostile connections") as tell:
                for at, (number, sort) in enumerate(product(connections, SORTS)):
                    tell(at / len(connections) / len(SORTS), f"{number} x {sort}")
                    found.append(attack(port, pid, sort, connections=number, seconds=seconds))
            process.terminate()
            process.wait(60)
    judged = [Judged.of(f"{of.connections} x {of.sort}: others are answered within {HEALTH_S:g} s and nothing stays",
                        f"{of.slowest_s * 1000:.0f} ms, {of.failed} failed", f"under {HEALTH_S:g} s, 0 failed", of.held)
              for of in found]
    rows = [(of.sort, of.connections, of.asked, *(f"{each * 1000:.0f} ms" for each in (of.median_s, of.slowest_s)),
             f"{of.slowest_at_s:.0f} s", f"{of.overslept_s * 1000:.0f} ms", of.failed, f"{of.threads:+}",
             f"{of.files:+}", f"{of.grown_kb / 1024:+.0f} MB") for of in found]
    head = ("sort", "connections", "/health asked", "median", "slowest", "when", "overslept", "failed", "threads",
            "files", "memory")
    return Part.made_now("hostile", judged, seconds=time.monotonic() - begun, tables=[table(head, rows)], about=(
        f"{', '.join(map(str, connections))} connections of each of {len(SORTS)} sorts for {seconds:g} s each; every "
        "third drips. /health is asked by a process of its own; *overslept*: the longest that the machine kept this "
        "process from running meanwhile."))


def web_process(folder: Path) -> int:
    """The one with the most threads: its pool."""
    return max(processes_of(folder), key=lambda pid: len(list(Path(f"/proc/{pid}/task").iterdir())))


def attack(port: int, pid: int, sort: str, *, connections: int, seconds: float) -> Outcome:
    """Hold so many connections of a sort open; `pid` is of the process that serves. Raises OSError."""
    _allow(connections + _ROOM)
    before, clients = _state(pid), list[socket.socket]()
    with watching(port) as seen:
        try:
            _hold(port, SORTS[sort], clients, connections, seconds)
        finally:
            for client in clients:
                client.close()
    end = time.monotonic() + SETTLE_S
    while (after := _state(pid))["files"] > before["files"] and time.monotonic() < end:
        time.sleep(0.2)
    waits = seen["waits"]
    return Outcome(
        sort=sort, connections=len(clients), asked=len(waits) + seen["failed"], failed=seen["failed"],
        median_s=statistics.median(waits or [0.0]), slowest_s=max(waits, default=0.0),
        slowest_at_s=seen["slowest_at_s"], overslept_s=seen["overslept_s"],
        threads=after["threads"] - before["threads"],
        files=after["files"] - before["files"], grown_kb=after["kb"] - before["kb"],
    )


def _hold(port: int, begun_with: bytes, clients: list[socket.socket], connections: int, seconds: float) -> None:
    """Open them, 50 at a time, and drip."""
    end = time.monotonic() + seconds
    dripped = time.monotonic()
    while time.monotonic() < end:
        clients += [_hostile(port, begun_with) for _ in range(min(50, connections - len(clients)))]
        if time.monotonic() > dripped + DRIP_S:
            dripped = time.monotonic()
            _drip(clients[::3])
        time.sleep(0.05)


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


def _state(pid: int) -> dict[str, int]:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return {"threads": int(lines["Threads"]), "kb": int(lines["VmRSS"].split()[0]), "files": files}


def _allow(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
