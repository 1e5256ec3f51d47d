"""Is the confidence of the consensus true? Simulated projects and public sets, from votes alone and from a version.

    python -m benchmarks.consensus --data FOLDER [--tokens FOLDER] [--out benchmarks/results] [--jobs N]
                                   [--projects N] [--untrained]

Of each project a part of the votes is seen: 1 to 8 of a task, as many tasks have as `SEEN` says. The truth is the
majority of the full panel: of all simulated annotators, or of all votes of a public set in which (nearly) everybody
labelled each task. Tasks whose votes are all seen are left out, since nothing is foretold there. Four ways, each on the
same votes:

    Dawid-Skene      its posterior: what statistics showed before
    votes alone      what is shown before the first version
    version, plain   joint sampling of a fitted ladder as it comes
    version          the same, calibrated: what is delivered

Gap: mean distance between stated and true over ten bins, weighted by tasks. Beyond: the most that a bin of 20 tasks or
more lies outside its 95 % interval. By chance: the mean gap of somebody who states the same and is right just as often,
since few tasks a bin have a gap of their own. The table holds these, the accuracy of the label, and the targets (3
points).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.data.dataset import TrainingSet
from model.data.spaces import Space
from model.data.splits import is_heldout
from model.data.votes import Votes
from model.ensemble.first_votes import FirstVotes
from model.evaluate.problem import TokensOf
from model.quality.reliability import Bin, reliability, weighted_gap
from model.simulate import simulate_annotators

Floats = NDArray[np.float64]
WAYS = ("Dawid-Skene", "votes alone", "version, plain", "version")
SEEN = {1: 0.1, 2: 0.3, 3: 0.25, 4: 0.15, 6: 0.1, 8: 0.1}  # votes of a task -> share of tasks
SETS = ("affective_text", "annotation_paradigms", "paraphrase_par")
HELDOUT = 15.0  # percent of tasks
TARGET, FEWEST = 0.03, 20
SIMULATED: tuple[Mapping[str, Any], ...] = (
    {"units": 600, "annotators": 8, "classes": ("a", "b")},
    {"units": 600, "annotators": 12, "classes": ("a", "b", "c"), "strength": 0.6},
    {"units": 800, "annotators": 20, "classes": ("a", "b", "c"), "strength": 1.2, "leniency": 1.2},
    {"units": 600, "annotators": 10, "classes": ("a", "b"), "strength": 0.4, "temper": 3.0},
    {"units": 600, "annotators": 15, "classes": tuple("abcde"), "temper": 2.5},
    {"units": 600, "annotators": 30, "classes": ("a", "b"), "strength": 2.0},
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A project to be made."""

    name: str
    seed: int
    simulated: int  # index into SIMULATED; -1: a public set
    data: Path | None
    tokens: Path
    trained: bool


@dataclass(frozen=True, kw_only=True)
class Project:
    """All votes of a control, and its content."""

    votes: Votes
    space: Space
    tokens: TokensOf


def project_of(job: Job) -> Project:
    """Simulated, or read from a folder and encoded once."""
    if job.simulated >= 0:
        made = simulate_annotators(np.random.default_rng(job.seed), **SIMULATED[job.simulated])
        return Project(votes=made.votes, space=made.space, tokens=lambda names: [made.tokens[each] for each in names])
    from benchmarks.evaluation_sets import Source

    assert job.data is not None
    source = Source(data=job.data, tokens=job.tokens, encoder="minilm", encoder_id="minilm", device="cpu")
    problem = source.problem(job.name)
    return Project(votes=problem.votes, space=problem.space, tokens=problem.tokens)


def seen_of(votes: Votes, seed: int) -> NDArray[np.bool_]:
    """(N,) the votes that are seen: as many of each unit as `SEEN` says, at random."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(votes))
    order = order[np.argsort(votes.unit[order], kind="stable")]
    rank = np.empty(len(votes), np.int64)
    rank[order] = np.arange(len(votes)) - np.searchsorted(votes.unit[order], votes.unit[order])
    wanted = rng.choice(list(SEEN), size=len(votes.units), p=list(SEEN.values()))
    return np.asarray(rank < wanted[votes.unit])


def counts_of(votes: Votes, space: Space) -> Floats:
    """(U, C) votes of each unit."""
    found = np.zeros((len(votes.units), len(space.classes)))
    label = np.array([space.encode(value).argmax() for value in votes.values], np.int64)[votes.value]
    np.add.at(found, (votes.unit, label), 1.0)
    return found


def run(job: Job) -> dict[str, Any]:
    """The bins of every way, and how often its label is the majority."""
    project = project_of(job)
    votes, space = project.votes, project.space
    seen = votes.select(seen_of(votes, job.seed))
    whole, part = counts_of(votes, space), counts_of(seen, space)
    scored = (part.sum(1) > 0) & (part.sum(1) < whole.sum(1))
    top = whole == whole.max(1, keepdims=True)
    truth = top / top.sum(1, keepdims=True)
    found = {way: _scored(p[scored], truth[scored]) for way, p in _ways(job, project, seen).items()}
    return {"project": job.name, "seed": job.seed, "tasks": int(scored.sum()),
            "seen": float(part[scored].sum(1).mean()), "panel": float(whole[scored].sum(1).mean()), "ways": found}


def _ways(job: Job, project: Project, seen: Votes) -> dict[str, Floats]:
    """way -> probabilities of the classes (U, C)."""
    control, space, units = seen.controls[0], project.space, seen.units
    answers = AnswerMatrix.from_codes(
        units=units, annotators=seen.annotators, classes=space.classes, unit=seen.unit, annotator=seen.annotator,
        label=np.array([space.encode(value).argmax() for value in seen.values], np.int64)[seen.value])
    data = TrainingSet(votes=seen, spaces={control: space}, tokens=project.tokens,
                       heldout=lambda unit: is_heldout(job.name, unit, HELDOUT))
    found = {
        "Dawid-Skene": np.asarray(DawidSkene().fit(answers).posterior),
        "votes alone": FirstVotes(
            replace(data, heldout=lambda unit: False), LadderConfig()).predict(units, (), seen)[control].consensus,
    }
    if not job.trained:
        return found
    from model.ensemble.ladder import fit

    ladder = fit(data, LadderConfig(seed=job.seed)).ladder
    plain = ladder.having({name: replace(state, calibration=None) for name, state in ladder.controls.items()})
    for way, each in (("version, plain", plain), ("version", ladder)):
        found[way] = each.predict(project.tokens(units), (), units=units, given=seen)[control].consensus
    return found


def _scored(p: Floats, truth: Floats) -> dict[str, Any]:
    stated, right = p.max(1), truth[np.arange(len(p)), p.argmax(1)]
    return {"stated": stated.tolist(), "right": right.tolist()}


def bins_of(about: Mapping[str, Any]) -> list[Bin]:
    """The reliability of one way."""
    return reliability(np.array(about["stated"]), np.array(about["right"]))


def beyond(bins: Sequence[Bin]) -> float:
    """The most that a bin with enough tasks lies outside its interval."""
    return max((each.beyond for each in bins if each.labels >= FEWEST), default=0.0)


def by_chance(stated: Floats, *, draws: int = 200) -> float:
    """The mean gap where each of these confidences (B,) is true."""
    rng = np.random.default_rng(0)
    return float(np.mean([weighted_gap(reliability(stated, (rng.random(len(stated)) < stated).astype(np.float64)))
                          for _ in range(draws)]))


def report(rows: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown page."""
    ways = [way for way in WAYS if way in rows[0]["ways"]]
    lines = ["# Is the confidence of the consensus true?", "",
             "Made by `python -m benchmarks.consensus`; its first lines say what is measured. In each cell: gap "
             "(by chance) / beyond in points, then the share of labels that are the majority.", "",
             f"| project | tasks | seen of panel | {' | '.join(ways)} |", "| --- " * (3 + len(ways)) + "|"]
    for row in rows:
        cells = [_cell(row["ways"][way]) for way in ways]
        lines.append(f"| {row['project']} ({row['seed']}) | {row['tasks']} | {row['seen']:.1f} of {row['panel']:.1f} | "
                     f"{' | '.join(cells)} |")
    lines += ["", "## Targets: gap at most 3 points; no bin more than 3 points beyond its interval", ""]
    for way in ways:
        good = [weighted_gap(bins_of(row["ways"][way])) <= TARGET for row in rows]
        inside = [beyond(bins_of(row["ways"][way])) <= TARGET for row in rows]
        lines.append(f"- {way}: gap hit in {sum(good)} of {len(rows)}, bins in {sum(inside)} of {len(rows)}")
    lines += ["", "## All projects together", ""]
    for way in ways:
        together = {key: [each for row in rows for each in row["ways"][way][key]] for key in ("stated", "right")}
        lines += [f"### {way}: gap {100 * weighted_gap(bins_of(together)):.1f} points", "",
                  "| stated | tasks | on average | true | 95 % interval |", "| --- | --- | --- | --- | --- |"]
        lines += [f"| {each.low:.0%} to {each.high:.0%} | {each.labels} | {each.stated:.1%} | {each.right.value:.1%} | "
                  f"{each.right.low:.1%} to {each.right.high:.1%} |" for each in bins_of(together)]
        lines.append("")
    return "\n".join(lines)


def _cell(about: Mapping[str, Any]) -> str:
    bins = bins_of(about)
    chance = by_chance(np.array(about["stated"]))
    return (f"{100 * weighted_gap(bins):.1f} ({100 * chance:.1f}) / {100 * beyond(bins):.1f}, "
            f"{np.mean(about['right']):.1%}")


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Stated against true of all projects together, one panel a way."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ways = [way for way in WAYS if way in rows[0]["ways"]]
    figure, axes = pyplot.subplots(1, len(ways), figsize=(3.6 * len(ways), 3.6), sharey=True, squeeze=False)
    for at, way in zip(axes[0], ways, strict=True):
        at.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for row in rows:
            bins = [each for each in bins_of(row["ways"][way]) if each.labels >= FEWEST]
            at.plot([each.stated for each in bins], [each.right.value for each in bins], marker=".", linewidth=0.8,
                    label=f"{row['project']} ({row['seed']})")
        at.set(title=way, xlabel="stated", xlim=(0.2, 1.02), ylim=(0.2, 1.02))
    axes[0][0].set_ylabel("share that is the majority")
    axes[0][-1].legend(fontsize=5)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def jobs_of(arguments: argparse.Namespace) -> list[Job]:
    """Simulated projects, then sets."""
    common = {"data": arguments.data, "tokens": arguments.tokens, "trained": not arguments.untrained}
    found = [Job(name=f"simulated {at % len(SIMULATED) + 1}", seed=arguments.seed + at, simulated=at % len(SIMULATED),
                 **common) for at in range(arguments.projects)]
    return found + [Job(name=name, seed=arguments.seed, simulated=-1, **common)
                    for name in (SETS if arguments.data is not None else ())]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the public sets, one folder each; without it none")
    parser.add_argument("--tokens", type=Path, default=Path("local/tokens"), help="where encoded texts are kept")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--projects", type=int, default=len(SIMULATED), help="simulated projects")
    parser.add_argument("--seed", type=int, default=7_000)
    parser.add_argument("--untrained", action="store_true", help="votes alone; no version is trained")
    arguments = parser.parse_args(argv)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(run, jobs_of(arguments)))
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = report(rows)
    (arguments.out / "consensus.md").write_text(text, encoding="utf-8")
    (arguments.out / "consensus.json").write_text(json.dumps(rows), encoding="utf-8")
    draw(rows, arguments.out / "consensus.png")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
