"""Services: started, waited for, always stopped, children included."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from demo.processes import DemoError, Service, clean_env, free_port

SERVER = """
import http.server, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def service(folder: Path, code: str, port: int) -> Service:
    return Service(
        "The test server", [sys.executable, "-u", "-c", code, str(port)], env=dict(os.environ), cwd=folder,
        log=folder / "log.txt", health=f"http://127.0.0.1:{port}/",
    )


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_a_service_is_waited_for_and_stopped_with_its_children(tmp_path: Path) -> None:
    port = free_port()
    with service(tmp_path, SERVER, port) as running:
        assert running.wait_until_up(30) < 30
        child = int(running.log.read_text().split()[1])
        assert running.running and is_alive(child)
        assert free_port(port) != port
    assert not running.running
    deadline = time.monotonic() + 5
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(child)
    assert free_port(port) == port
    running.stop()  # a second time does no harm


def test_one_that_ignores_the_request_is_ended(tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(600)"
    running = service(tmp_path, stubborn, free_port())
    running.start()
    while "ready" not in running.log_tail():
        time.sleep(0.02)
    running.stop(grace_s=0.3)
    assert not running.running


def test_one_that_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with (
        service(tmp_path, "raise SystemExit('no database')", free_port()) as running,
        pytest.raises(DemoError, match=r"stopped while starting(.|\n)*no database"),
    ):
        running.wait_until_up(30)


def test_one_that_does_not_come_up_in_time_is_an_error(tmp_path: Path) -> None:
    with (
        service(tmp_path, "import time; time.sleep(600)", free_port()) as running,
        pytest.raises(DemoError, match="not up within"),
    ):
        running.wait_until_up(0.5)


def test_a_taken_port_falls_back_to_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) not in (0, port)


def test_settings_of_a_persons_own_servers_do_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"LABEL_STUDIO_HOST", "DJANGO_DB", "POLYVOX_DEVICE", "DATABASE_URL", "REDIS_URL", "PYTHONPATH"}
    for name in theirs:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    env = clean_env(POLYVOX_DATA_DIR="d")
    assert env["LANG"] == "C.UTF-8" and env["POLYVOX_DATA_DIR"] == "d"
    assert not theirs & set(env)
