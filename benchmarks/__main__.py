"""Run benchmarks and write their results as Markdown and JSON.

    python -m benchmarks [NAME ...] [--rounds 1000] [--out benchmarks/results]

Names: web, memory, predict, encode, site, delivery (this one starts a real Label Studio). Results of benchmarks that
are not named are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Result, machine, markdown

ROUNDS = 1002  # of each request, over three repeats
NAMES = ("web", "memory", "predict", "encode", "site", "delivery")


def benchmarks() -> dict[str, Callable[..., Result]]:
    """Imported late, so that the thread limits below hold."""
    from benchmarks import delivery, encode, predict, site, web

    return {"web": web.latency, "memory": web.memory, "predict": predict.run, "encode": encode.run,
            "site": site.run, "delivery": delivery.run}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests, texts or (twice as many) tasks")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--stand", type=Path, help="keep what is trained in this folder for the next run")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leave nothing running behind
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    found = _kept(options.out)
    with tempfile.TemporaryDirectory() as scratch:
        stand = options.stand or Path(scratch) / "stand"
        stand.mkdir(parents=True, exist_ok=True)
        for name in options.names or NAMES:
            where = machine()
            result = benchmarks()[name](stand, rounds=options.rounds)
            found[name] = {**result.to_json(), "machine": where}
            print(markdown([found[name]]).split("\n\n", 2)[2], flush=True)
            _write(options.out, found)
    return 0


def _kept(out: Path) -> dict[str, Any]:
    path = out / "bench.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(out: Path, found: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (out / "bench.md").write_text(markdown([found[name] for name in NAMES if name in found]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
