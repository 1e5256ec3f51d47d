"""Long runs of bad input and load against real processes. Not in CI; `make test` runs a sample of each part.

    python -m tests.soak all --out benchmarks/results/soak.md
    python -m tests.soak requests --requests 1000000 --into FOLDER      one part, as JSON
    python -m tests.soak report FOLDER --out benchmarks/results/soak.md      joins parts
    python -m tests.soak replay NUMBER ...      sends mutated requests again and shows the answers
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.soak import faults, hostile, load, mutated, report
from tests.soak.report import Part

Options = argparse.Namespace
PARTS: Mapping[str, Callable[[Options], Part]] = {
    "requests": lambda given: mutated.run(
        count=given.requests, clients=given.clients, seed=given.seed, keep=given.keep, within_s=60 * given.within),
    "load": lambda given: load.run(minutes=given.minutes, count=given.annotators),
    "hostile": lambda given: hostile.run(connections=given.connections, seconds=given.seconds),
    "faults": lambda given: faults.run_findings(),
    "chaos": lambda given: faults.run_chaos(rounds=given.rounds),
    "images": lambda given: faults.run_images(),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all", *PARTS, "report", "replay"])
    parser.add_argument("words", nargs="*", help="report: the folder of parts; replay: numbers of cases")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=2, help="processes that send requests")
    parser.add_argument("--within", type=float, default=float("inf"), help="minutes after which no more are sent")
    parser.add_argument("--seed", type=int, default=mutated.SEED)
    parser.add_argument("--keep", type=Path, help="folder in which the log and bad answers of `requests` stay")
    parser.add_argument("--minutes", type=float, default=30.0, help="of load")
    parser.add_argument("--annotators", type=int, default=60)
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 200, 2000])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each sort and number of hostile connections")
    parser.add_argument("--rounds", type=int, default=20, help="of chaos")
    parser.add_argument("--into", type=Path, help="folder for the parts as JSON")
    parser.add_argument("--out", type=Path, help="write the joint report there")
    options = parser.parse_args(arguments)
    if options.what == "replay":
        mutated.replay([int(each) for each in options.words], options.seed)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leave nothing running behind
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.words[0]) if options.what == "report" else options.into or Path(scratch)
        chosen = {"all": list(PARTS), "report": []}.get(options.what, [options.what])
        for name in chosen:
            part = PARTS[name](options)
            part.write(folder)
            print(report.markdown([part]), flush=True)
        parts = report.read(folder)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(report.markdown(parts), encoding="utf-8")
    return int(not parts or not all(part.held for part in parts))


if __name__ == "__main__":
    sys.exit(main())
