"""Statistics of a large project: what a computation takes, beside one Dawid-Skene fit on the same votes.

    python -m benchmarks.statistics_job [--tasks 10000] [--annotators 20] [--votes 50000] [--out benchmarks/results]

Two crowds: one whose annotators are mostly right, on which Dawid-Skene is done after a few iterations, and one whose
annotators are often wrong. The computation goes from votes in memory to documents, with the consensus that is shown,
which reads votes and tasks once more; what else the database and JSON take is shown beside it. Medians of processor
seconds, which say the same on a busy machine as on an idle one; a fit and a computation take turns, and their ratio is
that of one turn. "20 changed votes" is a run of the whole job in a process that has computed before, "nothing changed"
likewise. Pages are those of `benchmarks.site`, in seconds of the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import site
from benchmarks.measure import Line, machine, median

CROWDS = {"mostly right": (0.6, 0.95), "often wrong": (0.3, 0.8)}
REPEATS = 7
MOST = 50.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--annotators", type=int, default=20)
    parser.add_argument("--votes", type=int, default=50_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    where, rows = machine(), []
    for name, right in CROWDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            rows.append({"crowd": name, **measure(Path(scratch), options, right)})
        print(json.dumps(rows[-1]), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        pages = site.run(Path(scratch) / "pages", rounds=90).lines
    text = report(rows, pages, where, options)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "statistics.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def measure(folder: Path, options: Any, right: tuple[float, float]) -> dict[str, float]:
    """Seconds of every part, for one crowd in a database of its own."""
    from backend.services.gaps.answers import board_of
    from backend.services.statistics.agreed import agreed
    from backend.services.statistics.codec import encode
    from backend.services.statistics.compute import compute
    from backend.services.statistics.material import read_material, stamp_of
    from backend.services.statistics.shown import Memory
    from backend.services.statistics.subject import Judge
    from model.crowd.answers import AnswerMatrix
    from model.crowd.dawid_skene import DawidSkene
    from tests.backend.services.statistics.crowds import CLASSES, KEY, START, Project

    project = Project(folder)
    votes = _votes(options, right)
    project.give(votes)
    settings, registry = project.settings, SimpleNamespace(evidence=lambda version: None)
    features: Any = None  # before any version nothing is read but votes

    def silent(done: float, note: str) -> None:
        pass

    def read() -> Any:
        record = project.store.projects.get(KEY)
        assert record is not None
        stamp = stamp_of(project.store, record, settings)
        return read_material(project.store, registry, settings, record, stamp, START)  # type: ignore[arg-type]

    def documents(material: Any, judge: Any) -> Any:
        board = board_of(project.store, features, material.project, material.config, None,
                         echo_weight=settings.echo_weight)
        shown = agreed(board, Memory(), echo_weight=settings.echo_weight, progress=silent,
                       heldout_percent=settings.heldout_percent)
        return compute(material, judge, tasks_present=options.tasks, progress=silent, consensuses=shown)

    material = read()
    answers = AnswerMatrix.from_votes(material.given.of_control("label"), classes=CLASSES)
    found = documents(material, Judge())
    fits, computed = [], []
    for _ in range(REPEATS):
        fits.append(median([_seconds(lambda: DawidSkene().fit(answers)) for _ in range(3)]))
        computed.append(_seconds(lambda: documents(read_once(material), Judge())))
    ratios = [whole / one for whole, one in zip(computed, fits, strict=True)]
    bodies = {(kind.value, part): encode(each) for (kind, part), each in found.items()}
    taken = {
        "dawid_skene_s": median(fits), "iterations": DawidSkene().fit(answers).iterations, "read_s": _median(read),
        "compute_s": median(computed), "ratio": median(ratios), "lowest": min(ratios), "highest": max(ratios),
        "encode_s": _median(lambda: [encode(each) for each in found.values()]),
        "write_s": _median(lambda: project.store.statistics.replace(KEY, "x", bodies)),
        "megabytes": sum(map(len, bodies.values())) / 1e6,
    }
    project.run()
    taken["unchanged_s"] = _median(project.run)
    changed = []
    for repeat in range(REPEATS):
        project.give(_changed(votes, repeat))
        changed.append(_seconds(project.run))
    taken["after_20_votes_s"] = median(changed)
    project.store.close()
    return taken


def read_once(material: Any) -> Any:
    """The same material without what it remembers, so that each repeat computes all of it."""
    from dataclasses import replace

    return replace(material)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def _median(call: Callable[[], object]) -> float:
    call()
    return median([_seconds(call) for _ in range(REPEATS)])


def _votes(options: Any, right: tuple[float, float]) -> list[Any]:
    """As many votes a task as there are, by different annotators, each with a time and a duration."""
    from model.data.spaces import Value
    from tests.backend.services.statistics.crowds import CLASSES, vote

    rng = np.random.default_rng(0)
    truth, skill = rng.integers(3, size=options.tasks), rng.uniform(*right, options.annotators)
    each = max(options.votes // options.tasks, 1)
    values = [Value.of_class(name) for name in CLASSES]
    votes: list[Any] = []
    for task in range(options.tasks):
        for who in rng.choice(options.annotators, each, replace=False):
            code = int(truth[task]) if rng.random() < skill[who] else int(rng.integers(3))
            votes.append(vote(task + 1, str(who + 1), values[code], len(votes), lead=float(rng.lognormal(1.5, 0.5))))
    return votes


def _changed(votes: Sequence[Any], repeat: int) -> list[Any]:
    """All votes on the tasks of twenty votes, each of which now says something else."""
    from dataclasses import replace
    from datetime import timedelta

    from model.data.spaces import Value
    from tests.backend.services.statistics.crowds import CLASSES

    step = max(len(votes) // 20, 1)
    turned = {(each.task_id, each.annotator) for each in votes[repeat % step :: step][:20]}
    tasks = {task for task, _ in turned}
    other = [Value.of_class(name) for name in CLASSES]
    return [
        replace(each, value=other[(CLASSES.index(str(each.value.data)) + 1 + repeat % 2) % 3],
                updated_at=each.updated_at + timedelta(days=1 + repeat))
        if (each.task_id, each.annotator) in turned else each
        for each in votes if each.task_id in tasks
    ]  # fmt: skip


def report(rows: Sequence[dict[str, Any]], pages: Sequence[Line], where: dict[str, Any], options: Any) -> str:
    """Markdown."""
    lines = [
        "# Statistics of a live project", "",
        f"`python -m benchmarks.statistics_job`, {where['made'][:16].replace('T', ' ')} UTC, {where['cores']} cores, "
        f"one thread, load {where['load'][0]:.1f}. {options.tasks:,} tasks, {options.annotators} annotators, "
        f"{options.votes:,} votes with times and durations; no version yet. Processor time.", "",
        f"| | {' | '.join(row['crowd'] for row in rows)} |", "|---" * (len(rows) + 1) + "|",
    ]

    def line(what: str, cell: Callable[[dict[str, Any]], str]) -> None:
        lines.append(f"| {what} | {' | '.join(cell(row) for row in rows)} |")

    line("one Dawid-Skene fit", lambda row: f"{row['dawid_skene_s'] * 1000:.1f} ms ({row['iterations']} iterations)")
    line("first computation, votes in memory to consensus and documents", lambda row: f"{row['compute_s']:.2f} s")
    line(f"as Dawid-Skene fits (target at most {MOST:g})", _ratio)
    line("reading the votes from SQLite", lambda row: f"{row['read_s']:.2f} s")
    line("documents to JSON", lambda row: f"{row['encode_s']:.2f} s ({row['megabytes']:.1f} MB)")
    line("writing them", lambda row: f"{row['write_s'] * 1000:.0f} ms")
    line("the whole job after 20 changed votes", lambda row: f"{row['after_20_votes_s']:.2f} s")
    line("the whole job where nothing changed", lambda row: f"{row['unchanged_s'] * 1000:.0f} ms")
    lines += [
        "", "Nothing is computed where the version of the documents is that of the votes, names, checks and published "
        "version. After new votes, what crowd methods found of a control whose votes did not change (consensus, "
        "faults, abilities, surprise) is kept in the process; a control with new votes is judged anew, since each vote "
        "moves the consensus and with it every annotator's figures. Tables are written anew.",
        "", "## Pages", "", *(f"- {each.what}: {each.measured:.3g} {each.unit}"
                              f"{f' ({each.target})' if each.target else ''}" for each in pages),
    ]
    return "\n".join(lines) + "\n"


def _ratio(row: dict[str, Any]) -> str:
    verdict = "hit" if row["ratio"] <= MOST else "**miss**"
    return f"{row['ratio']:.0f} ({row['lowest']:.0f} to {row['highest']:.0f}; {verdict})"


if __name__ == "__main__":
    sys.exit(main())
