"""Timing: interleaved pairs, repeated, summed up as medians, p99 and ratios, and judged against a target.

Ours and its baseline take turns within a repeat, so that whatever else the machine does hits both alike. A ratio is
that of the medians (or p99s) of one repeat; what is reported is the median of the repeats, with their range.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure and what it should be."""

    what: str
    measured: float
    unit: str  # "ms", "x", "MB", "requests", "s"
    low: float | None = None  # range over the repeats
    high: float | None = None
    target: str = ""  # in words; "" for what is only told
    hit: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a benchmark found."""

    name: str
    title: str
    note: str  # how it was measured, in a sentence or two
    lines: Sequence[Line]
    raw: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def interleaved(calls: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, list[float]]:
    """Seconds of each call, `rounds` times; they take turns."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(timed(call))
    return taken


def median(seconds: Sequence[float]) -> float:
    return float(np.median(seconds))


def p99(seconds: Sequence[float]) -> float:
    return float(np.quantile(seconds, 0.99))


def over_repeats(what: str, values: Sequence[float], unit: str, *, most: float | None = None,
                 least: float | None = None) -> Line:
    """The median of one figure over the repeats, judged against a bound."""
    middle = float(np.median(values))
    target, hit = "", None
    if most is not None:
        target, hit = f"at most {most:g} {unit}", middle <= most
    elif least is not None:
        target, hit = f"at least {least:g} {unit}", middle >= least
    return Line(what=what, measured=middle, unit=unit, low=min(values), high=max(values), target=target, hit=hit)


def machine() -> dict[str, Any]:
    """Where and when this is measured, and how busy the machine is with other things."""
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"), "cores": os.cpu_count(),
        "machine": platform.machine(), "python": platform.python_version(), "load": list(os.getloadavg()),
    }


def markdown(results: Sequence[Mapping[str, Any]]) -> str:
    """A table a benchmark."""
    parts = ["# Benchmarks", "Made by `python -m benchmarks`; interleaved pairs, medians over the repeats, the range "
             "over the repeats in brackets. Times depend on what else the machine does (load average at the start)."]
    for each in results:
        where = each["machine"]
        load = f"{where['load'][0]:.1f}"
        parts.append(f"## {each['title']}")
        parts.append(f"`python -m benchmarks {each['name']}`, {where['made'][:16].replace('T', ' ')} UTC, "
                     f"{where['cores']} cores, load {load}. {each['note']}")
        rows = ["| | measured | target | |", "|---|---|---|---|"]
        rows += [_row(line) for line in each["lines"]]
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _row(line: Mapping[str, Any]) -> str:
    spread = ""
    if line["low"] is not None and line["low"] != line["high"]:
        spread = f" ({_number(line['low'])} to {_number(line['high'])})"
    verdict = {True: "hit", False: "**miss**", None: ""}[line["hit"]]
    return f"| {line['what']} | {_number(line['measured'])} {line['unit']}{spread} | {line['target']} | {verdict} |"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
