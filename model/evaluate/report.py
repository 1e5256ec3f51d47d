"""The results of one data set as Markdown: a table for each setting, differences to ours, weights of base models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]  # what `summary.to_json` gives
COLUMNS = (
    ("accuracy", "accuracy"), ("accuracy_annotators", "mean of annotators"), ("macro_f1", "macro-F1"),
    ("weighted_f1_annotators", "weighted F1"), ("log_loss", "log-loss"), ("brier", "Brier"), ("ece", "ECE"),
    ("mae", "MAE"), ("add", "ADD"), ("dic", "DIC"), ("copr", "CoPr"), ("consensus", "own consensus"),
    ("copr_gold", "CoPr, gold"), ("consensus_gold", "own consensus, gold"),
)
_WITH_INTERVAL = frozenset({"accuracy", "log_loss"})


def figures_of(results: Results, setting: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    """model -> metric -> row, without the rows of single annotators."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in results["results"]:
        if row["setting"] == setting and "annotator" not in row:
            found.setdefault(row["model"], {})[row["metric"]] = row
    return found


def difference_of(results: Results, setting: str, against: str, metric: str) -> Mapping[str, Any] | None:
    """The paired difference of ours to a model."""
    for row in results["differences"]:
        if (row["setting"], row["against"], row["metric"]) == (setting, against, metric):
            return dict(row)
    return None


def markdown(results: Results, *, level: int = 1) -> str:
    """A page about one data set."""
    head = "#" * level
    size = f"{results['votes']} votes by {results['annotators']} annotators on {results['tasks']} tasks"
    size += f", {len(results['classes'])} classes, {results['folds']} folds."
    lines = [f"{head} {results['dataset']}", "", size, ""]
    for setting in results["settings"]:
        lines += [f"{head}# {setting}", "", *setting_table(results, setting), ""]
    weights = model_weights(results)
    if weights:
        lines += [f"{head}# Weights of the base models in `served`, as far as it reads content", "", *weights, ""]
    return "\n".join(lines)


def flat(mean: Results, controls: Sequence[tuple[str, Results]]) -> dict[str, Any]:
    """Results of several controls as one object: every row names its control; null stands for their mean."""
    found = {key: mean[key] for key in ("settings", "folds", "votes", "tasks", "annotators")}
    found = {"dataset": controls[0][1]["dataset"], **found, "controls": [
        {"name": name, "votes": each["votes"], "classes": each["classes"]} for name, each in controls]}
    for key in ("results", "differences", "notes"):
        found[key] = [{"control": name, **row} for name, each in ((None, mean), *controls) for row in each[key]]
    return found


def setting_table(results: Results, setting: str) -> list[str]:
    """Rows of models, best accuracy first, with the paired differences of `served` to each."""
    figures = figures_of(results, setting)
    columns = [(metric, title) for metric, title in COLUMNS if any(metric in found for found in figures.values())]
    seeds = {note["model"]: note for note in results["notes"] if note["setting"] == setting}
    order = sorted(figures, key=lambda model: -(_mean(figures[model].get("accuracy")) or 0.0))
    titles = ["model", *(title for _, title in columns), "served − it: accuracy, points", "served − it: log-loss",
              "seeds", "s a fit"]
    rows = []
    for model in order:
        cells = [cell(figures[model].get(metric), interval=metric in _WITH_INTERVAL) for metric, _ in columns]
        rows.append([
            f"**{model}**" if model in ("served", "network") else model, *cells,
            gap(difference_of(results, setting, model, "accuracy"), scale=100.0, digits=1),
            gap(difference_of(results, setting, model, "log_loss"), digits=3),
            str(len(seeds[model]["seeds"])), f"{seeds[model]['seconds_a_fit']:.1f}",
        ])
    return table(titles, rows)


def model_weights(results: Results) -> list[str]:
    """The mean weight of each base model, by setting."""
    notes = [note for note in results["notes"] if note["weights"] and note["model"] == "served"]
    names = list(dict.fromkeys(name for note in notes for name in note["weights"]))
    if not names:
        return []
    rows = [[note["setting"], *(f"{note['weights'][n]:.2f}" if n in note["weights"] else "" for n in names)]
            for note in notes]
    return table(["setting", *names], rows)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (titles, ["---"] * len(titles), *rows)]


def cell(row: Mapping[str, Any] | None, *, interval: bool = False) -> str:
    """A figure, with its 95 % interval if wanted; empty where there is none."""
    mean = _mean(row)
    if row is None or mean is None:
        return ""
    if interval and row["low"] is not None:
        return f"{mean:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{mean:.3f}"


def gap(row: Mapping[str, Any] | None, *, scale: float = 1.0, digits: int = 3) -> str:
    """A difference with its interval."""
    if row is None or row["mean"] is None:
        return ""
    parts = [f"{scale * row[key]:+.{digits}f}" if row[key] is not None else "?" for key in ("mean", "low", "high")]
    return f"{parts[0]} [{parts[1]}, {parts[2]}]"


def _mean(row: Mapping[str, Any] | None) -> float | None:
    return None if row is None or row["mean"] is None else float(row["mean"])
