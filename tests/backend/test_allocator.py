"""Freed memory is given back, in web processes (`serve` calls the same) and in job processes."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from pathlib import Path
from backend.allocator import return_large_blocks

def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6

def measure(*_):
    blocks = [bytearray(4_000_000) for _ in range(2)]
    del blocks  # glibc raises its threshold to the size of what was freed, unless it is told not to
    keep, big = [], []
    for _ in range(50):
        big.append(bytearray(3_000_000))
        keep.append(bytearray(100_000))  # holds the top of the heap
    before = resident_mb()
    del big
    print(before - resident_mb())

if sys.argv[1] == "job process":
    from types import SimpleNamespace
    from backend.commands import worker
    from backend.settings import Settings
    worker._alone = measure
    worker.COMMAND.run(SimpleNamespace(lane="", embedded=True), Settings(data_dir=Path("unused")), None)
else:
    if sys.argv[1] == "yes":
        assert return_large_blocks()
    measure()
"""


def freed_mb(how: str) -> float:
    ran = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def test_large_blocks_go_back_to_the_system() -> None:
    assert freed_mb("yes") > 140
    assert freed_mb("no") < 100, "the test sees no difference"


def test_a_job_process_does_the_same() -> None:
    assert freed_mb("job process") > 140
