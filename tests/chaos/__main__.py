"""Kill things at seeded moments and see whether everything comes right again.

    python -m tests.chaos --rounds 20 --seed 3 --out benchmarks/results/chaos.md

Half of the rounds go to each set-up: `serve` alone, and `serve` with Redis and a job machine. See docs/reliability.md.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.chaos import report
from tests.chaos.checks import Subject
from tests.chaos.plan import Round, plan
from tests.chaos.rounds import Outcome, play, project
from tests.chaos.world import Setup, world


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--setups", nargs="+", type=Setup, choices=list(Setup), default=list(Setup))
    parser.add_argument("--only", type=int, nargs="+", default=[], help="numbers of the rounds to play")
    parser.add_argument("--out", type=Path, help="Markdown file for the report")
    parser.add_argument("--logs", type=Path, help="folder in which logs and data of the servers stay")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leave nothing running behind
    rounds = plan(options.rounds, options.seed, options.setups)
    outcomes: list[Outcome] = []
    print(report.HEAD, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.logs or Path(scratch)
        for setup in options.setups:
            outcomes += _play([each for each in rounds if each.setup is setup and
                               (not options.only or each.number in options.only)], setup, folder)
    text = report.markdown(outcomes, rounds=options.rounds, seed=options.seed)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")
    print("\n" + text.split("\n\n")[-1])
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def _play(rounds: Sequence[Round], setup: Setup, folder: Path) -> list[Outcome]:
    """Rounds of one set-up in one world, as long as it comes right; in a new one after a round that failed."""
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        subject: Subject | None = None
        for this in rounds:
            if subject is None:
                place = folder / f"{setup}-{this.number}"
                place.mkdir(parents=True, exist_ok=True)
                subject = project(stack.enter_context(world(setup, place)))
            outcomes.append(play(subject, this))
            print(report.line(outcomes[-1]), flush=True)
            if outcomes[-1].failures:
                stack.pop_all().close()
                subject = None
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
