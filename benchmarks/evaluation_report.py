"""Writes benchmarks/results/evaluation.{md,json,png} from cells: lines judged, a table of all sets, a page of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.commands.evaluation_plots import plot_gaps
from benchmarks.evaluation_lines import GAPS, OURS, against_best, judge, mean_gaps
from benchmarks.evaluation_sets import DEVELOPMENT, REMOVAL, without_content
from model.data.metrics import Interval
from model.evaluate.cells import CellKey, CellStore
from model.evaluate.report import gap, markdown, table
from model.evaluate.summary import Standings, standings, to_json

FOLDS = 5
_COMPARED = frozenset({"accuracy", "accuracy_annotators", "log_loss", "log_loss_annotators", "macro_f1", "brier"})


def write(data: Path, cells: Path, names: Sequence[str], out: Path) -> None:
    """The report of the sets on which ours has been run on all folds; the others are named."""
    tables, missing = {}, []
    for name in names:
        found = _standings(data, cells, name)
        if found is None:
            missing.append(name)
        else:
            tables[name] = found
    results = {name: to_json(standing, OURS) for name, standing in tables.items()}
    out.mkdir(parents=True, exist_ok=True)
    notes = out / "evaluation_notes.md"  # what was tried where a line is missed; written by hand
    remarks = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    text = [
        *_head(missing), *_judged(tables, missing), *remarks, "",
        *_overview(tables, "unseen", None), *_overview(tables, "half-visible", GAPS),
        "![Differences to the best baseline](evaluation.png)", "",
        *(markdown(result, level=2) for result in results.values()),
    ]
    (out / "evaluation.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    (out / "evaluation.json").write_text(_compact(results), encoding="utf-8")
    gaps: dict[str, Mapping[str, tuple[str, Interval]]] = {
        "unseen, accuracy (points)": against_best(tables, "unseen", "accuracy"),
        "half-visible, accuracy (points)": against_best(tables, "half-visible", "accuracy", GAPS),
    }
    plot_gaps(gaps, out / "evaluation.png", scale=100.0)


def _standings(data: Path, cells: Path, name: str) -> Standings | None:
    if not (cells / name).is_dir():
        return None
    problem = without_content(data, name)
    store = CellStore(cells / name, fingerprint=problem.fingerprint, folds=FOLDS)
    if not all(store.has(CellKey(OURS, "unseen", 0, fold)) for fold in range(FOLDS)):
        return None
    return standings(problem, store, FOLDS)


def _head(missing: Sequence[str]) -> list[str]:
    return [
        "# How good are the predictions?", "",
        "Made by `python -m benchmarks.evaluation` (docs/evaluation.md says how to repeat it and what the figures "
        "mean). Five folds by task; intervals are 95 %, by a bootstrap over tasks; differences are paired. "
        f"Hyperparameters were chosen on {' and '.join(DEVELOPMENT)} only.", "",
        *([f"**Not run on all folds yet, so left out: {', '.join(missing)}.**", ""] if missing else []),
    ]


def _judged(tables: Mapping[str, Standings], missing: Sequence[str]) -> list[str]:
    """Verdicts; where sets are missing, a line over all sets is hit only as far as it has been looked at."""
    so_far = f" on the {len(tables)} of {len(tables) + len(missing)} sets that were run" if missing else ""
    rows = [
        [item.line, ("hit" if item.hit else "**missed**") + ("" if "removed" in item.line else so_far), item.figures]
        for item in judge(tables, REMOVAL)
    ]
    models = {model for found in tables.values() for setting in found.settings for model in found.models(setting)}
    named = f"Baselines that were run: {', '.join(sorted(models - {'served', 'network'}))}."
    return ["## The lines", "", *table(["line", "verdict", "figures"], rows), "", named, ""]


def _overview(tables: Mapping[str, Standings], setting: str, among: Sequence[str] | None) -> list[str]:
    """served against the best baseline of each set, and against every baseline on the mean."""
    accuracy, loss = (against_best(tables, setting, metric, among) for metric in ("accuracy", "log_loss"))
    rows = []
    for name, (other, found) in accuracy.items():
        standing = tables[name]
        own = standing.figures(OURS, setting, standing.seeds(OURS, setting))
        network = standing.figures("network", setting, standing.seeds("network", setting))
        rows.append([
            f"{name} (development)" if name in DEVELOPMENT else name, f"{own['accuracy'][0]:.3f}",
            f"{network['accuracy'][0]:.3f}", other, gap(_row(found), scale=100.0, digits=1),
            f"{own['log_loss'][0]:.3f}", loss[name][0], gap(_row(loss[name][1])),
        ])
    titles = ["set", "served", "network", "best baseline", "difference, points", "log-loss of served", "best baseline",
              "difference, nats"]
    by_accuracy, by_loss = (mean_gaps(tables, setting, metric, among) for metric in ("accuracy", "log_loss"))
    means = [
        [model, gap(_row(found), scale=100.0, digits=2), gap(_row(by_loss[model]), digits=4)]
        for model, found in sorted(by_accuracy.items(), key=lambda item: item[1].mean)
    ]
    kind = "gap baselines" if among else "baselines"
    return [
        f"## {setting}: served and the best of the {kind}, set by set", "", *table(titles, rows), "",
        f"Mean over the sets of served minus each of the {kind}, nearest first:", "",
        *table(["model", "accuracy, points", "log-loss, nats"], means), "",
    ]


def _row(found: Interval) -> dict[str, float]:
    return {"mean": found.mean, "low": found.low, "high": found.high}


def _compact(results: Mapping[str, Any]) -> str:
    """One row a line, figures with five digits; differences of the metrics that are compared."""
    pages = []
    for page in results.values():
        rows = {key: [_rounded(row) for row in page[key]] for key in ("results", "notes")}
        rows["differences"] = [_rounded(row) for row in page["differences"] if row["metric"] in _COMPARED]
        head = {key: value for key, value in page.items() if key not in rows}
        body = ",\n".join(
            f' "{key}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows[key]) + "\n ]" for key in rows
        )
        pages.append(json.dumps(head)[:-1] + ",\n" + body + "\n}")
    return "[\n" + ",\n".join(pages) + "\n]\n"


def _rounded(item: Any) -> Any:
    if isinstance(item, float):
        return round(item, 5)
    return {key: _rounded(value) for key, value in item.items()} if isinstance(item, Mapping) else item
