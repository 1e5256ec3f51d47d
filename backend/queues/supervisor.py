"""Keeps one embedded job process alive for a data folder.

Every web process has a supervisor; a file lock in the data folder decides whose child runs. The child inherits the
lock, so that it stays taken until the child is really gone, even when its web process was killed meanwhile; then the
next supervisor takes over. The child ends by itself when its standard input closes, which happens however the parent
dies.

Each child has a name, under which it claims jobs. The lock file holds the name of the last one: whoever has the lock
knows that this child is gone, and takes its jobs back at once, where their leases would hold them up for a minute.

Invariant: never two embedded job processes for one data folder.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from backend.queues.children import SETTLED_S, child_environment, close_input, new_name
from backend.settings import Settings

logger = logging.getLogger(__name__)

LOCK_NAME = "jobs.lock"
LOOK_S = 0.2  # how soon a dead child or a free lock is noticed
LONGEST_NAME = 255


class Supervisor:
    """Starts the embedded job process, starts it again when it dies, and stops it with the web process."""

    def __init__(
        self,
        settings: Settings,
        *,
        command: Sequence[str] | None = None,
        release: Callable[[str], None] = lambda name: None,
        first_wait_s: float = 1.0,
        longest_wait_s: float = 60.0,
        grace_s: float = 15.0,
    ) -> None:
        """`release` takes back the jobs of a child that is gone, given its name; it must not raise."""
        self._settings = settings
        self._command = list(command or (sys.executable, "-m", "backend", "worker", "--embedded"))
        self._release = release
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._grace_s = grace_s
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._lock_fails = False  # said once, not at every look

    @property
    def pid(self) -> int | None:
        """Process id of the running child of this supervisor; None while another one's runs, or none does."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    def start(self) -> None:
        """Begin in the background; returns at once."""
        if self._thread is not None:
            raise ValueError("the supervisor was started already")
        self._settings.data_dir.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, name="job-supervisor", daemon=True)
        self._thread.start()

    def ensure_started(self) -> None:
        """Begin if not begun yet, and end with the interpreter; for the first request that a web process answers."""
        with self._starting:
            if self._thread is None:
                self.start()
                atexit.register(self.stop)

    def stop(self) -> None:
        """End the child (gently, then by force) and wait for it; does nothing when already stopped."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            lock = self._try_lock()
            if lock is None:
                self._stopping.wait(LOOK_S)
                continue
            try:
                self._keep_alive(lock)
            finally:
                os.close(lock)

    def _try_lock(self) -> int | None:
        """The lock, or None while it cannot be had; says so when that is not because somebody else has it."""
        try:
            lock = take_lock(self._settings.data_dir / LOCK_NAME)
        except OSError as error:
            if not self._lock_fails:
                logger.error("%s in the data folder cannot be opened (%s); no job process runs until it can",
                             LOCK_NAME, error.strerror)
            self._lock_fails = True
            return None
        self._lock_fails = False
        return lock

    def _keep_alive(self, lock: int) -> None:
        """Run children until told to stop; a child that dies soon is started again later and later."""
        wait_s = self._first_wait_s
        while not self._stopping.is_set():
            begun = time.monotonic()
            try:
                self._release_last(lock)
                child = self._child = self._spawn(lock)
            except OSError as error:  # no memory, processes, files or disk space left: that may pass
                logger.error("the embedded job process cannot be started (%s); next try in %.0f s",
                             error.strerror, wait_s)
            else:
                logger.info("embedded job process %d started", child.pid)
                if self._watch(child):
                    self._release_last(lock)
                    return
                if time.monotonic() - begun >= SETTLED_S:
                    wait_s = self._first_wait_s
                logger.error("embedded job process %d ended with status %s; next try in %.0f s",
                             child.pid, child.returncode, wait_s)
            self._stopping.wait(wait_s)
            wait_s = min(2 * wait_s, self._longest_wait_s)

    def _watch(self, child: subprocess.Popen[bytes]) -> bool:
        """Wait until the child is gone; whether that is because it was to stop."""
        while child.poll() is None and not self._stopping.wait(LOOK_S):
            pass
        if child.poll() is None:
            self._end(child)
            return True
        close_input(child)
        return False

    def _release_last(self, lock: int) -> None:
        last = os.pread(lock, LONGEST_NAME, 0).decode(errors="replace").strip()
        if last:
            self._release(last)

    def _spawn(self, lock: int) -> subprocess.Popen[bytes]:
        name = new_name()
        os.ftruncate(lock, 0)
        os.pwrite(lock, name.encode(), 0)
        # Its own session: Ctrl-C in a terminal reaches the web process only, which then ends the child in order.
        return subprocess.Popen(
            [*self._command, "--name", name], stdin=subprocess.PIPE, pass_fds=(lock,),
            env=child_environment(self._settings), start_new_session=True,
        )

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        close_input(child)
        child.terminate()
        try:
            child.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            logger.warning("embedded job process %d did not end in %.0f s and is killed", child.pid, self._grace_s)
            child.kill()
            child.wait()


def jobs_are_run(folder: Path) -> bool:
    """Whether the embedded job process of a data folder is there, whichever web process started it."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def take_lock(path: Path) -> int | None:
    """File descriptor that holds the exclusive lock on `path`, or None while somebody else holds it.

    Raises OSError when the file cannot be opened or locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor
