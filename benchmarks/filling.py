"""Half-hidden sets: is the consensus after filling the gaps closer to the full-vote majority than without filling?

    python -m benchmarks.filling --data FOLDER --cells CELLS [--out benchmarks/results/filling.md]

CELLS are the half-visible cells of `served` that `python -m benchmarks.evaluation run` leaves: of each test task a
random half of the votes is seen, all votes of the other tasks are. Of those tasks with a seen and a hidden vote, every
way gets the same votes:

    filled       the ladder's consensus: the majority of the whole panel, gaps predicted from content and seen votes
    majority     of the seen votes
    Dawid-Skene  fitted on all votes that are seen, those of the other tasks too

Credit of a task: 1 where the label is the majority of all its votes (of level ones, any), shared where several labels
of a way are level. Intervals are 95 %, over tasks.

Shape legend: G tasks of a set, R draws, C classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation_sets import SETS, without_content
from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.evaluate.bootstrap import interval, task_draws
from model.evaluate.cells import Cell, CellStore
from model.evaluate.problem import Problem

Floats = NDArray[np.float64]
WAYS = ("filled", "majority", "Dawid-Skene")
FOLDS = 5
MODEL, SETTING = "served", "half-visible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One set."""

    name: str
    folds: int
    seen: float  # mean seen votes of a task
    votes: float  # mean votes of a task
    credit: dict[str, Floats]  # way -> (G,)


def credit(scores: Floats, majority: NDArray[np.bool_]) -> Floats:
    """(G,) from scores (G, C) of a way and which classes lead among all votes (G, C)."""
    top = np.isclose(scores, scores.max(1, keepdims=True), rtol=0.0, atol=1e-9)
    return np.asarray((top & majority).sum(1) / top.sum(1))


def score_fold(problem: Problem, cell: Cell) -> tuple[dict[str, Floats], Floats, Floats]:
    """(way -> credit (G,), seen votes, all votes) of the tasks of a fold with a seen and a hidden vote."""
    rows, votes, classes = cell.rows, problem.votes, len(problem.space.classes)
    place = {int(code): at for at, code in enumerate(cell.units)}
    unit = np.array([place[code] for code in votes.unit[rows].tolist()], np.int64)
    everything, seen = (np.zeros((len(cell.units), classes)) for _ in range(2))
    np.add.at(everything, unit, problem.y[rows])
    np.add.at(seen, unit[cell.shown], problem.y[rows[cell.shown]])
    hidden = everything.sum(1) - seen.sum(1)
    kept = np.flatnonzero((seen.sum(1) > 0) & (hidden > 0))
    leading = everything == everything.max(1, keepdims=True)
    crowd = dawid_skene(problem, rows[~cell.shown])[cell.units]
    found = {way: credit(scores[kept].astype(np.float64), leading[kept])
             for way, scores in zip(WAYS, (cell.consensus, seen, crowd), strict=True)}
    return found, seen[kept].sum(1), everything[kept].sum(1)


def dawid_skene(problem: Problem, hidden: NDArray[np.int32]) -> Floats:
    """(U, C) from all votes but the hidden ones."""
    left = np.ones(len(problem.votes), np.bool_)
    left[hidden] = False
    votes = problem.votes
    answers = AnswerMatrix.from_codes(
        units=votes.units, annotators=votes.annotators, classes=problem.space.classes, unit=votes.unit[left],
        annotator=votes.annotator[left], label=problem.y[left].argmax(1))
    return np.asarray(DawidSkene().fit(answers).posterior)


def score_set(problem: Problem, folder: Path) -> Scored | None:
    """None where there is no cell of the model."""
    cells = [cell for cell in CellStore(folder, fingerprint=problem.fingerprint, folds=FOLDS).load()
             if (cell.key.model, cell.key.setting, cell.key.seed) == (MODEL, SETTING, 0)]
    if not cells:
        return None
    parts = [score_fold(problem, cell) for cell in cells]
    return Scored(
        name=problem.name, folds=len(cells), seen=float(np.concatenate([part[1] for part in parts]).mean()),
        votes=float(np.concatenate([part[2] for part in parts]).mean()),
        credit={way: np.concatenate([part[0][way] for part in parts]) for way in WAYS})


def drawn(values: Floats) -> Floats:
    """(R + 1,) mean of (G,) in the data and in every draw of tasks."""
    return np.asarray(task_draws(len(values)) @ values / len(values))


def report(sets: Sequence[Scored]) -> str:
    """The Markdown page."""
    lines = [
        "# Half-hidden sets: consensus after filling", "",
        "Made by `python -m benchmarks.filling --data SETS --cells CELLS` from cells of `benchmarks.evaluation`. Of "
        "each test task about half of the votes is seen. Share of tasks, in percent, whose consensus is the majority "
        "of *all* their votes; 95 % intervals over tasks. *Filled* is the consensus of the full ladder (`served`: "
        "prior, pooled, network, and where votes are seen the conditioned network, latent classes and factors), of the "
        "version of the package that made the cells.", "",
        "| set | tasks (folds) | seen of votes | filled | majority of seen | Dawid-Skene | filled - majority | "
        "filled - Dawid-Skene |", "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    means: dict[str, list[Floats]] = {way: [] for way in WAYS}
    for each in sets:
        curves = {way: drawn(each.credit[way]) for way in WAYS}
        for way in WAYS:
            means[way].append(curves[way])
        lines.append(_row(each.name, f"{len(each.credit['filled'])} ({each.folds} of {FOLDS})",
                          f"{each.seen:.1f} of {each.votes:.1f}", curves))
    lines.append(_row("**mean over sets**", "", "", {way: np.mean(means[way], axis=0) for way in WAYS}))
    lost = [f"{each.name} against {way}" for each in sets for way in WAYS[1:]
            if each.credit["filled"].mean() < each.credit[way].mean()]
    lines += ["", f"Below on: {', '.join(lost)}." if lost else "Below on no set.", "",
              "The seen votes are among those that make up the full majority, which favours all three ways alike. A "
              "set with three votes a task leaves one or two seen, where a majority is mostly one vote or a tie."]
    return "\n".join(lines) + "\n"


def _row(name: str, tasks: str, seen: str, curves: dict[str, Floats]) -> str:
    ways = [f"{100 * curves[way][0]:.1f}" for way in WAYS]
    gains = [interval(100 * (curves["filled"] - curves[way])) for way in WAYS[1:]]
    cells = [f"{each.mean:+.2f} [{each.low:+.2f}, {each.high:+.2f}]" for each in gains]
    return "| " + " | ".join((name, tasks, seen, *ways, *cells)) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets, one folder each")
    parser.add_argument("--cells", type=Path, required=True, help="folder of `benchmarks.evaluation run --out`")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "filling.md")
    arguments = parser.parse_args(argv)
    found = [score_set(without_content(arguments.data, name), arguments.cells / name) for name in SETS
             if (arguments.cells / name / "problem.json").exists()]
    text = report([each for each in found if each is not None])
    arguments.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
