"""`python -m backend serve` as it is started by people: a real process, without Label Studio."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.queues.children import ROOT
from backend.records import JobKind, JobState
from backend.store import open_store
from tests.backend.small_services import CONFIG

KEY = "12.1764288000"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


@contextlib.contextmanager
def serving(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "POLYVOX_DATA_DIR": str(folder), "OMP_NUM_THREADS": "1", "LABEL_STUDIO_URL": ""}
    with subprocess.Popen(
        [sys.executable, "-m", "backend", "serve", "--port", str(port)], cwd=ROOT, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(port: int, path: str, body: dict[str, Any] | None = None, *, timeout_s: float = 5) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        return json.load(answer)


def healthy(port: int) -> bool:
    try:
        return bool(ask(port, "/health")["status"] == "UP")
    except OSError:
        return False


def processes_of(folder: Path) -> list[int]:
    """Processes that have the data folder in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"POLYVOX_DATA_DIR={folder}\0".encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_serves_works_and_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    port = free_port()
    with serving(tmp_path, port) as process:
        until(lambda: healthy(port) or process.poll() is not None)
        assert ask(port, "/setup", {"project": KEY, "schema": CONFIG})["model_version"] == "consensus@r0"
        assert any("LABEL_STUDIO_URL" in problem for problem in ask(port, "/")["problems"])
        # The embedded job process works; without votes the sentence says so.
        store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
        store.projects.ensure(KEY, label_config=CONFIG)  # as if read from Label Studio
        job = store.jobs.enqueue(JobKind.TRAIN, KEY)
        until(lambda: (found := store.jobs.get(job.id)) is not None and found.state is JobState.FAILED)
        ended = store.jobs.get(job.id)
        assert ended is not None and "Training needs at least 20 votes" in ended.error
        store.close()
        assert {each.stat().st_mode & 0o077 for each in tmp_path.rglob("*")} == {0}  # for the owner alone
        assert len(processes_of(tmp_path)) == 3  # gunicorn's arbiter, the web process, the job process
        process.send_signal(how)
        said, _ = process.communicate(timeout=60)  # the pipe closes with the last process that holds it
        until(lambda: processes_of(tmp_path) == [])
    assert f"http://127.0.0.1:{port}" in said and "Traceback" not in said


def test_ctrl_c_does_not_wait_for_a_client_that_never_finishes(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, port) as process:
        until(lambda: healthy(port) or process.poll() is not None)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: 100\r\n\r\n{")
            time.sleep(1.0)  # so that a thread reads it
            for _ in range(2):  # as a terminal does it, to all of a session; and again by somebody impatient
                for pid in processes_of(tmp_path):
                    with contextlib.suppress(ProcessLookupError):
                        if os.getsid(pid) == os.getsid(process.pid):
                            os.kill(pid, signal.SIGINT)
                time.sleep(0.6)
            said, _ = process.communicate(timeout=60)
        until(lambda: processes_of(tmp_path) == [])
    assert process.returncode == 0 and "SIGKILL" not in said and "Traceback" not in said


HOSTILE = {
    "silent": b"",
    "request line": b"POST /predict HT",
    "headers": b"POST /predict HTTP/1.1\r\nHost: x\r\nX-Long: ",
    "body": b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
    "chunk": b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n{",
}


def test_clients_that_never_finish_their_request_stop_nobody(tmp_path: Path) -> None:
    """More of each sort than there are threads, some of which drip on."""
    port = free_port()
    with serving(tmp_path, port) as process, contextlib.ExitStack() as stack:
        until(lambda: healthy(port) or process.poll() is not None)
        clients = []
        for begun in HOSTILE.values():
            for _ in range(12):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                client.sendall(begun)
                clients.append(client)
        slowest, end = 0.0, time.monotonic() + 14.0
        while time.monotonic() < end:
            asked = time.monotonic()
            assert ask(port, "/health")["status"] == "UP"
            slowest = max(slowest, time.monotonic() - asked)
            for client in clients[2::3]:
                with contextlib.suppress(OSError):
                    client.sendall(b"a")
            time.sleep(0.2)
        assert slowest < 2.0
        closed = 0
        for client in clients[:36]:  # those that never came to the end of their headers, dripping or not
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                closed += _is_closed(client)
        assert closed == 36


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(10) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent, status", [
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
    (b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\n\r\n{", b"413"),
    (b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n", b"400"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", b"400"),
], ids=["headers", "body", "chunk size", "no HTTP"])
def test_requests_that_are_none_are_answered_in_a_sentence(served: int, sent: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served), timeout=10) as client:
        client.sendall(sent)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(65536):
                answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == status and list(json.loads(body)) == ["error"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    with serving(tmp_path_factory.mktemp("served"), port) as process:
        until(lambda: healthy(port) or process.poll() is not None)
        yield port
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with serving(tmp_path, taken.getsockname()[1]) as process:
            said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.startswith("polyvox: Polyvox cannot listen on 127.0.0.1:") and "Traceback" not in said
