"""Why votes differ: true against named cause on simulated projects and the demo's annotators, beside the rule before.

    python -m benchmarks.disagreements [--projects 40] [--first 5000] [--jobs 2] [--demo 8] [--out benchmarks/results]

Projects are those of `benchmarks.disagreement_crowds`, four kinds, with 2, 3, 5 and 8 votes a task; thresholds were
chosen on seeds below 100. Every vote on a divided task that is not the task's class counts in the row of its true
cause; one that is named right is in the column of the same name. A vote of the smaller camp that most of the votes on
its task happen to share has nothing to be named ("as the others"). The rule before names whole tasks, and everything
that is not two readings "errors"; that column is the best that can be said of it for habits and for slips at once.

In the demo, what a persona means is what they say of a message in most of 21 draws; 5 % of their votes are replaced by
another label. A lone persona of five that means something else has a habit, two or more have two readings. Content
is known to nobody here: an own model of each annotator adds to this in the product, and is not used.

Intervals are 95 %, by resampling projects.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.disagreement_crowds import HABIT, KINDS, NONE, READINGS, SLIP, Crowd, crowd
from benchmarks.disagreements_before import NAMES, named_before
from benchmarks.measure import machine

VOTES = (2, 3, 5, 8)
TRUE = ("right", "habit", "two readings", "slip")
NAMED = ("as the others", "habit", "two readings", "slip", "cannot tell")
DEMO_SLIPS = 0.05
Table = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=40, help="of each kind and number of votes")
    parser.add_argument("--first", type=int, default=5000, help="first seed")
    parser.add_argument("--demo", type=int, default=8, help="draws of the demo's votes; 0 leaves it out")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.projects)
    work: list[tuple[str, int, int]] = [(kind, votes, seed) for kind in KINDS for votes in VOTES for seed in seeds]
    work += [("demo", 5, seed) for seed in range(options.first, options.first + options.demo)]
    with ProcessPoolExecutor(options.jobs) as pool:
        tables = list(pool.map(_measured, work, chunksize=4))
    runs: dict[tuple[str, int], list[tuple[Table, Table]]] = {}
    for (kind, votes, _), table in zip(work, tables, strict=True):
        runs.setdefault((kind, votes), []).append(table)
    where = machine()
    command = f"--projects {options.projects} --first {options.first} --demo {options.demo}"
    text = report(runs, f"`python -m benchmarks.disagreements {command}`, {where['made'][:16].replace('T', ' ')} UTC.")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "disagreements.md").write_text(text, encoding="utf-8")
    (options.out / "disagreements.json").write_text(json.dumps([
        {"kind": kind, "votes": votes, "ours": sum(ours for ours, _ in each).tolist(),
         "before": sum(before for _, before in each).tolist()} for (kind, votes), each in runs.items()
    ]), encoding="utf-8")
    print(text)
    return 0


def _measured(one: tuple[str, int, int]) -> tuple[Table, Table]:
    kind, votes, seed = one
    return measure(demo_crowd(seed) if kind == "demo" else crowd(seed, kind, votes))


def measure(made: Crowd) -> tuple[Table, Table]:
    """(4, 5) true against named causes of the votes on divided units, and (4, 4) the same by the rule before."""
    from model.crowd.dawid_skene import DawidSkene
    from model.crowd.leave_one_out import posterior_without
    from model.quality.causes import causes

    answers, method = made.answers, DawidSkene()
    fitted = method.fit(answers)
    found = causes(answers, posterior_without(method, answers, fitted))
    differs = found.instead >= 0
    true = np.where((made.cause == NONE) & made.double[answers.unit] & differs, READINGS, made.cause)
    seen = found.divided[answers.unit]
    ours, before = np.zeros((len(TRUE), len(NAMED))), np.zeros((len(TRUE), len(NAMES)))
    np.add.at(ours, (true[seen], np.where(differs, found.vote, 0)[seen]), 1.0)
    np.add.at(before, (true[seen], named_before(answers, fitted)[answers.unit][seen]), 1.0)
    return ours, before


def demo_crowd(seed: int) -> Crowd:
    """All votes of the demo's personas on its messages, with slips of ours."""
    from demo.personas import PERSONAS
    from demo.sample import LABELS, load
    from model.crowd.answers import AnswerMatrix

    rng, messages, c = np.random.default_rng(seed), load(), len(LABELS)
    means = np.array([[np.bincount([
        LABELS.index(persona.label(message, draw)) for draw in range(21)
    ], minlength=c).argmax() for persona in PERSONAS] for message in messages])  # fmt: skip
    counts = np.stack([(means == k).sum(axis=1) for k in range(c)], axis=1)
    truth, most = counts.argmax(axis=1), counts.max(axis=1)
    slipped = rng.random(means.shape) < DEMO_SLIPS
    label = np.where(slipped, (means + rng.integers(1, c, means.shape)) % c, means)
    lone = most[:, None] >= len(PERSONAS) - 1
    cause = np.select([slipped, means == truth[:, None], lone], [SLIP, NONE, HABIT], READINGS)
    cause = np.where(label == truth[:, None], NONE, cause)
    unit, annotator = np.nonzero(np.ones(means.shape, np.bool_))
    answers = AnswerMatrix.from_codes(
        units=[message.id for message in messages], annotators=[persona.email for persona in PERSONAS], classes=LABELS,
        unit=unit, annotator=annotator, label=label[unit, annotator],
    )
    return Crowd(answers=answers, cause=cause[unit, annotator], truth=truth, double=most < len(PERSONAS) - 1)


def report(runs: dict[tuple[str, int], list[tuple[Table, Table]]], head: str) -> str:
    """Markdown with everything that was measured."""
    lines = ["# Why votes differ", "", head, "", *_rates(runs)]
    for votes in VOTES:
        each = [table for kind in KINDS for table in runs[kind, votes]]
        lines += ["", f"## {votes} votes a task", "", *_table(each)]
    if ("demo", 5) in runs:
        lines += ["", "## The demo's annotators, five votes a task", "", *_table(runs["demo", 5])]
    return "\n".join([*lines, ""])


def _rates(runs: dict[tuple[str, int], list[tuple[Table, Table]]]) -> Iterator[str]:
    yield "| votes, kind | projects | habits right | slips right | precision of *slip* | readings right | cannot tell |"
    yield "|---" * 7 + "|"
    for votes in VOTES:
        for kind in (*KINDS, "all kinds"):
            each = [table for name in KINDS if kind in (name, "all kinds") for table in runs[name, votes]]
            yield _rate(f"{votes}, {kind}", np.array([ours for ours, _ in each]))
    if ("demo", 5) in runs:
        yield _rate("5, the demo", np.array([ours for ours, _ in runs["demo", 5]]))


def _rate(name: str, ours: Table) -> str:
    cells = [
        _share(ours[:, HABIT, HABIT], ours[:, HABIT].sum(axis=1)),
        _share(ours[:, SLIP, SLIP], ours[:, SLIP].sum(axis=1)),
        _share(ours[:, SLIP, SLIP], ours[:, :, SLIP].sum(axis=1)),
        _share(ours[:, READINGS, READINGS], ours[:, READINGS, 1:].sum(axis=1)),
        _share(ours[:, :, 4].sum(axis=1), ours[:, :, 1:].sum(axis=(1, 2))),
    ]
    return f"| {name} | {len(ours)} | {' | '.join(cells)} |"


def _share(part: Table, whole: Table) -> str:
    """"0.91 (0.89 to 0.93)", by resampling projects; a dash where there are none."""
    if not whole.sum():
        return "–"
    picks = np.random.default_rng(0).integers(len(part), size=(1000, len(part)))
    drawn = part[picks].sum(axis=1) / np.maximum(whole[picks].sum(axis=1), 1e-9)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{part.sum() / whole.sum():.3f} ({low:.3f} to {high:.3f})"


def _table(each: Sequence[tuple[Table, Table]]) -> Iterator[str]:
    """Counts of votes on divided tasks."""
    ours, before = sum(table for table, _ in each), sum(table for _, table in each)
    yield f"| true cause | {' | '.join(NAMED)} | | {' | '.join(f'before: {name}' for name in NAMES[1:])} |"
    yield "|---" * (len(NAMED) + len(NAMES) + 1) + "|"
    for row, name in enumerate(TRUE):
        mine, old = np.asarray(ours)[row], np.asarray(before)[row, 1:]
        yield f"| {name} | {' | '.join(f'{n:.0f}' for n in mine)} | | {' | '.join(f'{n:.0f}' for n in old)} |"


if __name__ == "__main__":
    sys.exit(main())
