"""Predicted rankings on simulated crowds, beside what needs no model of annotators.

    python -m benchmarks.rankings [--crowds 6] [--out benchmarks/results/rankings.md]

Crowds rank five items on each task; an item's score is a sum of parts, and a ranking is a Plackett-Luce draw, in which
a fifth of the items is left out and a tenth of the neighbours is tied:

    tastes   items mean the same on every task, and each annotator has a taste of their own
    shared   items mean the same on every task, and all have the same taste
    answers  items are new on each task; what is good there is the same for all
    noise    all orders are equally likely

Of each crowd three quarters of the tasks teach. On the others each ranking is predicted with nothing known of its task
(`unseen`) and with every other ranking there known (`gap`), by

    served         Plackett-Luce scores of each annotator; equal chances where a training does not let them speak
    scores         the same, speaking always
    shared scores  Plackett-Luce scores fitted as if all annotators were one
    mean rank      the order of the mean place in all rankings that are known; it has no probabilities
    its task's     the same in those known of the task alone; before there are any it says nothing
    equal chances  for all orders

in nats a ranking and by the share of its pairs that stand in the right order (a half where nothing is said). Means over
crowds with 95 % intervals (Student), and the difference to `served`, paired by crowd.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from model.crowd.rankings import ranks_of
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote, Votes
from model.plackett_luce import log_likelihood
from model.ranking_model import Given, RankingModel, fit_rankings
from model.rankings import mean_places

Floats = NDArray[np.float64]
TASKS, TAUGHT, PEOPLE, ASKED, ITEMS = 80, 60, 8, 4, 5
LEFT_OUT, TIED = 0.2, 0.1
# standard deviations of an item's score: for all, of each annotator, of the task
CROWDS = {"tastes": (0.5, 1.2, 0.3), "shared": (1.2, 0.0, 0.3), "answers": (0.0, 0.3, 1.2), "noise": (0.0, 0.0, 0.0)}
WAYS = ("served", "scores", "shared scores", "mean rank", "its task's", "equal chances")
NO_PROBABILITIES = WAYS[3:5]
SETTINGS = ("unseen", "gap")
NATS, PAIRS = 0, 1
Figures = dict[tuple[str, str], tuple[float, float]]  # (setting, way) -> nats a ranking, share of pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A ranking to predict."""

    annotator: str
    ranks: dict[str, int]
    known: tuple[Given, ...]


def crowd(kind: str, seed: int) -> list[Vote]:
    """The rankings of a crowd, tasks in order."""
    rng = np.random.default_rng([sorted(CROWDS).index(kind), seed])
    common, own, particular = CROWDS[kind]
    shared = common * rng.standard_normal(ITEMS) + own * rng.standard_normal((PEOPLE, ITEMS))
    votes = []
    for task in range(TASKS):
        here = shared + particular * rng.standard_normal(ITEMS)
        names = [f"{task}.{item}" if kind == "answers" else str(item) for item in range(ITEMS)]
        for who in rng.choice(PEOPLE, ASKED, replace=False).tolist():
            noisy = here[who] + rng.gumbel(size=ITEMS)
            order = [item for item in np.argsort(-noisy).tolist() if rng.random() >= LEFT_OUT]
            buckets: list[tuple[str, ...]] = []
            for item in order:
                if buckets and rng.random() < TIED:
                    buckets[-1] += (names[item],)
                else:
                    buckets.append((names[item],))
            if len(order) > 1:
                votes.append(Vote(unit=str(task), annotator=str(who), control="rank",
                                  value=Value(ValueKind.RANKING, tuple(buckets))))
    return votes


def measure(votes: Sequence[Vote]) -> tuple[Figures, dict[str, bool]]:
    """The figures of one crowd, and in which settings the training let the scores speak."""
    taught = Votes.from_votes(vote for vote in votes if int(vote.unit) < TAUGHT)
    model = fit_rankings(taught)
    shared = fit_rankings(replace(taught, annotator=np.zeros_like(taught.annotator)))
    if model is None or shared is None:
        raise ValueError("the crowd gave too few rankings to learn from")
    learned = [vote.value for vote in votes if int(vote.unit) < TAUGHT]
    found: Figures = {}
    for setting in SETTINGS:
        asked = questions([vote for vote in votes if int(vote.unit) >= TAUGHT], known=setting == "gap")
        silent = [np.zeros(len(each.ranks)) for each in asked]
        told = {"scores": spoken(model, asked), "shared scores": spoken(shared, asked, taught.annotators[0]),
                "mean rank": by_places(asked, learned), "its task's": by_places(asked, []), "equal chances": silent}
        told["served"] = told["scores"] if model.speaks(seen=setting == "gap") else silent
        for way in WAYS:
            nats = float("nan") if way in NO_PROBABILITIES else mean_loss(told[way], asked)
            found[setting, way] = nats, pairs_right(told[way], asked)
    return found, {setting: model.speaks(seen=setting == "gap") for setting in SETTINGS}


def questions(votes: Sequence[Vote], *, known: bool) -> list[Asked]:
    """Every ranking; with `known` those at even places of their task, the odd ones being known."""
    of_task: dict[str, list[Vote]] = {}
    for vote in votes:
        of_task.setdefault(vote.unit, []).append(vote)
    return [
        Asked(annotator=vote.annotator, ranks=ranks_of(vote.value) or {},
              known=tuple((other.annotator, other.value, 1.0) for other in mine[1::2]) if known else ())
        for mine in of_task.values() for vote in (mine[::2] if known else mine)
    ]


def spoken(model: RankingModel, asked: Sequence[Asked], everybody: str = "") -> list[Floats]:
    """Scores of the items of each ranking; `everybody` is who all annotators were in the fit."""
    people = sorted({each.annotator for each in asked})
    names = [everybody] if everybody else people
    known = [[(everybody or who, value, weight) for who, value, weight in each.known] for each in asked]
    scores = model.scores([list(each.ranks) for each in asked], names, known)
    return [mine[names.index(everybody or each.annotator)] for mine, each in zip(scores, asked, strict=True)]


def mean_loss(scores: Sequence[Floats], asked: Sequence[Asked]) -> float:
    """Nats a ranking."""
    table, bucket = np.zeros((len(asked), ITEMS)), np.full((len(asked), ITEMS), -1)
    for row, (mine, each) in enumerate(zip(scores, asked, strict=True)):
        table[row, : len(mine)] = mine
        bucket[row, : len(mine)] = np.unique(list(each.ranks.values()), return_inverse=True)[1]
    return -float(log_likelihood(table, bucket)[0].mean())


def pairs_right(scores: Sequence[Floats], asked: Sequence[Asked]) -> float:
    """Share of the pairs that a ranking does not tie which stand in its order; level scores count a half."""
    right = []
    for mine, each in zip(scores, asked, strict=True):
        ranks = np.array(list(each.ranks.values()))
        first, second = np.triu_indices(len(ranks), 1)
        apart = ranks[first] != ranks[second]
        agree = np.sign(mine[first] - mine[second]) * np.sign(ranks[second] - ranks[first])
        right += ((agree[apart] + 1.0) / 2.0).tolist()
    return float(np.mean(right))


def by_places(asked: Sequence[Asked], learned: Sequence[Value]) -> list[Floats]:
    """Minus the mean place of each item in the rankings learned from and known; the middle for items in none."""
    found: list[Floats] = []
    known: dict[tuple[Given, ...], dict[str, float]] = {}
    for each in asked:
        if each.known not in known:
            known[each.known] = mean_places([*learned, *(value for _, value, _ in each.known)])
        found.append(-np.array([round(known[each.known].get(item, 0.5), 9) for item in each.ranks]))
    return found


def interval(numbers: Floats) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval; the latter is not a number for a single crowd."""
    if len(numbers) < 2:
        return float(numbers.mean()), float("nan")
    reach = float(student.ppf(0.975, len(numbers) - 1) * numbers.std(ddof=1) / len(numbers) ** 0.5)
    return float(numbers.mean()), reach


def page(found: Mapping[str, Sequence[tuple[Figures, dict[str, bool]]]], seconds: float) -> str:
    """All crowds as Markdown."""
    crowds = len(next(iter(found.values())))
    lines = [
        "# Rankings on simulated crowds", "",
        f"`python -m benchmarks.rankings --crowds {crowds}`: {crowds} crowds of each kind, {PEOPLE} annotators, "
        f"{TASKS} tasks of {ITEMS} items with {ASKED} rankings each; {TAUGHT} tasks teach, the others are asked about. "
        "What the crowds and the ways are stands in the module (`benchmarks/rankings.py`). "
        f"{seconds:.0f} s of one processor core.", "",
        "Nats a ranking (lower is better) and share of pairs in the right order (higher is better), each a mean with "
        "its 95 % interval over crowds. Differences are `served` minus the other way, paired by crowd.",
    ]
    for kind, runs in found.items():
        lines += ["", f"## {kind}", "", "| known of the task | way | nats a ranking | served minus it | pairs right | "
                  "served minus it |", "| --- | --- | --- | --- | --- | --- |"]
        for setting in SETTINGS:
            served = np.array([figures[setting, "served"] for figures, _ in runs])
            for way in WAYS:
                if way == "its task's" and setting == "unseen":
                    continue
                mine = np.array([figures[setting, way] for figures, _ in runs])
                lines.append(f"| {'nothing' if setting == 'unseen' else 'other rankings'} | {way} | "
                             + " | ".join(_cells(mine, served, way)) + " |")
        spoke = [f"{sum(speaks[setting] for _, speaks in runs)} of {crowds} (`{setting}`)" for setting in SETTINGS]
        lines += ["", f"The training let the scores speak in {' and '.join(spoke)} crowds."]
    return "\n".join(lines) + "\n"


def _cells(mine: Floats, served: Floats, way: str) -> list[str]:
    cells = []
    for figure in (NATS, PAIRS):
        mean, reach = interval(mine[:, figure])
        cells.append("-" if np.isnan(mean) else f"{mean:.3f} ± {reach:.3f}")
        apart, reach = interval(served[:, figure] - mine[:, figure])
        cells.append("" if way == "served" or np.isnan(apart) else f"{apart:+.3f} ± {reach:.3f}")
    return cells


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowds", type=int, default=6, help="of each kind")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "rankings.md")
    options = parser.parse_args(arguments)
    started = time.process_time()
    found = {kind: [measure(crowd(kind, seed)) for seed in range(options.crowds)] for kind in CROWDS}
    said = page(found, time.process_time() - started)
    print(said)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(said, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
