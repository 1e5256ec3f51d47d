"""Server processes of the demo and of the end-to-end tests: started, waited for, always stopped.

Invariants: every process leads its own process group, so that its children end with it; what it prints goes to one log
file; it listens on the loopback interface only.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import requests

LOOPBACK = "127.0.0.1"


class DemoError(Exception):
    """Something that the person at the keyboard can put right; the message says how."""


class Service:
    """One server process. Use it as a context manager, or call `stop` yourself."""

    def __init__(
        self, name: str, command: Sequence[str], *, env: Mapping[str, str], log: Path, health: str, cwd: Path
    ) -> None:
        """`health` is an address that answers 200 as soon as the service is up; `log` is appended to."""
        self.name = name
        self.log = log
        self._command = list(command)
        self._env = dict(env)
        self._health = health
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; returns at once."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._env, cwd=self._cwd, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )

    def wait_until_up(self, timeout_s: float, *, waiting: Callable[[float], None] = lambda _: None) -> float:
        """Wait for the health address; returns the seconds it took. `waiting` hears the seconds so far.

        Raises DemoError with the end of the log when the process ends or the time is over.
        """
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < timeout_s:
            if not self.running:
                raise DemoError(f"{self.name} stopped while starting. The end of {self.log}:\n{self.log_tail()}")
            if answers(self._health):
                return elapsed
            waiting(elapsed)
            time.sleep(0.2)
        raise DemoError(f"{self.name} was not up within {timeout_s:.0f} s. The end of {self.log}:\n{self.log_tail()}")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id. Raises DemoError when the service was never started."""
        if self._process is None:
            raise DemoError(f"{self.name} was never started.")
        return self._process.pid

    def log_tail(self, lines: int = 25) -> str:
        """The last lines that the process printed, long ones cut."""
        if not self.log.exists():
            return "(nothing)"
        return "\n".join(line[:300] for line in self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, *, grace_s: float = 15.0) -> None:
        """Ask the whole group to end, and after `grace_s` end it. Safe to call twice."""
        if self._process is None:
            return
        group = self._process.pid  # start_new_session made the process the leader of its group
        if _signal_group(group, signal.SIGTERM):
            deadline = time.monotonic() + grace_s
            while time.monotonic() < deadline and (self._process.poll() is None or _signal_group(group, 0)):
                time.sleep(0.05)
            _signal_group(group, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def answers(url: str) -> bool:
    """Whether `url` answers 200 within a second."""
    try:
        return requests.get(url, timeout=1).status_code == 200
    except requests.RequestException:
        return False


def free_port(preferred: int | None = None) -> int:
    """`preferred` when nobody listens there, else any free port of the loopback interface."""
    for port in (preferred, 0) if preferred else (0,):
        with socket.socket() as probe:
            # Label Studio and gunicorn reuse addresses as well; without this a port of a stopped server seems taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port or 0))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise DemoError("There is no free port on 127.0.0.1.")


def clean_env(**extra: str) -> dict[str, str]:
    """This process's environment without settings of Label Studio, Django or Polyvox, plus `extra`.

    What a person has exported for their own servers must not leak into a demo or a test.
    """
    prefixes = ("LABEL_STUDIO_", "HEARTEX_", "DJANGO_", "POLYVOX_", "POSTGRE_", "BASIC_AUTH_", "REDIS_", "ML_")
    names = ("DATABASE_URL", "MODEL_DIR", "LOG_LEVEL", "PYTHONPATH", "HOST", "DEBUG", "SENTRY_DSN")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes) and name not in names}
    return kept | extra


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False when nobody is left in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group in which only zombies are left
        return False
    return True
