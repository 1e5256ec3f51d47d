"""Freed memory is given back."""

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

if sys.argv[1] == "yes":
    assert return_large_blocks()
blocks = [bytearray(4_000_000) for _ in range(2)]
del blocks  # glibc raises its threshold to the size of what was freed, unless it is told not to
keep, big = [], []
for _ in range(50):
    big.append(bytearray(3_000_000))
    keep.append(bytearray(100_000))  # holds the top of the heap
before = resident_mb()
del big
print(before - resident_mb())
"""


def freed_mb(how: str) -> float:
    ran = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def test_large_blocks_go_back_to_the_system() -> None:
    assert freed_mb("yes") > 140
    assert freed_mb("no") < 100, "the test sees no difference"
