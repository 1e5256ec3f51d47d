"""The page of `benchmarks.load`: processor time a request, and for each load what its requests took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.load_clients import ROUTES, Taken
from benchmarks.measure import median, p99

LATE_S = 1.0  # Label Studio waits no longer for a webhook
MOST_MS = {"webhook": 3.0, "predict, after a vote on the task": 12.0}  # of processor time
MOST_RATIO = 5.0  # p99 against that of the handler that does nothing, judged up to 100 annotators
FLAT = 1.1  # memory at the end may be so many times that at the start


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Processor time of one kind of request."""

    what: str
    ms: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """One load."""

    annotators: int
    processes: int
    people: int
    seconds: float
    trainings: int
    taken: Taken
    costs: Sequence[Cost]
    processor_s: float  # of the web processes during the load
    noop_processor_s: float
    memory_mb: tuple[float, float]  # of the web processes at the start and the end of the load
    machine: Mapping[str, Any]


def report(runs: Sequence[Run]) -> str:
    """The whole page."""
    where = runs[0].machine
    parts = [
        "# Annotators at human pace while trainings run",
        f"`python -m benchmarks.load`, {where['made'][:16].replace('T', ' ')} UTC, {where['cores']} cores, "
        f"{where['machine']}, Python {where['python']}, load {where['load'][0]:.1f} at the start. Every 5 s each "
        "annotator opens a task (/predict), submits it (/webhook), and asks a handler that does nothing behind the "
        f"same web worker in a process of its own. The project knows {runs[0].people} annotators; all get a "
        "prediction of their own. Tasks are encoded already. Times include connecting.",
        "## Processor time a request\n\nOne after another, without other load; user and system time of the web "
        "processes, all threads.",
        _costs(runs),
        *(_load(each) for each in runs),
    ]
    return "\n\n".join(parts) + "\n"


def _costs(runs: Sequence[Run]) -> str:
    rows = ["| request | ms | target | |", "|---|---|---|---|"]
    for at, cost in enumerate(runs[0].costs):
        measured = sorted(run.costs[at].ms for run in runs)
        middle = sum(measured) / len(measured)
        spread = f" ({measured[0]:.2f} to {measured[-1]:.2f})" if len(measured) > 1 else ""
        most = MOST_MS.get(cost.what)
        target, verdict = ("", "") if most is None else (f"at most {most:g} ms", _verdict(middle <= most))
        rows.append(f"| {cost.what} | {middle:.2f}{spread} | {target} | {verdict} |")
    return "\n".join(rows)


def _load(run: Run) -> str:
    asked = sum(len(run.taken.seconds[route]) for route in ROUTES if route != "noop")
    rows = ["| | requests | failed | p50 ms | p99 ms | p99 / no-op's | beyond 1 s | |",
            "|---|---|---|---|---|---|---|---|"]
    nothing = p99(run.taken.seconds["noop"])
    for route in ROUTES:
        seconds = run.taken.seconds[route]
        late, ratio = sum(each > LATE_S for each in seconds), p99(seconds) / nothing
        rows.append(
            f"| {route} | {len(seconds)} | {run.taken.failed[route]} | {1000 * median(seconds):.1f} | "
            f"{1000 * p99(seconds):.1f} | {ratio:.1f} | {late} | {_judged(run, route, ratio, late)} |")
    start, end = run.memory_mb
    return "\n\n".join([
        f"## {run.annotators} annotators, {run.processes} web process{'es' if run.processes > 1 else ''}",
        "\n".join(rows),
        f"{run.seconds:.0f} s, {run.trainings} training{'s' if run.trainings != 1 else ''} begun; "
        f"{len(run.taken.empty)} of {len(run.taken.seconds['predict'])} tasks answered without a prediction. Processor "
        f"time under this load: {1000 * run.processor_s / asked:.1f} ms a request, the handler that does nothing "
        f"{1000 * run.noop_processor_s / len(run.taken.seconds['noop']):.1f} ms. Memory of the web processes: "
        f"{start:.0f} MB at the start, {end:.0f} MB at the end (at most {FLAT:g} times: "
        f"{_verdict(end <= FLAT * start)}).",
    ])


def _judged(run: Run, route: str, ratio: float, late: int) -> str:
    """Up to 100 annotators webhooks and predictions are judged by ratio and delay, beyond that webhooks by delay."""
    if route == "noop" or (run.annotators > 100 and route != "webhook"):
        return ""
    slow = run.annotators <= 100 and ratio > MOST_RATIO
    wanted = f"at most {MOST_RATIO:g} and none" if run.annotators <= 100 else "none"
    return f"{wanted}: {_verdict(not slow and not late)}"


def _verdict(hit: bool) -> str:
    return "hit" if hit else "**miss**"
