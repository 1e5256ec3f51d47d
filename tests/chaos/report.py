"""The report of a chaos run, as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.chaos.rounds import Outcome

HEAD = """\
| round | set-up | killed | moment | answers again | at rest | submits (refused) | slowest | outcome |
|---|---|---|---|---|---|---|---|---|"""


def line(outcome: Outcome) -> str:
    """One row of the table."""
    this = outcome.round
    moment = f"after {this.submits} submits" if this.when.name == "SUBMIT" else this.when
    result = "; ".join(outcome.failures) if outcome.failures else "all held"
    said = f'; status: "{outcome.said}"' if outcome.said else ""
    return (
        f"| {this.number} | {this.setup} | {this.victim} | {moment} | {_seconds(outcome.answered_s)} | "
        f"{_seconds(outcome.rest_s)} | {outcome.submits} ({outcome.refused}) | {outcome.slowest_submit_s:.1f} s | "
        f"{result}{said} |"
    )


def markdown(outcomes: Sequence[Outcome], *, rounds: int, seed: int) -> str:
    """The whole report; its last paragraph sums it up."""
    held = sum(not outcome.failures for outcome in outcomes)
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return "\n\n".join([
        "# Chaos report",
        f"Made {made} by `python -m tests.chaos --rounds {rounds} --seed {seed}` on {os.cpu_count()} cores "
        f"({platform.machine()}, Python {platform.python_version()}, load at the end {load}).",
        "Every kill is SIGKILL; moments inside a job are made certain by stopping its process first. Annotators "
        "submit, change and delete annotations through Label Studio's API all the time, also while something is away. "
        "*answers again*: from the kill until /setup and /predict answer under the published version. *at rest*: from "
        "the kill until everything is read, trained, delivered and compared again (annotators stop after the restart). "
        "Then these must hold: current votes in the store equal the annotations in Label Studio; a valid version "
        "answers; it is selected and on every open task; no prediction lies twice; the status says what happened.",
        "\n".join([HEAD, *map(line, outcomes)]),
        f"{held} of {len(outcomes)} rounds held.",
    ]) + "\n"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"
