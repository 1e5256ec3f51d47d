"""A sample of `python -m tests.soak hostile`: more than eight threads could serve, and more than a log can tell of."""

from __future__ import annotations

from pathlib import Path

from tests.backend.test_serve import free_port, healthy, serving, until
from tests.soak.hostile import attack, web_process


def test_others_are_answered_and_nothing_stays(tmp_path: Path) -> None:
    """A line of the log for each request that waits filled the pipe, which nobody reads here, and held all threads."""
    port = free_port()
    with serving(tmp_path, port) as process:
        until(lambda: healthy(port) or process.poll() is not None)
        pid = web_process(tmp_path)
        found = [attack(port, pid, sort, connections=number, seconds=2.0)
                 for sort, number in (("body", 16), ("slow reader", 150), ("chunk size", 16))]
    assert [(each.failed, each.threads, max(each.files, 0)) for each in found] == [(0, 0, 0)] * 3
    assert all(each.asked > 0 and each.grown_kb < 64_000 for each in found)
