"""What tasks cost: seconds and memory of each part of a training by the number of tasks, from a thousand to a million.

    python -m benchmarks.task_cost [--most 1000000] [--out FILE.json]

Random votes, `VOTES` a task by `ANNOTATORS` annotators, and random tokens as wide as MiniLM's: tasks share a pool of
token arrays, which stands for the cache, so that a million of them need no 20 GB of disk. One thread, seconds of the
processor, each size in a process of its own whose memory is looked at after each part. Parts: the votes (from columns
to what base models are fitted on), the features (one pass: checked, mean tokens, statistics; beyond `resident_mb` they
are fetched batch by batch later), `STEPS` training steps of the light network out of the whole store and vote table,
and the pooled model at one penalty (up to `POOLED_TO` tasks: it holds 6 kB a task in double precision). An epoch is
extrapolated from the measured step, and sizes beyond the largest measured one are told apart from the table.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import machine
from model.base_models.pooled import fit_pooled
from model.config import LadderConfig
from model.data.dataset import TrainingSet, build_dataset
from model.data.spaces import SingleChoice, Value
from model.data.votes import Votes
from model.qumab.batches import TokenStore, VoteTable
from model.qumab.network import QueryNetwork
from model.qumab.slots import lay_out
from model.qumab.training import train, vote_weights

SIZES = (1_000, 10_000, 100_000, 1_000_000)
CLASSES, ANNOTATORS, VOTES, DIM, POOL = ("low", "middle", "high"), 20, 5, 384, 512
STEPS, POOLED_TO = 31, 100_000  # a thousand tasks are 31 steps
PAPER = (1_000_000, 10_000_000)  # where they are beyond what was measured


class Meter:
    """Seconds of the processor and MB held more, part by part."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}
        self._held, self._began = _resident_mb(), time.process_time()

    def lap(self, part: str) -> None:
        held, now = _resident_mb(), time.process_time()
        self.parts[part] = {"seconds": now - self._began, "mb": held - self._held}
        self._held, self._began = held, time.process_time()


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def votes_of(tasks: int, rng: np.random.Generator) -> Votes:
    """`VOTES` random votes on each task, by as many annotators."""
    first = rng.integers(0, ANNOTATORS, tasks)
    return Votes.from_columns(
        units=[f"t{task:07d}" for task in range(tasks)], annotators=[f"a{who:02d}" for who in range(ANNOTATORS)],
        values=[Value.of_class(name) for name in sorted(CLASSES)], unit=np.repeat(np.arange(tasks), VOTES),
        annotator=((first[:, None] + np.arange(VOTES)) % ANNOTATORS).ravel(),
        value=rng.integers(0, len(CLASSES), tasks * VOTES),
    )


def measure(tasks: int) -> dict[str, Any]:
    """All parts at one size."""
    torch.set_num_threads(1)
    rng, config, space = np.random.default_rng(0), LadderConfig(), SingleChoice(CLASSES)
    pool = [rng.standard_normal((int(length), DIM)).astype(np.float16) for length in rng.integers(20, 35, POOL)]
    meter = Meter()
    votes = votes_of(tasks, rng)
    data = TrainingSet(
        votes=votes, spaces={"label": space}, tokens=lambda units: [pool[int(unit[1:]) % POOL] for unit in units],
        heldout=lambda unit: False,
    )
    dataset = build_dataset(data, config)
    meter.lap("votes")
    store = TokenStore(
        dataset.units, data.tokens, trained=~dataset.heldout, resident_mb=config.resident_mb,
        device=torch.device("cpu"),
    )
    meter.lap("features")
    targets = dataset.controls["label"]
    weight = vote_weights(targets, config.network.tau)[None]
    learn = VoteTable({"label": targets}, {"label": weight})
    meter.lap("vote table")
    asked = rng.permutation(tasks)[: STEPS * config.network.batch_units]
    lesson = VoteTable({"label": targets}, {"label": weight * np.isin(targets.unit, asked)})
    check = VoteTable({"label": targets}, {"label": weight * np.isin(targets.unit, asked[:1])})
    network = QueryNetwork(1, ANNOTATORS, len(CLASSES), DIM, config.network, torch.Generator().manual_seed(0))
    meter.lap("making a lesson")
    train(
        network, lay_out({"label": space}), store, lesson, check, config.network, seed=0, epochs=1,
        progress=lambda share: None,
    )
    meter.lap("steps")
    if tasks <= POOLED_TO:
        fit_pooled(store.mean_tokens, targets, ANNOTATORS, 100.0)
        meter.lap("pooled")
    return {
        "tasks": tasks, "votes": len(votes), "trained": len(learn.units),
        "resident": 2 * DIM * int(store.lengths.sum()) <= config.resident_mb << 20,
        "batch": config.network.batch_units, "steps": -(-len(lesson.units) // config.network.batch_units),
        "parts": meter.parts,
    }


def markdown(found: Mapping[str, Any]) -> str:
    """The curve, what is measured and what is not."""
    rows = []
    for size in found["curve"]:
        parts, votes = size["parts"], size["votes"]
        step = parts["steps"]["seconds"] / size["steps"]
        held = parts["votes"]["mb"] + parts["vote table"]["mb"]
        pooled = f"{parts['pooled']['seconds']:.1f}" if "pooled" in parts else "not measured"
        rows.append(
            f"| {size['tasks']:,} | {votes:,} | {parts['votes']['seconds']:.2f} | {parts['features']['seconds']:.2f} | "
            f"{1e3 * step:.0f} | {step * size['tasks'] / size['batch'] / 60:.1f} | {pooled} | {held:.0f} | "
            f"{1e6 * held / votes:.0f} | {parts['features']['mb']:.0f}{'' if size['resident'] else ' (fetched)'} |"
        )
    return "\n".join([
        "# What tasks cost", "",
        f"`python -m benchmarks.task_cost`: {ANNOTATORS} annotators, {VOTES} votes a task, tokens of {DIM} dimensions, "
        f"20 to 34 a task, one CPU thread, seconds of the processor, load {found['machine']['load'][0]:.1f} at the "
        f"start. Steps are those of one network (as above 40,000 votes; below, several are trained side by side).", "",
        "| tasks | votes | votes read, s | features passed, s | ms a step | minutes an epoch (extrapolated) | "
        "pooled model, s | MB of votes | bytes a vote | MB of features |",
        "|---|---|---|---|---|---|---|---|---|---|", *rows, "",
        "MB of features are the tokens while they fit, and a mean token of each task (4 bytes a dimension) at any "
        "size; the rest is fetched batch by batch from the cache. Bytes a vote include the names of tasks; at the "
        "smallest size they are mostly what a first use of the code takes.", "",
        *(_on_paper(found["curve"][-1], tasks) for tasks in PAPER if tasks > found["curve"][-1]["tasks"]),
    ]) + "\n"


def _on_paper(last: Mapping[str, Any], tasks: int) -> str:
    """A sentence about a size that was not measured: straight lines through the largest that was."""
    parts, times = last["parts"], tasks / last["tasks"]
    step = parts["steps"]["seconds"] / last["steps"]
    held = parts["votes"]["mb"] + parts["vote table"]["mb"]
    return (
        f"- {tasks:,} tasks on paper, by the same lines: {times * parts['votes']['seconds'] / 60:.1f} minutes for the "
        f"votes, {times * parts['features']['seconds'] / 60:.0f} for the features, "
        f"{step * tasks / last['batch'] / 3600:.1f} hours an epoch, {times * held / 1e3:.1f} GB of votes and "
        f"{4 * DIM * tasks / 1e9:.1f} GB of mean tokens."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "task_cost.json")
    arguments = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "curve": []}
    for tasks in (size for size in SIZES if size <= arguments.most):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            found["curve"].append(fresh.submit(measure, tasks).result())
        print(f"{tasks:,} tasks are measured", flush=True)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        arguments.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main()
