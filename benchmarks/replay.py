"""Replay: votes come in over time, and a model that goes on from its predecessor is compared with one from scratch.

The tasks of a set arrive step by step, each with its votes: by the time of their first vote, or in a random order where
a set has no times, as none of the public ones has. In the middle one annotator stops for good, another gives the first
of their votes, and votes for one class appear that nobody gave before (its earlier votes are left out). A fifth of the
tasks is never trained on; both models are scored on all votes there at every step. Each vote carries the moment of its
arrival, so that a training can tell what is new, as it does in a project.

    python -m benchmarks.replay --data FOLDER --out replay.json [--device cuda] [--sets SET ...] [--steps 12]
    python -m benchmarks.replay --report replay.json ... [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation_sets import SETS, Source, text_encoder
from benchmarks.measure import machine
from model.config import LadderConfig
from model.data.metrics import correct, log_losses, paired_interval
from model.ensemble.ladder import Fit, Ladder, TrainingSet, fit
from model.evaluate.problem import Problem
from model.evaluate.report import table

Mask = NDArray[np.bool_]
DEFAULT = ("affective_text", "annotation_paradigms", "paraphrase_par")
HELDOUT = 0.2
STORY_S = 30 * 86_400.0  # how long a story takes: far longer than votes are late, so that steps can be told apart


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happens to a problem over time."""

    problem: Problem
    test: Mask  # (N,)
    moment: NDArray[np.float64]  # (N,) when each vote comes, 0 to 1; infinity: never
    timed: bool  # whether the order is that in which the votes were given
    stopped: int  # annotators
    newcomer: int
    new_class: int


def tell(problem: Problem, seed: int) -> Story:
    """Order the tasks; the busiest annotator stops, the next one begins, the second rarest class is new (the rarest may
    be too rare to be scored; of two classes it is the rarer)."""
    rng = np.random.default_rng([seed, 7])
    tasks = int(problem.task.max()) + 1
    order = rng.permutation(tasks) / tasks
    test = order[problem.task] >= 1.0 - HELDOUT
    timed = bool((problem.votes.time > 0.0).all())
    if timed:  # the same tasks are held out
        first = np.full(tasks, np.inf)
        np.minimum.at(first, problem.task, problem.votes.time)
        there = np.flatnonzero(order < 1.0 - HELDOUT)
        order[there[np.argsort(first[there], kind="stable")]] = np.sort(order[there])
    moment = order[problem.task] / (1.0 - HELDOUT)
    busy = np.argsort(-np.bincount(problem.votes.annotator), kind="stable")
    rare = np.argsort(problem.y.sum(0), kind="stable")
    stopped, newcomer = int(busy[0]), int(busy[1])
    new_class = int(rare[1] if len(rare) > 2 else rare[0])
    annotator, early = problem.votes.annotator, moment < 0.5
    never = (early & (annotator == newcomer)) | (~early & (annotator == stopped))
    if len(rare) > 2:  # with two classes nothing could be learned before
        never |= early & (problem.y[:, new_class] > 0.5)
    return Story(
        problem=replace(problem, votes=replace(problem.votes, time=STORY_S * (1.0 + moment))), test=test,
        moment=np.where(never | test, np.inf, moment), timed=timed, stopped=stopped, newcomer=newcomer,
        new_class=new_class,
    )


def replay(source: Source, name: str, steps: int, seed: int, config: LadderConfig) -> dict[str, Any]:
    """All steps of one set; JSON-able."""
    story = tell(source.problem(name), seed)
    rows, previous = [], None
    for step in range(1, steps + 1):
        there = story.moment < step / steps
        fresh, fresh_s = _timed_fit(story.problem, there, config, None, source.device)
        grown, grown_s = fresh, fresh_s
        if previous is not None:
            grown, grown_s = _timed_fit(story.problem, there, config, previous, source.device)
        previous = grown.ladder
        rows.append({
            "step": step, "votes": int(there.sum()), "seconds": {"incremental": grown_s, "scratch": fresh_s},
            "brief": grown.figures["brief"], "warm": grown.figures["warm"],
            **_scores(story, {"incremental": grown.ladder, "scratch": fresh.ladder}),
        })
    return {
        "dataset": name, "seed": seed, "steps": rows, "classes": len(story.problem.space.classes),
        "new_class": len(story.problem.space.classes) > 2, "timed": story.timed, "machine": machine(),
    }


def _timed_fit(
    problem: Problem, there: Mask, config: LadderConfig, previous: Ladder | None, device: str
) -> tuple[Fit, float]:
    """A fit and the seconds of the processor that it took: others may work on the same machine."""
    votes, began = problem.votes.select(there), time.process_time()
    data = TrainingSet(
        votes=votes, spaces={votes.controls[0]: problem.space}, tokens=problem.tokens, heldout=lambda unit: False,
        texts=problem.texts,
    )
    fitted = fit(data, config, previous=previous, device=device)
    return fitted, round(time.process_time() - began, 3)


def _scores(story: Story, ladders: dict[str, Ladder]) -> dict[str, Any]:
    """Accuracy and log-loss of both on all test votes, and on those of the three that the story is about."""
    problem, rows = story.problem, np.flatnonzero(story.test)
    votes, y = problem.votes, problem.y[rows]
    units = np.unique(votes.unit[rows])
    at = np.searchsorted(units, votes.unit[rows]), votes.annotator[rows]
    names = [votes.units[index] for index in units]
    tokens, texts = problem.tokens(names), problem.texts and problem.texts(names)
    p = {
        way: ladder.predict(tokens, votes.annotators, consensus=False, texts=texts)[votes.controls[0]].served[at]
        for way, ladder in ladders.items()
    }
    parts = {
        "all": np.ones(len(rows), np.bool_), "stopped": votes.annotator[rows] == story.stopped,
        "newcomer": votes.annotator[rows] == story.newcomer, "new_class": y[:, story.new_class] > 0.5,
    }
    found: dict[str, Any] = {part: {"votes": int(mask.sum())} for part, mask in parts.items()}
    for part, mask in parts.items():
        hit = {way: correct(problem.space, table[mask], y[mask]).astype(np.float64) for way, table in p.items()}
        loss = {way: log_losses(problem.space, table[mask], y[mask]) for way, table in p.items()}
        for way in p:
            found[part][way] = {"accuracy": float(hit[way].mean()), "log_loss": float(loss[way].mean())}
        gap = paired_interval(hit["incremental"] - hit["scratch"], problem.task[rows][mask])
        found[part]["difference"] = [gap.mean, gap.low, gap.high]
    return found


def report(runs: Sequence[dict[str, Any]]) -> str:
    """Markdown of all replays."""
    lines = [
        "# Replay: going on from the last version, or from scratch", "", *(__doc__ or "").split("\n\n")[1:2], "",
        f"Made {', '.join(sorted({_made(run) for run in runs}))}. Votes come {_orders(runs)}.", "",
        *_overview(runs), "",
        "Means are over the steps after the first. `n`: networks were trained from nothing, as the first time and "
        "where votes have doubled since the last time; both trainings are then the same but for the order of "
        "annotators. `b`: brief, over the units with new votes and some others. *Nats* are of the log-loss, from the "
        "middle on, because before it the test votes for a class that nobody has given yet outweigh all others. "
        "Intervals are over tasks; that of the worst step is not adjusted for choosing it. No version is held back by "
        "the gate here.", "",
    ]
    titles = ["votes", "accuracy, incremental", "from scratch", "difference, points", "log-loss, incremental",
              "from scratch", "seconds, incremental", "from scratch", "stopped one", "newcomer", "new class"]
    for run in runs:
        rows = [[
            f"{step['votes']}{_kind(step)}", _percent(step["all"]["incremental"]),
            _percent(step["all"]["scratch"]), _points(step["all"]["difference"]),
            *(f"{step['all'][way]['log_loss']:.3f}" for way in ("incremental", "scratch")),
            f"{step['seconds']['incremental']:.1f}", f"{step['seconds']['scratch']:.1f}",
            *(f"{_percent(step[part]['incremental'])} / {_percent(step[part]['scratch'])}"
              for part in ("stopped", "newcomer")),
            f"{_percent(step['new_class']['incremental'])} / {_percent(step['new_class']['scratch'])}"
            if run["new_class"] else "two classes",
        ] for step in run["steps"]]
        lines += [f"## {run['dataset']}, seed {run['seed']}", "", *table(titles, rows), ""]
    lines += [
        "Where neither `n` nor `b` stands, all units were gone through, for fewer epochs than from scratch, or, while "
        "a newcomer matters, for as many. Seconds are those of the processor, one thread. The last three columns: "
        "accuracy on the test votes of the annotator who stopped in the middle, of the one who began there, and of the "
        "class that appeared there; incremental / from scratch. Before the middle, log-losses hold the test votes for "
        "a class that nobody has given yet.",
    ]
    return "\n".join(lines) + "\n"


def _overview(runs: Sequence[dict[str, Any]]) -> list[str]:
    """A row for each run: what the steps after the first cost and how far they are from training from scratch."""
    titles = [
        "set", "seed", "steps (n, b)", "seconds, incremental", "from scratch", "share", "points, all steps",
        "points, without n", "nats, without n, from the middle on", "worst step", "last step without n",
        "share of brief steps", "their points",
    ]
    return table(titles, [_row(run) for run in runs])


def _row(run: dict[str, Any]) -> list[str]:
    steps = run["steps"][1:]
    warm = [step for step in steps if step["warm"]]
    late = [step for step in warm if 2 * step["step"] > len(run["steps"])]
    brief = [step for step in steps if step["brief"]]
    worst = min((step["all"]["difference"] for step in steps), key=lambda gap: float(gap[0]))
    return [
        run["dataset"], str(run["seed"]), f"{len(steps)} ({len(steps) - len(warm)}, {len(brief)})",
        *(f"{_seconds(steps, way):.0f}" for way in ("incremental", "scratch")), _share(steps), _mean_points(steps),
        _mean_points(warm), f"{np.mean([_nats(step) for step in late]):+.3f}" if late else "", _points(worst),
        _points(warm[-1]["all"]["difference"]) if warm else "", _share(brief), _mean_points(brief),
    ]


def _seconds(steps: Sequence[dict[str, Any]], way: str) -> float:
    return sum(float(step["seconds"][way]) for step in steps)


def _share(steps: Sequence[dict[str, Any]]) -> str:
    return f"{_seconds(steps, 'incremental') / _seconds(steps, 'scratch'):.2f}" if steps else ""


def _mean_points(steps: Sequence[dict[str, Any]]) -> str:
    return f"{100.0 * np.mean([step['all']['difference'][0] for step in steps]):+.1f}" if steps else ""


def _nats(step: dict[str, Any]) -> float:
    return float(step["all"]["incremental"]["log_loss"] - step["all"]["scratch"]["log_loss"])


def _made(run: dict[str, Any]) -> str:
    on = run["machine"]
    return f"{on['made'][:10]} on {on['cores']} cores ({on['machine']})"


def _orders(runs: Sequence[dict[str, Any]]) -> str:
    """In which order votes come, in words."""
    found = {True: "in the order of their times", False: "in a random order where a set has no times"}
    return " and ".join(found[timed] for timed in sorted({run["timed"] for run in runs}, reverse=True))


def _kind(step: dict[str, Any]) -> str:
    return " b" if step["brief"] else "" if step["warm"] else " n"


def _percent(figures: dict[str, float]) -> str:
    return f"{figures['accuracy']:.3f}"


def _points(gap: Sequence[float]) -> str:
    return f"{100 * gap[0]:+.1f} [{100 * gap[1]:+.1f}, {100 * gap[2]:+.1f}]"


def _one(item: tuple[Source, str, int, int]) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    source, name, steps, seed = item
    return replay(source, name, steps, seed, LadderConfig())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(DEFAULT), metavar="SET")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--tokens", type=Path, default=Path("replay-tokens"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--report", type=Path, nargs="+", help="write replay.md of these results instead of running")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    if options.report:
        runs = [run for path in options.report for run in json.loads(path.read_text(encoding="utf-8"))]
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "replay.md").write_text(report(runs), encoding="utf-8")
        return 0
    if options.data is None:
        parser.error("--data is needed to run")
    source = Source(
        data=options.data, tokens=options.tokens, encoder=options.encoder,
        encoder_id=text_encoder(options.encoder, "cpu").id, device=options.device,
    )
    for name in options.sets:
        source.problem(name)  # encodes
    items = [(source, name, options.steps, seed) for name in options.sets for seed in range(options.seeds)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        runs = []
        for run in pool.map(_one, items):
            runs.append(run)
            options.out.write_text(json.dumps(runs), encoding="utf-8")
            print(f"{run['dataset']}, seed {run['seed']} is done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
