"""Accuracy of the aggregators beside their peers', and what the audit finds on real crowds.

    python -m benchmarks.crowd_quality DATA [--peers PYTHON] [--only PART ...] [--out benchmarks/results]

DATA holds the measuring sets, which are not part of the project: `simulated/<setting>` in peerannot's format, and
`bluebirds_labels`, `product_match` and `annotation_paradigms`. Methods that draw are means over 20 seeds (5
on product_match). Since some defaults were chosen with the six simulated sets in view, 20 fresh crowds of each setting
are drawn as well. Parts that are not named are kept from the last time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.crowd_audit import audit
from benchmarks.crowd_child import Columns
from benchmarks.crowd_quality_report import CROWDLAB, page
from benchmarks.measure import machine
from model.crowd import AGGREGATORS, AnswerMatrix, make
from model.crowd.assign import Assignment
from model.crowd.simulate import Crowd, simulate

SEEDS, SEEDS_LARGE = 20, 5
LARGE = "product_match"
ROOT = Path(__file__).resolve().parent.parent
SIMULATED = ("independent", "imbalance_nofb", "imbalance", "student_teacher", "discrete_difficulty", "hammer_spammer")
REAL = ("bluebirds_labels", LARGE)
MODEL_IS_RIGHT = 0.73  # the simulated classifier that CROWDLAB gets

# The settings of peerannot's paper, as in the metadata of the six sets.
FRESH: dict[str, tuple[str, Crowd]] = {
    "independent": ("independent-confusion", Crowd(assignment=Assignment(feedback=10))),
    "imbalance_nofb": ("independent-confusion", Crowd(assignment=Assignment(imbalance_votes=True))),
    "imbalance": ("independent-confusion", Crowd(assignment=Assignment(feedback=10, imbalance_votes=True))),
    "student_teacher": ("student-teacher", Crowd(ratio=0.8, assignment=Assignment(feedback=10))),
    "discrete_difficulty": (
        "discrete-difficulty", Crowd(n_annotators=100, ratio=0.35, assignment=Assignment(feedback=10))),
    "hammer_spammer": ("hammer-spammer", Crowd(n_annotators=100, ratio=0.4, assignment=Assignment(feedback=10))),
}

OURS: dict[str, tuple[str, dict[str, object]]] = {
    **{name: (name, {}) for name, method in AGGREGATORS.items() if not method.needs_probabilities},
    "dawid-skene, hardly smoothed (.01, trust 0)": ("dawid-skene", {"smoothing": 0.01, "trust": 0.0}),
    **{f"dswc, {n} clusters": ("dswc", {"n_clusters": n}) for n in (2, 5, 10)},
}
PARTS = ("ours", "fresh", "audit", "peers", "fresh-peers", "slow-peers")
Table = dict[str, dict[str, list[float] | str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A peer's method; `large`: whether it is quick enough for the largest set."""

    measure: str
    settings: dict[str, object] = field(default_factory=dict)
    seed: str = ""  # the setting that seeds it; "" for what does not draw
    seeds: int = 1
    large: bool = False
    slow: bool = False  # seconds on two thousand votes
    fresh: bool = False  # run on the fresh crowds as well

    @property
    def label(self) -> str:
        said = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.measure}({said})" if said else self.measure


PEERS = (
    Peer(measure="crowd-kit.MajorityVote", large=True, fresh=True),
    Peer(measure="crowd-kit.DawidSkene", large=True, fresh=True),
    Peer(measure="crowd-kit.OneCoinDawidSkene", large=True), Peer(measure="crowd-kit.GLAD", slow=True),
    Peer(measure="crowd-kit.MACE", slow=True), Peer(measure="crowd-kit.MMSR", large=True),
    Peer(measure="crowd-kit.KOS", large=True),
    Peer(measure="peerannot.MajorityVoting", seed="seed", seeds=SEEDS, large=True), Peer(measure="peerannot.NaiveSoft"),
    Peer(measure="peerannot.DawidSkene"),
    *(Peer(measure="peerannot.DawidSkeneClust", settings={"L": n}, slow=True) for n in (2, 5, 10)),
    Peer(measure="peerannot.GLAD", slow=True), Peer(measure="peerannot.WDS"),
    Peer(measure="peerannot.IWMV", seed="seed", seeds=5), Peer(measure="peerannot.Wawa", seed="seed", seeds=5),
    Peer(measure="peerannot.TwoThird"),
    Peer(measure="peerannot.PlantNet"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A set with its truth, -1 where that is unknown."""

    answers: AnswerMatrix
    truth: np.ndarray
    path: Path  # the same as Columns

    @classmethod
    def of(cls, answers: AnswerMatrix, truth: np.ndarray, path: Path) -> Case:
        Columns(
            unit=answers.unit, annotator=answers.annotator, label=answers.label, truth=truth.astype(np.int32),
            n_annotators=len(answers.annotators), n_classes=len(answers.classes),
        ).save(path)
        return cls(answers=answers, truth=truth, path=path)

    def accuracy(self, label: np.ndarray) -> float:
        known = self.truth >= 0
        return float(np.mean(label[known] == self.truth[known]))


def load(data: Path, name: str, scratch: Path) -> Case:
    from backend.formats import open_dataset  # the rest needs numpy and scipy only

    dataset = open_dataset(data / name)
    control = dataset.control()
    answers = AnswerMatrix.from_votes(dataset.votes, control, classes=dataset.classes_of(control))
    return Case.of(answers, answers.gold_codes(dataset.gold[control]), scratch / f"{Path(name).name}.npz")


def draw(setting: str, seed: int, scratch: Path) -> Case:
    strategy, wishes = FRESH[setting]
    crowd = simulate(strategy, wishes, np.random.default_rng([seed, 2026]))
    answers = AnswerMatrix.from_votes(crowd.votes, classes=[str(k) for k in range(crowd.n_classes)])
    return Case.of(answers, crowd.truth[np.array(answers.units, np.int64)], scratch / f"{setting}-{seed}.npz")


def ours(case: Case, name: str, settings: Mapping[str, object], *, seeds: int) -> list[float]:
    """Accuracies, one a seed for what draws; nothing where the method does not suit the set."""
    method = AGGREGATORS[name]
    if method.binary_only and len(case.answers.classes) > 2:
        return []
    each: Sequence[dict[str, object]] = [{"seed": seed} for seed in range(seeds)] if method.stochastic else [{}]
    return [case.accuracy(make(name, **settings, **seed).fit(case.answers).label) for seed in each]


def ours_crowdlab(case: Case) -> list[float]:
    """With a classifier that is simulated anew for each seed, where all is known of the truth."""
    if (case.truth < 0).any():
        return []
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        n_units, _, n_classes = case.answers.shape
        other = (case.truth + rng.integers(1, n_classes, size=n_units)) % n_classes
        named = np.where(rng.random(n_units) < MODEL_IS_RIGHT, case.truth, other)
        belief = np.full((n_units, n_classes), (1.0 - MODEL_IS_RIGHT) / (n_classes - 1))
        belief[np.arange(n_units), named] = MODEL_IS_RIGHT
        found.append(case.accuracy(make("crowdlab").fit(case.answers, probabilities=belief).label))
    return found


def theirs(python: Path, wishes: Sequence[tuple[Case, Peer]], scratch: Path) -> list[list[float] | str]:
    """For each wish the accuracies over the peer's seeds, or the name of the error."""
    plan = [
        {"votes": str(case.path), "measure": peer.measure,
         "settings": {**peer.settings, **({peer.seed: seed} if peer.seed else {})}}
        for case, peer in wishes for seed in range(peer.seeds)
    ]
    path = scratch / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    done = subprocess.run([str(python), "-m", "benchmarks.crowd_peers", str(path)], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    rows = iter([json.loads(line) for line in done.stdout.splitlines()])
    found: list[list[float] | str] = []
    for _, peer in wishes:
        answers = [next(rows) for _ in range(peer.seeds)]
        failed = [row["failure"] for row in answers if "failure" in row]
        found.append(failed[0] if failed else [row["accuracy"] for row in answers])
    return found


def our_table(cases: Mapping[str, Case]) -> Table:
    """Accuracies of our methods by set; `dswc` with a given number of clusters on the simulated sets only."""
    table: Table = {}
    for label, (method, settings) in OURS.items():
        chosen = SIMULATED if "n_clusters" in settings else tuple(cases)
        table[label] = {name: ours(cases[name], method, settings, seeds=SEEDS_LARGE if name == LARGE else SEEDS)
                        for name in chosen}
    table[CROWDLAB] = {name: ours_crowdlab(case) for name, case in cases.items()}
    return table


def fresh_table(crowds: Mapping[str, Sequence[Case]]) -> Table:
    """One accuracy a crowd, by setting."""
    return {
        label: {name: [each for case in cases for each in ours(case, method, settings, seeds=1)]
                for name, cases in crowds.items()}
        for label, (method, settings) in OURS.items() if "n_clusters" not in settings
    }


def peer_table(python: Path, wishes: Sequence[tuple[str, Case, Peer]], scratch: Path) -> Table:
    """Accuracies of peers by set; several crowds of one setting are put together."""
    table: Table = {}
    answers = theirs(python, [(case, peer) for _, case, peer in wishes], scratch)
    for (name, _, peer), each in zip(wishes, answers, strict=True):
        row = table.setdefault(peer.label, {})
        before = row.get(name)
        row[name] = before + each if isinstance(before, list) and isinstance(each, list) else each
    return table


def measure(part: str, data: Path, python: Path | None, scratch: Path) -> object:
    """One part of the report, as JSON; None for peers without an environment."""
    if part == "audit":
        return audit(data)
    if part.startswith("fresh"):
        crowds = {name: [draw(name, seed, scratch) for seed in range(SEEDS)] for name in SIMULATED}
        if part == "fresh":
            return fresh_table(crowds)
        again = [(name, case, peer) for peer in PEERS if peer.fresh for name in SIMULATED for case in crowds[name]]
        return None if python is None else peer_table(python, again, scratch)
    cases = {name: load(data, f"simulated/{name}", scratch) for name in SIMULATED}
    cases |= {name: load(data, name, scratch) for name in REAL}
    if part == "ours":
        return our_table(cases)
    wishes = [(name, case, peer) for peer in PEERS for name, case in cases.items()
              if peer.slow == (part == "slow-peers") and (name != LARGE or peer.large)]
    return None if python is None else peer_table(python, wishes, scratch)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--peers", type=Path, help="Python interpreter of an environment with the peers")
    parser.add_argument("--only", nargs="*", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "crowd_quality.json"
    for part in options.only or PARTS:
        where = machine()
        with tempfile.TemporaryDirectory() as folder:
            got = measure(part, options.data, options.peers and options.peers.absolute(), Path(folder))
        if got is None:
            continue
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found[part] = {"machine": where, "found": got}
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (options.out / "crowd_quality.md").write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
