"""The parent's side of a lane's process, with small children that do what a test needs."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.queues.lane_process import LaneProcess

# Answers each line after running it as code; `answer` is the descriptor of the answers.
CHILD = "import os, sys, time\nanswer = int(sys.argv[-1])\nfor line in sys.stdin:\n    exec(line)\n"
OK = "os.write(answer, b'ok\\n')"


class Lane:
    """A lane process with what was released."""

    def __init__(self, code: str = CHILD, *, limit_s: float = 60.0, grace_s: float = 5.0) -> None:
        self.released: list[tuple[str, str]] = []
        self.stop = threading.Event()
        self.process = LaneProcess(
            "heavy", [sys.executable, "-c", code], env=os.environ, stop=self.stop, limit_s=limit_s, grace_s=grace_s,
            release=lambda name, reason: self.released.append((name, reason)), first_wait_s=0.2)


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane()
    yield lane
    lane.process.end()


def test_one_child_answers_again_and_again(lane: Lane) -> None:
    assert lane.process.pid is None and lane.process.keep_alive()
    pid = lane.process.pid
    assert all(lane.process.run(OK) for _ in range(3))
    assert lane.process.pid == pid and lane.released == []
    assert not lane.process.run("os.write(answer, b'no\\n')")
    assert lane.process.pid == pid
    lane.process.end()
    assert lane.process.pid is None and len(lane.released) == 1


def test_a_child_that_dies_in_a_job_is_released_by_name_and_replaced(lane: Lane, tmp_path: Path) -> None:
    log = tmp_path / "name"
    assert not lane.process.run(f"open({str(log)!r}, 'w').write(sys.argv[sys.argv.index('--name') + 1]); os._exit(9)")
    assert lane.released == [(log.read_text(), "The job process died.")]
    begun = time.monotonic()
    assert lane.process.run(OK)
    assert time.monotonic() - begun >= 0.2
    assert not lane.process.run("os._exit(9)")
    assert lane.released[1][0] != log.read_text()


def test_a_child_that_died_while_idle_is_replaced(lane: Lane) -> None:
    assert lane.process.run(OK)
    pid = lane.process.pid
    assert pid is not None
    os.kill(pid, 9)
    until = time.monotonic() + 5
    while lane.process.pid == pid and time.monotonic() < until:
        lane.process.keep_alive()
    assert lane.process.run(OK) and lane.process.pid != pid and len(lane.released) == 1


def test_a_job_over_the_limit_is_stopped_by_force() -> None:
    lane = Lane(limit_s=0.5)
    beats: list[int] = []
    assert not lane.process.run("time.sleep(60)", waiting=lambda: beats.append(1))
    assert lane.process.pid is None and beats
    assert lane.released[0][1] == "The job took longer than 0 s and was stopped."


def test_a_stop_ends_the_child_in_order_or_by_force() -> None:
    stubborn = CHILD + "time.sleep(60)"
    for code, line, quick in ((CHILD, "time.sleep(1); " + OK, True), (stubborn, "time.sleep(60)", False)):
        lane = Lane(code, grace_s=10 if quick else 0.3)
        lane.process.keep_alive()
        threading.Timer(0.4, lane.stop.set).start()
        lane.process.run(line)
        assert lane.stop.is_set()
        lane.process.end()
        assert lane.process.pid is None and len(lane.released) == 1
        assert not lane.process.keep_alive()  # none is started any more
        assert not lane.process.run(OK)
