"""Plots of an evaluation, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.data.metrics import Interval
from model.evaluate.report import figures_of

_BLUE, _GREY = "#2563eb", "#6b7280"


def plot_results(results: Mapping[str, Any], path: Path) -> None:
    """Accuracy and log-loss of every model with its interval, a row of panels for each setting."""
    settings = results["settings"]
    most = max(len(figures_of(results, setting)) for setting in settings)
    figure, axes = _panels(len(settings), 2, (11.0, len(settings) * (1.2 + 0.28 * most)))
    for row, setting in enumerate(settings):
        figures = figures_of(results, setting)
        for column, metric in enumerate(("accuracy", "log_loss")):
            order = _best_last(figures, metric)
            panel = axes[row][column]
            for at, model in enumerate(order):
                found = figures[model][metric]
                _dot(panel, at, found["mean"], found["low"], found["high"], _colour(model))
            panel.set_yticks(range(len(order)), order, fontsize=8)
            panel.set_title(f"{setting}: {metric.replace('_', '-')}", fontsize=10, loc="left")
    _save(figure, path)


def plot_gaps(
    gaps: Mapping[str, Mapping[str, tuple[str, Interval]]], path: Path, *, scale: float = 1.0
) -> None:
    """For each title a panel: differences to the best baseline by set, which is named beside."""
    shown = {title: found for title, found in gaps.items() if found}
    figure, axes = _panels(1, max(1, len(shown)), (13.0, 3.6))
    for panel, (title, found) in zip(axes[0], shown.items(), strict=False):
        for at, (_, gap) in enumerate(found.values()):
            _dot(panel, at, scale * gap.mean, scale * gap.low, scale * gap.high, _BLUE)
        panel.axvline(0.0, color=_GREY, linewidth=0.8)
        panel.axvline(-1.0, color=_GREY, linewidth=0.8, linestyle=":")
        names = [f"{name}\nagainst {other}" for name, (other, _) in found.items()]
        panel.set_yticks(range(len(found)), names, fontsize=7)
        panel.set_title(f"served minus the best baseline: {title}", fontsize=9, loc="left")
    _save(figure, path)


def _best_last(figures: Mapping[str, Mapping[str, Mapping[str, Any]]], metric: str) -> list[str]:
    better = 1.0 if metric == "accuracy" else -1.0
    return sorted(figures, key=lambda model: better * float(figures[model][metric]["mean"]))


def _panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _dot(panel: Any, at: int, mean: float, low: float | None, high: float | None, colour: str) -> None:
    if low is not None and high is not None:
        panel.plot([low, high], [at, at], color=colour, linewidth=1.2)
    panel.plot([mean], [at], "o", color=colour, markersize=4)
    panel.grid(axis="x", linewidth=0.3)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _colour(model: str) -> str:
    return _BLUE if model.partition("@")[0] in ("served", "network") else _GREY


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
