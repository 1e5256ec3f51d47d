"""Long runs against a real server. Not in CI; `make test` runs a sample.

    python -m tests.soak hostile --connections 8 200 2000 --seconds 60 --out benchmarks/results/soak.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.backend.test_serve import free_port, healthy, processes_of, serving, until
from tests.soak.hostile import SORTS, Outcome, attack

HEAD = ("| sort | connections | /health asked | median | slowest | failed | threads | files | memory | |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["hostile"])
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 200, 2000])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each sort and number")
    parser.add_argument("--out", type=Path, help="write a dated report there")
    options = parser.parse_args()
    found = hostile(options.connections, options.seconds)
    if options.out:
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        by = f"Made {made} by `python -m tests.soak hostile` ({options.seconds:g} s each)."
        title = f"# Hostile connections\n\n{by}\n\n"
        options.out.write_text(title + HEAD + "".join(map(row, found)), encoding="utf-8")
    return int(not all(each.held for each in found))


def hostile(connections: list[int], seconds: float) -> list[Outcome]:
    """Every sort in every number against one server; each outcome is printed as it comes."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with serving(Path(folder), port) as process:
            until(lambda: healthy(port) or process.poll() is not None)
            pid = max(processes_of(Path(folder)), key=_listens)
            print(HEAD, end="")
            for number in connections:
                for sort in SORTS:
                    found.append(attack(port, pid, sort, connections=number, seconds=seconds))
                    print(row(found[-1]), end="", flush=True)
            process.terminate()
            process.wait(60)
    return found


def row(of: Outcome) -> str:
    """A line of the table."""
    return (f"| {of.sort} | {of.connections} | {of.asked} | {of.median_s * 1000:.0f} ms | {of.slowest_s * 1000:.0f} ms "
            f"| {of.failed} | {of.threads:+} | {of.files:+} | {of.grown_kb / 1024:+.0f} MB "
            f"| {'held' if of.held else '**missed**'} |\n")


def _listens(pid: int) -> int:
    """The web process is the one with the most threads: its pool."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


if __name__ == "__main__":
    sys.exit(main())
