"""Planted faults, slips and contradictions: what the audit finds, beside cleanlab on the same votes.

    python -m benchmarks.slips --peers .venv-peers/bin/python [--seeds 20] [--first 7000] [--jobs N]
                                 [--out benchmarks/results]

Each seed is a project of its own (see `tests.model.quality.planted`): 12 annotators with a spammer, a constant
answerer, an inverter and a drifter; 60 slips; 40 contradictions on nearly equal tasks. The real ladder is trained on it
and leaves its out-of-sample predictions, which cleanlab is given too and by which, as in a live project, faults are
judged. Faults are pooled over the seeds; average precisions are means over the seeds with a 95 % interval (Student's,
seeds as draws). The sources are shown one by one as well, losses too.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import machine

Floats = NDArray[np.float64]
OURS = "all evidence"
MEASURES = ("slips", "contradictions", "both")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="Python of an environment with cleanlab; without it only ours is measured")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=7000)
    parser.add_argument("--jobs", type=int, default=1, help="projects at once, each in a process of its own")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    where, runs = machine(), []
    seeds = range(options.first, options.first + options.seeds)
    with get_context("spawn").Pool(options.jobs) as pool:
        for run in pool.imap(partial(measure, peers=options.peers), seeds):
            runs.append(run)
            print(json.dumps(run), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    peers = "--peers .venv-peers/bin/python " if options.peers else ""  # wherever the environment really is
    text = report(runs, where, f"{peers}--seeds {options.seeds} --first {options.first}")
    (options.out / "slips.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def measure(seed: int, peers: str | None) -> dict[str, Any]:
    """One project: faults named, and for each way of scoring votes the average precision."""
    import torch

    from model.crowd.dawid_skene import DawidSkene
    from model.ensemble.ladder import LadderConfig
    from model.quality.fault_evidence import Witness
    from model.quality.judged import judge
    from model.quality.slips import slips
    from tests.model.quality.planted import plant

    torch.set_num_threads(1)
    planted = plant(seed)
    answers = planted.answers
    begun = time.perf_counter()
    evidence = planted.learn(LadderConfig())
    trained_s = time.perf_counter() - begun
    begun = time.perf_counter()
    judged = judge(answers, DawidSkene(), witness=Witness(gain=planted.gain(evidence)), watched=True)
    own, twins = planted.own(evidence), planted.twins(evidence)
    others = judged.predicted
    scores = {
        OURS: slips(answers, own=own, others=others, near_duplicates=twins).score,
        "own model and others": slips(answers, own=own, others=others).score,
        "own model alone": slips(answers, own=own).score, "others alone": slips(answers, others=others).score,
    }
    judged_s = time.perf_counter() - begun
    if peers:
        scores |= {f"cleanlab, {way}": score for way, score in cleanlab(peers, answers, own).items()}
    found = ["" if fault == "none" else fault.value for fault in judged.faults.fault]
    return {
        "seed": seed, "votes": len(answers), "trained_s": round(trained_s, 1), "judged_s": round(judged_s, 3),
        "faults": [[role, name] for role, name in zip(planted.roles, found, strict=True)],
        "precision": {way: precisions(score, planted) for way, score in scores.items()},
        "base": {name: float(which.mean()) for name, which in kinds(planted).items()},
    }


def kinds(planted: Any) -> dict[str, NDArray[np.bool_]]:
    """What counts as found, by name."""
    return dict(zip(MEASURES, (planted.slip, planted.contradiction, planted.wrong), strict=True))


def precisions(score: Floats, planted: Any) -> dict[str, float]:
    """Average precision for slips, for contradictions (each without the other among the votes), and for both."""
    from tests.model.quality.planted import average_precision

    found = {}
    for name, which in kinds(planted).items():
        kept = which | ~planted.wrong
        found[name] = average_precision(score[kept], which[kept])
    return found


def cleanlab(peers: str, answers: Any, own: Floats) -> dict[str, Floats]:
    """cleanlab's scores, from a process of its own environment. A vote without a prediction gets an even one."""
    p = np.where(np.isfinite(own).all(axis=1, keepdims=True), own, 1.0 / own.shape[1])
    p = p / p.sum(axis=1, keepdims=True)
    votes = np.maximum(np.diff(answers.indptr), 1)
    unit_p = np.stack([np.bincount(answers.unit, p[:, k], minlength=len(votes)) / votes for k in range(p.shape[1])], 1)
    unit_p = np.where(unit_p.sum(axis=1, keepdims=True) > 0, unit_p, 1.0 / p.shape[1])
    stream = io.BytesIO()
    np.savez(stream, unit=answers.unit, annotator=answers.annotator, label=answers.label, own=p, unit_p=unit_p)
    done = subprocess.run(
        [peers, "-m", "benchmarks.slips_peer"], input=stream.getvalue(), capture_output=True, check=True, timeout=300,
        cwd=Path(__file__).parent.parent,
    )
    return {way: np.array(score) for way, score in json.loads(done.stdout).items()}


def report(runs: Sequence[Mapping[str, Any]], where: Mapping[str, Any], command: str) -> str:
    """Markdown with everything that was measured."""
    lines = [
        "# Planted faults and slips", "",
        f"`python -m benchmarks.slips {command}`, {where['made'][:16].replace('T', ' ')} UTC, {where['cores']} cores. "
        f"{len(runs)} projects, {sum(run['votes'] for run in runs)} votes; training "
        f"{np.median([run['trained_s'] for run in runs]):.0f} s and judging "
        f"{np.median([run['judged_s'] for run in runs]):.2f} s a project (medians).", "",
        "## Annotators", "", "| fault | planted | named | precision | recall |", "|---|---|---|---|---|",
        *_faults(runs), "", "## Votes", "",
        "Average precision, mean over the projects with a 95 % interval; behind it how many times the share "
        "of such votes. cleanlab is given the same out-of-sample predictions.", "",
        f"| | {' | '.join(MEASURES)} |", "|---" * (len(MEASURES) + 1) + "|", *_votes(runs), "", *_verdict(runs), "",
    ]
    return "\n".join(lines)


def _faults(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    pairs = [tuple(pair) for run in runs for pair in run["faults"]]
    rows = []
    for name in (*sorted({role for role, _ in pairs if role}), ""):
        planted = [pair for pair in pairs if (pair[0] == name if name else pair[0])]
        named = [pair for pair in pairs if (pair[1] == name if name else pair[1])]
        right = sum(role == found for role, found in planted)
        precision = right / len(named) if named else float("nan")
        rows.append(f"| {name or 'all, named right'} | {len(planted)} | {len(named)} | {precision:.3f} | "
                    f"{right / len(planted):.3f} |")
    return rows


def _votes(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = []
    for way in runs[0]["precision"]:
        cells = []
        for measure_name in MEASURES:
            values = np.array([run["precision"][way][measure_name] for run in runs])
            times = np.mean([run["precision"][way][measure_name] / run["base"][measure_name] for run in runs])
            cells.append(f"{values.mean():.3f} ± {_reach(values):.3f} ({times:.1f}x)")
        rows.append(f"| {way} | {' | '.join(cells)} |")
    return rows


def _verdict(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ours against the best of cleanlab, seed by seed."""
    said = []
    for measure_name in MEASURES:
        peers = [way for way in runs[0]["precision"] if way.startswith("cleanlab")]
        if not peers:
            return ["cleanlab was not measured: no --peers."]
        means = {way: np.mean([run["precision"][way][measure_name] for run in runs]) for way in peers}
        best = max(peers, key=lambda way: means[way])
        gap = np.array([run["precision"][OURS][measure_name] - run["precision"][best][measure_name] for run in runs])
        said.append(f"- {measure_name}: {OURS} minus {best}, {gap.mean():+.3f} ± {_reach(gap):.3f}; above it in "
                    f"{int((gap > 0).sum())} of {len(gap)} projects.")
    return said


def _reach(values: Floats) -> float:
    from scipy.special import stdtrit

    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


if __name__ == "__main__":
    sys.exit(main())
