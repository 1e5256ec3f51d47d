"""Crowd statistics beside crowd-kit, peerannot and cleanlab: time, memory and accuracy on the same votes.

    python -m benchmarks.crowd --peers .venv-peers/bin/python [--only LINE ...] [--limit 300] [--out benchmarks/results]

Every measurement is a process of its own (`crowd_child`), ours and theirs take turns, one thread each. A peer that
does not finish within the limit is reported so, and its time counts as the limit: a lower bound. The crowd is
simulated: 1,000 annotators (a fifth spammers, a fifth right in 95 %, the others in 50 to 80 %), 10 classes, 5 votes a
task.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.crowd_child import Columns
from benchmarks.crowd_lines import GROUPS, Run
from benchmarks.crowd_report import write
from benchmarks.measure import machine
from model.crowd.assign import Assignment
from model.crowd.simulate import Crowd, simulate

ANNOTATORS, CLASSES, VOTES_A_TASK = 1000, 10, 5
MODEL_IS_RIGHT = 0.7  # the simulated classifier of CROWDLAB
ROOT = Path(__file__).resolve().parent.parent


def simulated(n_tasks: int, *, probabilities: bool, seed: int = 0) -> Columns:
    """The crowd of the module's docstring."""
    rng = np.random.default_rng(seed)
    fifth = ANNOTATORS // 5
    right = np.concatenate([
        np.full(fifth, 1.0 / CLASSES), np.full(fifth, 0.95), rng.uniform(0.5, 0.8, ANNOTATORS - 2 * fifth),
    ])
    wrong = ((1.0 - right) / (CLASSES - 1))[:, None, None]
    matrices = wrong + (right[:, None, None] - wrong) * np.eye(CLASSES)  # (A, true, given)
    crowd = simulate("independent-confusion", Crowd(
        n_annotators=ANNOTATORS, n_tasks=n_tasks, n_classes=CLASSES, matrices=matrices,
        assignment=Assignment(feedback=VOTES_A_TASK),
    ), rng)
    votes, belief = crowd.votes, None
    if probabilities:
        named = np.where(rng.random(n_tasks) < MODEL_IS_RIGHT, crowd.truth, rng.integers(CLASSES, size=n_tasks))
        belief = np.full((n_tasks, CLASSES), (1.0 - MODEL_IS_RIGHT) / (CLASSES - 1))
        belief[np.arange(n_tasks), named] = MODEL_IS_RIGHT
    # The tables of ids have an order of their own; the names are the numbers that `truth` is indexed by.
    unit, annotator = np.array(votes.units, np.int32)[votes.unit], np.array(votes.annotators, np.int32)[votes.annotator]
    label = np.array([int(str(value.data)) for value in votes.values], np.int32)[votes.value]
    order = np.lexsort((annotator, unit))
    return Columns(
        unit=unit[order], annotator=annotator[order], label=label[order],
        truth=crowd.truth.astype(np.int32), n_annotators=ANNOTATORS, n_classes=CLASSES, probabilities=belief,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where measurements run: which interpreters, and how long they may take."""

    folder: Path
    peers: Path | None  # None: ours alone
    limit_s: float

    def votes(self, n_tasks: int) -> Path:
        """The file with a crowd of this size; made once."""
        path = self.folder / f"{n_tasks}.npz"
        if not path.exists():
            simulated(n_tasks, probabilities=n_tasks <= 100_000).save(path)
        return path

    def run(self, measure: str, n_tasks: int, *, limit_s: float | None = None, **settings: object) -> Run | None:
        """One measurement; None for a peer when there is no environment of peers."""
        limit_s = min(limit_s or self.limit_s, self.limit_s)
        ours = measure.startswith("ours.")
        if not ours and self.peers is None:
            return None
        interpreter = sys.executable if ours else str(self.peers)
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        command = [interpreter, "-m", "benchmarks.crowd_child", measure, str(self.votes(n_tasks)), json.dumps(settings)]
        load = os.getloadavg()[0]
        try:
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, **threads}, capture_output=True, text=True,
                                  timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return Run(measure=measure, n_tasks=n_tasks, settings=settings, load=load, seconds=limit_s,
                       failure=f"did not finish in {limit_s:.0f} s")
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
            if ours:
                raise RuntimeError(f"{measure} on {n_tasks} tasks: {last}")
            return Run(measure=measure, n_tasks=n_tasks, settings=settings, load=load, seconds=float("nan"),
                       failure=last.split(":")[0])
        found: Mapping[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return Run(measure=measure, n_tasks=n_tasks, settings=settings, load=load, **found)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="Python interpreter of an environment with the peers")
    parser.add_argument("--only", nargs="*", choices=list(GROUPS), metavar="LINE", help=", ".join(GROUPS))
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a measurement may take")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if options.peers is not None and not options.peers.exists():
        parser.error(f"there is no interpreter {options.peers}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder=Path(folder), peers=options.peers and options.peers.absolute(), limit_s=options.limit)
        for name in options.only or GROUPS:
            where, runs = machine(), []
            for run in _said(GROUPS[name].runs(bench.run)):
                runs.append(run)
            write(options.out, name, runs, where)
    return 0


def _said(runs: Iterator[Run]) -> Iterator[Run]:
    for run in runs:
        peak = "" if run.peak_mb is None else f" {run.peak_mb:.0f} MB"
        print(f"{run.measure} {run.n_tasks:,} tasks: {run.failure or f'{run.seconds:.3f} s{peak}'}", flush=True)
        yield run


if __name__ == "__main__":
    sys.exit(main())
