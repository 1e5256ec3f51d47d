"""The supervisor with real child processes: restart, one for a data folder, no orphans however the parent dies."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.queues.children import ROOT
from backend.queues.supervisor import LOCK_NAME, Supervisor, take_lock
from backend.settings import Settings

# A child that reports its pid and lives until its standard input closes, as the job process does.
CHILD = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); sys.stdin.read()"


def child(log: Path) -> list[str]:
    return [sys.executable, "-c", CHILD, str(log)]


def pids(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A killed child of a killed parent may wait for init as a zombie.
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@contextlib.contextmanager
def supervisor(folder: Path, command: list[str], grace_s: float = 5.0) -> Iterator[Supervisor]:
    supervisor = Supervisor(Settings(data_dir=folder), command=command, first_wait_s=0.1, grace_s=grace_s)
    supervisor.start()
    yield supervisor
    supervisor.stop()


def test_starts_and_stops_a_child(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with supervisor(tmp_path / "data", child(log)) as one:
        until(lambda: len(pids(log)) == 1)
        assert one.pid == pids(log)[0]
    assert not alive(pids(log)[0])
    assert one.pid is None


def test_a_child_that_dies_is_started_again_and_later_each_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", "import sys, time; open(sys.argv[1], 'a').write(f'{time.time_ns()}\\n')", str(log)]
    with supervisor(tmp_path, command):
        until(lambda: len(pids(log)) >= 4)
    times = pids(log)
    gaps_s = [(b - a) / 1e9 for a, b in itertools.pairwise(times)]
    assert gaps_s[0] >= 0.1 and gaps_s[1] >= 0.2 and gaps_s[2] >= 0.4


def test_a_killed_child_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with supervisor(tmp_path, child(log)):
        until(lambda: len(pids(log)) == 1)
        os.kill(pids(log)[0], signal.SIGKILL)
        until(lambda: len(pids(log)) == 2)


def test_what_keeps_a_child_from_starting_may_pass(tmp_path: Path) -> None:
    """No memory, no processes or no files left: as Popen tells of them, here by a program that is not there yet."""
    log, program = tmp_path / "log", tmp_path / "python"
    with supervisor(tmp_path, [str(program), *child(log)[1:]]):
        time.sleep(0.3)  # it was tried in vain
        program.symlink_to(sys.executable)
        until(lambda: len(pids(log)) == 1)
    assert not alive(pids(log)[0])


def test_a_lock_file_that_cannot_be_opened_may_be_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "log"
    (tmp_path / LOCK_NAME).mkdir()
    with supervisor(tmp_path, child(log)):
        time.sleep(0.7)  # several looks
        (tmp_path / LOCK_NAME).rmdir()
        until(lambda: len(pids(log)) == 1)
    assert sum("cannot be opened" in line for line in caplog.messages) == 1


def test_whoever_has_the_lock_releases_the_last_child_by_name(tmp_path: Path) -> None:
    """After a kill of the child, and after the end of everything, when the next supervisor starts."""
    log, released = tmp_path / "log", []
    command = [sys.executable, "-c", CHILD.replace("os.getpid()", "sys.argv[-1]"), str(log)]

    def names() -> list[str]:
        return log.read_text().split() if log.exists() else []

    for round_ in range(2):
        one = Supervisor(Settings(data_dir=tmp_path), command=command, release=released.append, first_wait_s=0.1)
        one.start()
        until(lambda wanted=2 * round_ + 1: len(names()) == wanted)
        assert one.pid is not None
        os.kill(one.pid, signal.SIGKILL)
        until(lambda wanted=2 * round_ + 2: len(names()) == wanted)
        one.stop()
    assert len(set(names())) == 4
    first, second, third, fourth = names()
    assert released == [first, second, second, third, fourth]  # again at the next start: nobody knows how that ended


def test_ensure_started_starts_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    one = Supervisor(Settings(data_dir=tmp_path), command=child(log))
    for _ in range(3):
        one.ensure_started()
    until(lambda: len(pids(log)) == 1)
    one.stop()


def test_a_child_that_will_not_end_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); import time\n" + CHILD.replace(
        "sys.stdin.read()", "time.sleep(60)")
    with supervisor(tmp_path, [sys.executable, "-c", stubborn, str(log)], grace_s=0.3):
        until(lambda: len(pids(log)) == 1)
        begun = time.monotonic()
    assert not alive(pids(log)[0])
    assert time.monotonic() - begun < 20  # it would have lived for a minute


def test_one_child_for_a_data_folder_and_the_next_takes_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with contextlib.ExitStack() as stack:
        first = supervisor(tmp_path, child(log))
        one = first.__enter__()
        until(lambda: one.pid is not None)
        others = [stack.enter_context(supervisor(tmp_path, child(log))) for _ in range(3)]
        time.sleep(0.6)
        assert len(pids(log)) == 1
        first.__exit__(None, None, None)
        until(lambda: len(pids(log)) == 2)
        assert sum(other.pid is not None for other in others) == 1


def test_stop_before_start_and_twice_and_without_the_lock(tmp_path: Path) -> None:
    one = Supervisor(Settings(data_dir=tmp_path), command=child(tmp_path / "log"))
    one.stop()
    lock = take_lock(tmp_path / LOCK_NAME)
    assert lock is not None
    waiting = Supervisor(Settings(data_dir=tmp_path), command=child(tmp_path / "log"))
    waiting.start()
    with pytest.raises(ValueError, match="already"):
        waiting.start()
    waiting.stop()
    waiting.stop()
    os.close(lock)
    assert not pids(tmp_path / "log")


def test_killed_parent_leaves_no_child_and_no_lock(tmp_path: Path) -> None:
    """kill -9 of the web process: the child ends by itself; until then the lock keeps others from starting theirs."""
    log = tmp_path / "log"
    slow_end = CHILD + "; import time; time.sleep(0.8)"
    script = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        from backend.queues.supervisor import Supervisor
        from backend.settings import Settings
        command = [sys.executable, "-c", {slow_end!r}, {str(log)!r}]
        Supervisor(Settings(data_dir=Path({str(tmp_path)!r})), command=command).start()
        time.sleep(60)
    """)
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    until(lambda: len(pids(log)) == 1)
    parent.kill()
    parent.wait()
    pid = pids(log)[0]
    assert alive(pid)
    assert take_lock(tmp_path / LOCK_NAME) is None
    until(lambda: not alive(pid))
    lock = take_lock(tmp_path / LOCK_NAME)
    assert lock is not None
    os.close(lock)


def test_the_child_finds_the_same_folders_from_any_working_directory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    show = ("import os, sys, backend; open(sys.argv[1], 'w').write(os.environ['POLYVOX_DATA_DIR'] + ' ' "
            "+ os.environ['DATABASE_URL']); sys.stdin.read()")
    settings = Settings(data_dir=tmp_path / "d")
    one = Supervisor(settings, command=[sys.executable, "-c", f"import os; os.chdir('/'); {show}", str(log)])
    one.start()
    until(lambda: log.exists() and bool(log.read_text()))
    one.stop()
    assert log.read_text() == f"{tmp_path / 'd'} {settings.database_url}"
