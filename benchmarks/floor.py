"""Who is served worse than by their own habits: before and after, in one run.

    python -m benchmarks.floor_sets --data FOLDER --out local/floor
    python -m benchmarks.floor --packs local/floor --jobs 16 --out FOLDER [--projects 20] [--device cpu]

Each project is split into folds by task; a ladder is fitted on the votes of the others as it was (`before`: no surface
of texts, one stack for everybody) and as it is (`after`), and scores the votes of the fold: where nothing of a task is
seen, and where half of its votes are. Beside them stand, from the same training votes, the annotator's own frequencies
(half a vote more for each class) and pooled content with bias (mean tokens, penalty by inner folds).

An annotator with at least 10 votes counts. They are *served worse* where the 95 % interval of the mean difference in
log-loss to the better of the two, by task, lies above 0. The better one is picked with hindsight, so this is strict:
the same share is told of the two themselves, and, as *picked elsewhere*, of what is served where the better one is
picked by the other folds, as somebody would have to who served one of the two.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.floor_sets import DEMO, problem
from model.config import LadderConfig
from model.data.metrics import correct, log_losses, paired_interval
from model.ensemble.floor import frequencies_of
from model.ensemble.ladder import TrainingSet, fit
from model.evaluate.baselines.naive import PooledBias
from model.evaluate.design import fold_of_votes, shown
from model.evaluate.harness import make_fold
from model.evaluate.problem import Problem, targets_of

FOLDS = 3
SETTINGS = {"unseen": 0.0, "half-visible": 0.5}
FLOOR = ("own frequencies", "pooled + bias")
WAYS = ("before", "after", *FLOOR)
ELSEWHERE = "after, picked elsewhere"
_FEWEST = 10  # votes that an interval is made of
Floats = NDArray[np.float64]


def job(folder: Path, name: str, fold: int, device: str, quick: bool) -> dict[str, Any]:
    """Losses and hits of all ways on the votes of a fold, by setting."""
    import torch

    torch.set_num_threads(1)
    whole = problem(folder, name)
    test = fold_of_votes(whole, FOLDS, 0) == fold
    votes, made = whole.votes, make_fold(whole, ~test, fold, device)
    units = [votes.units[u] for u in np.unique(votes.unit[test])]
    place = {unit: at for at, unit in enumerate(units)}
    ladders = {way: _fitted(whole, test, way, fold, device, quick) for way in ("before", "after")}
    trained = targets_of(made.votes, whole.space, made.units, votes.annotators)
    table = frequencies_of(trained, len(votes.annotators))
    pooled = PooledBias().fit(made).predict(units, visible=None)
    found: dict[str, Any] = {"project": name, "fold": fold, "settings": {}}
    for setting, share in SETTINGS.items():
        seen = shown(whole, test, share, seed=0, fold=fold)
        rows = np.flatnonzero(test & ~seen)
        at = np.array([place[votes.units[u]] for u in votes.unit[rows]]), votes.annotator[rows]
        p = {"own frequencies": table[at[1]], "pooled + bias": pooled[at]}
        for way, ladder in ladders.items():
            tokens, texts = whole.tokens(units), None if whole.texts is None else whole.texts(units)
            answer = ladder.predict(tokens, votes.annotators, units=units, given=votes.select(seen) if share else None,
                                    consensus=False, texts=texts)["label"]
            p[way] = answer.served[at]
        y = whole.y[rows]
        found["settings"][setting] = {
            "annotator": [votes.annotators[a] for a in at[1]], "task": whole.task[rows].tolist(),
            "loss": {way: log_losses(whole.space, p[way], y).round(5).tolist() for way in WAYS},
            "right": {way: correct(whole.space, p[way], y).astype(int).tolist() for way in WAYS},
        }
    return found


def _fitted(whole: Problem, test: NDArray[np.bool_], way: str, seed: int, device: str, quick: bool) -> Any:
    config = replace(LadderConfig(), seed=seed, floor=way == "after")
    if quick:
        config = replace(config, members_per_fold=1, network=replace(config.network, width=32, epochs=6))
    data = TrainingSet(
        votes=whole.votes.select(~test), spaces={"label": whole.space}, tokens=whole.tokens,
        heldout=lambda unit: False, texts=whole.texts if way == "after" else None,
    )
    return fit(data, config, device=device).ladder


def summary(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """setting -> group of projects -> figures."""
    found: dict[str, Any] = {}
    for setting in SETTINGS:
        people = _people([(part["project"], part["fold"], part["settings"][setting]) for part in parts])
        groups = {"public sets": [each for each in people if not each["project"].startswith(DEMO)],
                  "simulated demos": [each for each in people if each["project"].startswith(DEMO)]}
        names = sorted({each["project"] for each in groups["public sets"]})
        groups |= {name: [each for each in people if each["project"] == name] for name in names}
        kinds = sorted({each["annotator"].partition("-")[0] for each in groups["simulated demos"]})
        groups |= {f"demos: {kind}": [each for each in groups["simulated demos"]
                                      if each["annotator"].partition("-")[0] == kind] for kind in kinds}
        found[setting] = {name: _figures(group) for name, group in groups.items() if group}
    return found


def _people(parts: Sequence[tuple[str, int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """One row for each annotator of each project who has enough votes."""
    by: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, fold, part in parts:
        for row, who in enumerate(part["annotator"]):
            mine = by[name, who]
            mine["fold"].append(fold)
            mine["task"].append(part["task"][row])
            for way in WAYS:
                mine[f"loss {way}"].append(part["loss"][way][row])
                mine[f"right {way}"].append(part["right"][way][row])
    return [_person(name, who, mine) for (name, who), mine in by.items() if len(mine["task"]) >= _FEWEST]


def _person(name: str, who: str, mine: dict[str, list[Any]]) -> dict[str, Any]:
    loss = {way: np.array(mine[f"loss {way}"]) for way in WAYS}
    fold, task = np.array(mine["fold"]), np.unique(mine["task"], return_inverse=True)[1]
    best = min(FLOOR, key=lambda way: float(loss[way].mean()))
    picked = loss[FLOOR[0]].copy()
    for each in np.unique(fold):
        others = fold != each if (fold != each).any() else fold == each
        picked[fold == each] = loss[min(FLOOR, key=lambda way: float(loss[way][others].mean()))][fold == each]
    row: dict[str, Any] = {"project": name, "annotator": who, "votes": len(task), "best": best}
    for way in WAYS:
        row[f"worse {way}"] = way != best and bool(paired_interval(loss[way] - loss[best], task).low > 0.0)
        row[f"gap {way}"] = float((loss[way] - loss[best]).mean())
        row[f"loss {way}"], row[f"right {way}"] = float(loss[way].mean()), float(np.mean(mine[f"right {way}"]))
    row[f"worse {ELSEWHERE}"] = bool(paired_interval(loss["after"] - picked, task).low > 0.0)
    return row


def _figures(people: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Shares and means over annotators with 95 % intervals, by a bootstrap over annotators."""
    draw = np.random.default_rng(0).integers(0, len(people), (2000, len(people)))

    def mean(values: Sequence[float]) -> list[float]:
        x = np.array(values, float)
        low, high = np.quantile(x[draw].mean(1), (0.025, 0.975))
        return [round(float(each), 4) for each in (x.mean(), low, high)]

    found: dict[str, Any] = {"annotators": len(people)}
    for way in (*WAYS, ELSEWHERE):
        found[f"served worse {way}"] = mean([each[f"worse {way}"] for each in people])
    for way in ("before", "after"):
        found[f"gap {way}"] = mean([each[f"gap {way}"] for each in people])
    for what in ("loss", "right"):
        for way in WAYS:
            found[f"{what} {way}"] = mean([each[f"{what} {way}"] for each in people])
        found[f"{what} after - before"] = mean([each[f"{what} after"] - each[f"{what} before"] for each in people])
    return found


def markdown(results: dict[str, Any]) -> str:
    lines = ["# Floor for each annotator", "", " ".join((__doc__ or "").split("\n\n")[2].split()), "",
             " ".join((__doc__ or "").split("\n\n")[3].split()), ""]
    for setting, groups in results.items():
        lines += [f"## {setting}", "", "| | annotators | served worse: before | after | after, picked elsewhere | "
                  "own frequencies | pooled + bias | log-loss: before | after | after - before | own frequencies | "
                  "pooled + bias | accuracy: before | after | after - before |", "|---" * 15 + "|"]
        for name, row in groups.items():
            share = [f"{row[f'served worse {way}'][0]:.1%} ({row[f'served worse {way}'][1]:.1%} to "
                     f"{row[f'served worse {way}'][2]:.1%})" for way in ("before", "after", ELSEWHERE, *FLOOR)]
            loss = [f"{row[f'loss {way}'][0]:.3f}" for way in ("before", "after")]
            right = [f"{row[f'right {way}'][0]:.1%}" for way in ("before", "after")]
            moved, hits = row["loss after - before"], row["right after - before"]
            lines.append(
                f"| {name} | {row['annotators']} | {' | '.join(share)} | {loss[0]} | {loss[1]} | "
                f"{moved[0]:+.3f} ({moved[1]:+.3f} to {moved[2]:+.3f}) | {row['loss own frequencies'][0]:.3f} | "
                f"{row['loss pooled + bias'][0]:.3f} | {right[0]} | {right[1]} | "
                f"{hits[0]:+.1%} ({hits[1]:+.1%} to {hits[2]:+.1%}) |")
        lines.append("")
    return "\n".join(lines)


def plot(results: dict[str, Any], path: Path) -> None:
    """Share of annotators served worse, before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    axes = figure.subplots(1, len(results), sharex=True)
    for panel, (setting, groups) in zip(np.atleast_1d(axes), results.items(), strict=True):
        names = list(groups)[::-1]
        for at, (way, colour) in enumerate((("before", "#b0b0b0"), ("after", "#2a6f97"))):
            rows = [groups[name][f"served worse {way}"] for name in names]
            error = [[100 * (row[0] - row[1]) for row in rows], [100 * (row[2] - row[0]) for row in rows]]
            panel.barh(np.arange(len(names)) + 0.2 - 0.4 * at, [100 * row[0] for row in rows], 0.38, xerr=error,
                       label=way, color=colour)
        panel.axvline(5, color="#c1121f", linestyle=":")
        panel.set_yticks(range(len(names)), names, fontsize=7)
        panel.set(title=setting, xlabel="% of annotators served worse than by their own habits")
        panel.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--projects", type=int, default=20, help="simulated demos")
    parser.add_argument("--sets", nargs="*", help="public sets; by default all that are packed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="narrow networks, trained briefly")
    parser.add_argument("--plot", action="store_true", help="draw what was measured, and measure nothing")
    asked = parser.parse_args()
    target = asked.out / "floor"
    if asked.plot:
        plot(json.loads(target.with_suffix(".json").read_text(encoding="utf-8")), target.with_suffix(".png"))
        return
    packed = sorted(path.stem for path in asked.packs.glob("*.npz") if path.stem != DEMO)
    names = [*(packed if asked.sets is None else asked.sets), *(f"{DEMO}-{seed}" for seed in range(asked.projects))]
    asked.out.mkdir(parents=True, exist_ok=True)
    parts = []
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        todo = [pool.submit(job, asked.packs, name, fold, asked.device, asked.quick)
                for name in names for fold in range(FOLDS)]
        for done, each in enumerate(as_completed(todo), 1):
            parts.append(each.result())
            print(f"{done} of {len(todo)}: {parts[-1]['project']}", flush=True)
    parts.sort(key=lambda part: part["project"])
    results = summary(parts)
    target.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(markdown(results), encoding="utf-8")
    print(markdown(results))


if __name__ == "__main__":
    main()
