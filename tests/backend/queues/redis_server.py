"""A real redis-server on a free port, without persistence, that tests may kill, pause and start again."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError


class RedisServer:
    """Not started at first."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is missing; scripts/system-packages.sh installs it"
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                   "--dir", str(self._folder), "--loglevel", "warning"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while not self.answers():
            assert time.monotonic() < end and self._process.poll() is None, "redis-server did not start"
            time.sleep(0.02)

    def answers(self) -> bool:
        with contextlib.suppress(RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def client(self) -> Redis:
        return Redis.from_url(self.url, socket_timeout=2)

    def kill(self) -> None:
        """kill -9: everything in it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def redis_server(folder: Path, *, started: bool = True) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    if started:
        server.start()
    try:
        yield server
    finally:
        server.kill()
