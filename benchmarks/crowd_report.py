"""The report of `benchmarks.crowd`: crowd.json keeps every run, crowd.md is made from it; groups not run are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.crowd_lines import GROUPS, Run, curve, curves_in
from benchmarks.measure import Line


def write(out: Path, name: str, runs: Sequence[Run], where: Mapping[str, Any]) -> None:
    """Replace one group's runs and make the page anew."""
    path = out / "crowd.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found[name] = {"machine": dict(where), "runs": [asdict(run) for run in runs]}
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (out / "crowd.md").write_text(page(found), encoding="utf-8")


def page(found: Mapping[str, Any]) -> str:
    parts = ["# Crowd statistics beside their peers", _head()]
    for name, group in GROUPS.items():
        if name not in found:
            continue
        where = found[name]["machine"]
        runs = [Run(**run) for run in found[name]["runs"]]
        loads = [run.load for run in runs]
        parts.append(f"## {group.title}")
        parts.append(f"`python -m benchmarks.crowd --only {name}`, {where['made'][:16].replace('T', ' ')} UTC, "
                     f"{where['cores']} cores, load {min(loads):.1f} to {max(loads):.1f}. {group.note}")
        parts.append(table(group.lines(runs)))
        if name in ("curves", "linear"):
            parts.append(_curves(runs))
        failed = [f"{run.measure}: {run.failure}" for run in runs if run.failure]
        if failed:
            parts.append("Not finished: " + "; ".join(failed) + ".")
    return "\n\n".join(parts) + "\n"


def _head() -> str:
    return ("Made by `make bench-crowd`. Every measurement is a process of its own with one thread, ours and theirs in "
            "turns on the same votes: 1,000 annotators (a fifth spammers, a fifth right in 95 %, the others in 50 to "
            "80 %), 10 classes, 5 votes a task. Building the input is not timed; memory is the peak while the method "
            "runs, above what the process held with its input. Figures are medians over the repeats with the range in "
            "brackets; times depend on what else the machine does. Each part says when and on how many cores it was "
            "made; only figures of one part are to be compared.")


def table(lines: Sequence[Line]) -> str:
    rows = ["| | measured | target | |", "|---|---|---|---|"]
    for line in lines:
        spread = ""
        if line.low is not None and line.high is not None and line.low != line.high:
            spread = f" ({number(line.low)} to {number(line.high)})"
        verdict = {True: "hit", False: "**miss**", None: ""}[line.hit]
        rows.append(f"| {line.what} | {number(line.measured)} {line.unit}{spread} | {line.target} | {verdict} |")
    return "\n".join(rows)


def _curves(runs: Sequence[Run]) -> str:
    sizes = sorted({run.n_tasks for run in runs})
    rows = ["| processor seconds / MB above the input | " + " | ".join(f"{n:,} tasks" for n in sizes) + " |",
            "|---" * (len(sizes) + 1) + "|"]
    for name in curves_in(runs):
        points = {point[0]: point for point in curve(runs, name)}
        rows.append(f"| {name} | " + " | ".join(
            f"{number(points[n][1])} / {number(points[n][2])}" if n in points else "" for n in sizes) + " |")
    return "\n".join(rows)


def number(value: float) -> str:
    """Three digits or so."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else (
        f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:.4f}")
