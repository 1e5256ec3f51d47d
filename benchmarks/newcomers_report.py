"""What `benchmarks.newcomers` says: log-loss against own frequencies with intervals over projects, table and plot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Floats = NDArray[np.float64]
SHOWN = (1, 5, 10, 20, 40, 60, 80, 100)
COLOURS = {"own frequencies": "#777777", "untrained before": "#d8a15c", "before": "#b3541e", "untrained now": "#7fb0d8",
           "now": "#1f5fa8"}


def curves(found: Mapping[str, Any], kind: str, way: str, what: str = "loss") -> Floats:
    """(projects, steps)."""
    return np.array([row[what][way] for row in found["rows"] if row["kind"] == kind])


def interval(values: Floats) -> tuple[Floats, Floats]:
    """Mean over projects (the first axis), and half of its 95 % interval (Student's)."""
    n = len(values)
    if n < 2:
        return values.mean(0), np.full(values.shape[1:], np.nan)
    return values.mean(0), student.ppf(0.975, n - 1) * values.std(0, ddof=1) / np.sqrt(n)


def markdown(found: Mapping[str, Any]) -> str:
    """The page."""
    steps = found["steps"]
    kinds = list(dict.fromkeys(row["kind"] for row in found["rows"]))
    ways = [way for way in COLOURS if way != "own frequencies"]
    lines = [
        "# A newcomer's first hundred votes", "",
        f"Log-loss (nats a vote) on units that the newcomer never labelled, minus that of their own frequencies from "
        f"the same votes; below 0 is better. Mean over {found['projects']} simulated projects with a 95 % interval. "
        + ("\"before\" and \"now\" are trained anew after every twenty of the newcomer's votes, "
           if found["training"] else "Nothing was trained on the newcomer here; ")
        + "\"untrained\" never knows more of them than their votes so far. `python -m benchmarks.newcomers` makes this "
        "page.", "",
    ]
    for kind in kinds:
        own = curves(found, kind, "own frequencies")
        lines += [f"## {kind}", "", f"| votes | own frequencies | {' | '.join(ways)} |",
                  "| --- " * (len(ways) + 2) + "|"]
        apart = {way: interval(curves(found, kind, way) - own) for way in ways}
        for at, step in enumerate(steps):
            if step in SHOWN:
                cells = [f"{mean[at]:+.3f} ± {half[at]:.3f}" for mean, half in apart.values()]
                lines.append(f"| {step} | {own[:, at].mean():.3f} | " + " | ".join(cells) + " |")
        lines.append("")
        rights = (f"{step} votes: own frequencies {_hits(found, kind, 'own frequencies', step)}, before "
                  f"{_hits(found, kind, 'before', step)}, now {_hits(found, kind, 'now', step)}"
                  for step in (5, 20, 60))
        lines += [f"Right answers after {'; '.join(rights)}.", ""]
        lines += [_verdict(kind, way, steps, apart[way]) for way in ("before", "now")] + [""]
    return "\n".join(lines)


def _hits(found: Mapping[str, Any], kind: str, way: str, step: int) -> str:
    return f"{100 * curves(found, kind, way, 'hits')[:, list(found['steps']).index(step)].mean():.0f} %"


def _verdict(kind: str, way: str, steps: list[int], apart: tuple[Floats, Floats]) -> str:
    """After which numbers of votes a way is shown to be worse than own frequencies."""
    mean, half = apart
    worse = [step for step, m, h in zip(steps, mean, half, strict=True) if step >= 5 and m - h > 0]
    named = ", ".join(map(str, worse))
    return f"- {way}: " + (f"shown worse than own frequencies after {named} votes." if worse else
                           "never shown worse than own frequencies from five votes on.")


def plot(found: Mapping[str, Any], path: Path) -> None:
    """One panel a kind: log-loss over votes, each with its interval."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys(row["kind"] for row in found["rows"]))
    figure, axes = plt.subplots(1, len(kinds), figsize=(3.6 * len(kinds), 3.6), sharey=False, layout="constrained")
    for axis, kind in zip(np.atleast_1d(axes), kinds, strict=True):
        for way, colour in COLOURS.items():
            mean, half = interval(curves(found, kind, way))
            style = "--" if way.startswith("untrained") else "-"
            axis.plot(found["steps"], mean, style, color=colour, label=way, linewidth=1.6)
            axis.fill_between(found["steps"], mean - half, mean + half, color=colour, alpha=0.12, linewidth=0)
        axis.set_title(kind)
        axis.set_xlabel("votes of the newcomer")
        axis.grid(alpha=0.25)
    np.atleast_1d(axes)[0].set_ylabel("log-loss on other units, nats a vote")
    np.atleast_1d(axes)[-1].legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
