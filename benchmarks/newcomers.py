"""A newcomer's first hundred votes: how well they are foreseen, beside the version alone and own frequencies.

A project of twelve simulated annotators, who read six traits of a unit each in their own way, has a version. Then
somebody new labels: by a *contrary* rule (the common opinion turned round), *lenient* (the common opinion, half a class
kinder), *random* (by habit alone), or *alike* (as one of the twelve). After some numbers of votes they are predicted on
`TEST` units that they never labelled, in these ways:

- *before*: the version alone, trained anew on everything after every twenty votes of theirs (until then by the generic
  query), and without any training;
- *now*: the same, moved by their votes so far (`model.coldstart`), with those trainings, and without any;
- *own frequencies*: how often they gave each label, shrunk to everybody's, from the same votes.

Usage: python -m benchmarks.newcomers [--projects 16] [--jobs 16] [--out benchmarks/results] [--no-training]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.newcomers_report import markdown, plot

Floats = NDArray[np.float64]
CLASSES = ("Impolite", "Neutral", "Polite")
UNITS, TEST, PEOPLE, TRAITS, DIM, COVERAGE = 420, 120, 12, 6, 64, 0.45
KINDS = ("contrary", "lenient", "random", "alike")
VOTES = 100
STEPS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100)
TRAINED = (20, 40, 60, 80)
WAYS = ("before", "now", "untrained before", "untrained now", "own frequencies")
SHRUNK = 4.0  # pseudo-votes of everybody's frequencies in own frequencies, as in the ladder


def labels(rng: np.random.Generator, scale: Floats) -> NDArray[np.int64]:
    """Classes from places on a common scale."""
    return np.searchsorted((-0.6, 0.6), scale + 0.35 * rng.logistic(size=scale.shape))


def newcomer_scale(kind: str, rng: np.random.Generator, common: Floats, people: Floats) -> Floats:
    """Where somebody sees each unit (U,), from the common opinion (U,) and that of each annotator (U, A)."""
    if kind == "contrary":
        return -common
    if kind == "lenient":
        return common + 0.7
    if kind == "alike":
        return np.asarray(people[:, rng.integers(people.shape[1])])
    return np.full(len(common), rng.normal(0.0, 0.5))


def project(number: int, training: bool) -> list[dict[str, Any]]:
    """Losses and hits at each step, by kind and way."""
    import torch

    from model.simulate import simulate_tokens

    torch.set_num_threads(1)
    rng = np.random.default_rng([14, number])
    x = rng.standard_normal((UNITS, TRAITS))
    common = x @ rng.standard_normal(TRAITS) / np.sqrt(TRAITS) * 1.4
    own = x @ (0.7 * rng.standard_normal((TRAITS, PEOPLE)) / np.sqrt(TRAITS) * 1.4)
    people = common[:, None] + own + 0.4 * rng.standard_normal(PEOPLE)
    said = labels(rng, people)
    asked = rng.random(said.shape) < COVERAGE
    asked[-TEST:] = False
    tokens = {f"t{u}": each for u, each in enumerate(simulate_tokens(x, rng, dim=DIM))}
    votes = [(f"t{u}", f"a{a}", CLASSES[said[u, a]]) for u, a in zip(*np.nonzero(asked), strict=True)]
    version = Version.trained(votes, tokens)
    found = []
    for kind in KINDS:
        theirs = labels(rng, newcomer_scale(kind, rng, common, people))
        order = rng.permutation(UNITS - TEST)[:VOTES]
        found.append({"project": number, "kind": kind, **_followed(votes, tokens, version, theirs, order, training)})
    return found


@dataclass(frozen=True, kw_only=True)
class Version:
    """A ladder, and what it says of the test units; read once, since nothing of that depends on a newcomer's votes."""

    ladder: Any
    evidence: Any
    rows: Floats  # (TEST, R, C) log-probabilities of everybody whom it knows, and of somebody new
    content: Floats  # (TEST, F)

    @classmethod
    def trained(cls, votes: Sequence[tuple[str, str, str]], tokens: Mapping[str, Any]) -> Version:
        """On all of these votes."""
        from model.coldstart.adapting import content_of
        from model.config import LadderConfig
        from model.data.dataset import TrainingSet
        from model.data.spaces import SingleChoice
        from model.ensemble.audit import audit_evidence
        from model.ensemble.fitting import fit

        made = fit(TrainingSet(votes=_votes(votes), spaces={"label": SingleChoice(CLASSES)}, heldout=lambda unit: False,
                               tokens=lambda units: [tokens[unit] for unit in units]), LadderConfig.preset("polyvox"))
        ladder, contents = made.ladder, [tokens[f"t{u}"] for u in range(UNITS - TEST, UNITS)]
        served = ladder.predict(contents, [*ladder.annotators, "somebody"], consensus=False)["label"].served
        return cls(ladder=ladder, evidence=audit_evidence(made), rows=np.log(served),
                   content=content_of(ladder.controls["label"].pooled, ladder.features(contents)))

    def answers(self, given: Sequence[tuple[str, str, str]], tokens: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Of the test units what it says (TEST, C) of the newcomer, and what it says moved by the votes given."""
        from model.coldstart.adapting import adapt, is_newcomer

        at = self.ladder.place("new")
        before = np.exp(self.rows[:, -1 if at is None else at])
        if not given or not is_newcomer(self.ladder, "new"):
            return before, before
        voted = [unit for unit, _, _ in given]
        features = dict(zip(voted, self.ladder.features([tokens[unit] for unit in voted]), strict=True))
        one = adapt(self.ladder, "new", _votes(given), features, self.evidence)
        return before, before if one is None else one.controls["label"].probabilities(self.rows, self.content)


def _votes(votes: Sequence[tuple[str, str, str]]) -> Any:
    from model.data.spaces import Value
    from model.data.votes import Vote, Votes

    return Votes.from_votes(Vote(unit=unit, annotator=who, control="label", value=Value.of_class(label), time=float(at))
                            for at, (unit, who, label) in enumerate(votes))


def _followed(
    votes: Sequence[tuple[str, str, str]], tokens: Mapping[str, Any], first: Version, theirs: NDArray[np.int64],
    order: NDArray[np.int64], training: bool,
) -> dict[str, Any]:
    """One newcomer: way -> (losses, hits) at each step."""
    given = [(f"t{u}", "new", CLASSES[theirs[u]]) for u in order]
    everybody = np.bincount([CLASSES.index(label) for _, _, label in votes], minlength=len(CLASSES)) / len(votes)
    truth = theirs[-TEST:]
    loss: dict[str, list[float]] = {way: [] for way in WAYS}
    hits: dict[str, list[float]] = {way: [] for way in WAYS}
    fitted = first
    for step in STEPS:
        if training and step in TRAINED:
            fitted = Version.trained([*votes, *given[:step]], tokens)
        counts = np.bincount(theirs[order[:step]], minlength=len(CLASSES))
        habit = (counts + SHRUNK * everybody) / (step + SHRUNK)
        answers = {"own frequencies": np.broadcast_to(habit, (TEST, len(CLASSES)))}
        for prefix, version in {"": fitted, "untrained ": first}.items():
            before, now = version.answers(given[:step], tokens)
            answers |= {f"{prefix}before": before, f"{prefix}now": now}
        for way, p in answers.items():
            loss[way].append(float(-np.log(np.maximum(p[np.arange(TEST), truth], 1e-6)).mean()))
            hits[way].append(float((p.argmax(1) == truth).mean()))
    return {"loss": loss, "hits": hits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=16)
    parser.add_argument("--first", type=int, default=0, help="number of the first project")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-training", action="store_true", help="the version is never trained on the newcomer")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    numbers = range(asked.first, asked.first + asked.projects)
    work = partial(project, training=not asked.no_training)
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        rows = []
        for part in pool.map(work, numbers):
            rows.extend(part)
            print(f"project {part[0]['project']} done", flush=True)
    found = {"classes": len(CLASSES), "projects": asked.projects, "training": not asked.no_training,
             "steps": list(STEPS), "rows": rows}
    text = markdown(found)
    print(text)
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "newcomers.json").write_text(json.dumps(found), encoding="utf-8")
        (asked.out / "newcomers.md").write_text(text, encoding="utf-8")
        plot(found, asked.out / "newcomers.png")


if __name__ == "__main__":
    main()
