"""A lane's work horse as its parent sees it: a process that stays, loads models once, and runs one job after another.

RQ starts a process for each job. Ours would import torch and load the default encoder every time: 10 s of CPU time, for
jobs that may take one (1.4 s where no torch is needed; a text costs 0.05 s once all is loaded). So the horse is kept.
It is a fresh interpreter, never a fork: the parent loads no torch, and CUDA may be used in the child. One process per
lane, so that a training that runs out of memory takes no reading with it; only the heavy lane ever loads torch (530 MB;
the others 80 MB each).

Talk: the parent writes the id of a job row and a line feed to the child's standard input; the child claims the row in
the database, runs it, and writes one line to the pipe `--answers`. A closed input means: give back what you do and end.
What matters is in the database; an answer only says that the child can take the next id.

Invariants: one question at a time; a child that is gone has no claims left when the next one starts.
"""

from __future__ import annotations

import logging
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from backend.queues.children import SETTLED_S, close_input, new_name

logger = logging.getLogger(__name__)

LOOK_S = 0.25  # how soon a wish to stop, a limit or a dead child is noticed
DIED = "The job process died."


class LaneProcess:
    """One lane's child. Used by one thread; `stop` is an event that any thread may set."""

    def __init__(
        self,
        lane: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        release: Callable[[str, str], None],
        stop: threading.Event,
        limit_s: float,
        grace_s: float,
        first_wait_s: float = 1.0,
        longest_wait_s: float = 60.0,
    ) -> None:
        """`release(name, reason)` takes back the jobs of a child that is gone; it must not raise. `limit_s`: a job that
        takes longer is stopped by force. `grace_s`: time to end in order when `stop` is set."""
        self.lane = lane
        self._command = list(command)
        self._env = env
        self._release = release
        self._stop = stop
        self._limit_s = limit_s
        self._grace_s = grace_s
        self._waits_s = (first_wait_s, longest_wait_s)
        self._wait_s = first_wait_s
        self._not_before = 0.0
        self._started = 0.0
        self._name = ""
        self._child: subprocess.Popen[bytes] | None = None
        self._answers = -1

    @property
    def pid(self) -> int | None:
        """Process id of the child; None when there is none."""
        return self._child.pid if self._child is not None else None

    def keep_alive(self) -> bool:
        """Bury a child that died, start one where it is time; whether there is one. Never waits."""
        if self._child is not None and self._child.poll() is not None:
            self._bury(DIED)
        if self._child is None and time.monotonic() >= self._not_before and not self._stop.is_set():
            self._spawn()
        return self._child is not None

    def run(self, job_id: str, *, waiting: Callable[[], None] = lambda: None) -> bool:
        """Have the child run a job, if the job is still to be had; returns when it can take the next one.

        `waiting` is called now and then. False when the child died, was stopped, or could not use the database.
        """
        while not self.keep_alive():
            if self._stop.wait(LOOK_S):
                return False
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(job_id.encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            self._child.kill()
            self._bury(DIED)
            return False
        return self._await_answer(waiting)

    def end(self) -> None:
        """End the child, in order where it does so within the grace time, and take back what it had."""
        if self._child is None:
            return
        close_input(self._child)
        try:
            self._child.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            logger.warning("the process of lane %s did not end in %.0f s and is killed", self.lane, self._grace_s)
            self._child.kill()
        self._bury("The job process was stopped.")

    def _await_answer(self, waiting: Callable[[], None]) -> bool:
        begun = time.monotonic()
        while True:
            readable, _, _ = select.select([self._answers], [], [], LOOK_S)
            if readable:
                answer = os.read(self._answers, 4096)
                if not answer:
                    self._bury(DIED)
                return answer == b"ok\n"
            if self._stop.is_set():
                self.end()
                return False
            if time.monotonic() - begun > self._limit_s:
                logger.error("a job of lane %s takes longer than %.0f s; it is killed", self.lane, self._limit_s)
                assert self._child is not None
                self._child.kill()
                self._bury(f"The job took longer than {self._limit_s:.0f} s and was stopped.")
                return False
            waiting()

    def _spawn(self) -> None:
        self._name = new_name()
        self._answers, theirs = os.pipe()
        try:
            # Its own session: Ctrl-C in a terminal reaches the parent only, which then ends the child in order.
            self._child = subprocess.Popen(
                [*self._command, "--name", self._name, "--answers", str(theirs)], stdin=subprocess.PIPE,
                pass_fds=(theirs,), env=self._env, start_new_session=True,
            )
        except BaseException:
            os.close(self._answers)
            raise
        finally:
            os.close(theirs)
        self._started = time.monotonic()
        logger.info("process %d of lane %s started", self._child.pid, self.lane)

    def _bury(self, reason: str) -> None:
        """The child is gone, or was just killed: take back its jobs; the next one waits if this one was brief."""
        assert self._child is not None
        close_input(self._child)
        status = self._child.wait()
        os.close(self._answers)
        self._child = None
        if status != 0:
            logger.error("the process of lane %s ended with status %d", self.lane, status)
        self._release(self._name, reason)
        settled = time.monotonic() - self._started >= SETTLED_S
        self._wait_s = self._waits_s[0] if settled else self._wait_s
        self._not_before = time.monotonic() + self._wait_s
        self._wait_s = min(2 * self._wait_s, self._waits_s[1])
