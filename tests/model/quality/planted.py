"""A project with content and everything that an audit should find, planted: faulty annotators, slips, contradictions.

Twelve annotators read the content in ways of their own; the last four are a spammer, a constant answerer, an inverter
and a drifter (who guesses from about the middle on). Some tasks have a twin, which is nearly the same and which people
answer as they answered the first, nineteen times in twenty.

Shape legend: U units, A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.data.spaces import SingleChoice, Value
from model.data.splits import is_heldout
from model.data.votes import Votes
from model.ensemble.audit import audit_evidence
from model.ensemble.ladder import LadderConfig, TrainingSet, fit
from model.quality.evidence import Evidence
from model.simulate import annotator_scores, simulate_tokens

CLASSES = ("no", "maybe", "yes")
FAULTS = ("spammer", "constant", "inverter", "drifter")
ANNOTATORS, TASKS, TWINS = 12, 400, 120
COVERAGE, ALIKE = 0.6, 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class Planted:
    """Votes sorted by (unit, annotator), what is planted in them, and the content."""

    votes: Votes
    tokens: dict[str, NDArray[np.float16]]
    slip: NDArray[np.bool_]  # (N,)
    contradiction: NDArray[np.bool_]  # (N,) the vote that was turned
    roles: tuple[str, ...]  # (A,) "" or a fault

    @property
    def space(self) -> SingleChoice:
        return SingleChoice(CLASSES)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """(N,) everything that a second look should change."""
        return self.slip | self.contradiction

    @property
    def answers(self) -> AnswerMatrix:
        return AnswerMatrix.from_votes(self.votes, classes=CLASSES, keep_time=True)

    def learn(self, config: LadderConfig) -> Evidence:
        """What a training of the real ladder leaves for the audit."""
        return audit_evidence(fit(TrainingSet(
            votes=self.votes, spaces={"label": self.space}, heldout=lambda unit: is_heldout("1.1", unit, 20.0),
            tokens=lambda units: [self.tokens[unit] for unit in units],
        ), config))  # fmt: skip

    def own(self, evidence: Evidence) -> NDArray[np.float64]:
        """(N, C) out-of-sample probabilities of each vote's annotator; NaN where there are none."""
        return self._of_votes(evidence, evidence.controls["label"].served)

    def gain(self, evidence: Evidence) -> NDArray[np.float64]:
        """(N,) nats by which content tells a vote better than its annotator's habits; NaN where it is not known."""
        item, label = evidence.controls["label"], self.answers.label
        served, prior = (np.clip(self._of_votes(evidence, p)[np.arange(len(label)), label], 1e-6, 1.0)
                         for p in (item.served, item.prior))
        return np.log(served / prior)

    def _of_votes(self, evidence: Evidence, p: NDArray[np.floating]) -> NDArray[np.float64]:
        """(N, C) the rows of `p` that belong to the votes; NaN where there are none."""
        item = evidence.controls["label"]
        place = {(evidence.units[u], evidence.annotators[a]): row
                 for row, (u, a) in enumerate(zip(item.unit, item.annotator, strict=True))}
        rows = [place.get((self.votes.units[u], self.votes.annotators[a]), -1)
                for u, a in zip(self.votes.unit, self.votes.annotator, strict=True)]
        table = np.vstack([p.astype(np.float64), np.full((1, len(CLASSES)), np.nan)])
        return np.asarray(table[rows])

    def twins(self, evidence: Evidence) -> NDArray[np.int64]:
        """(P, 2) pairs of units."""
        place = {name: at for at, name in enumerate(self.votes.units)}
        pairs = [[place[evidence.units[u]] for u in pair] for pair in evidence.near_duplicates]
        return np.array(pairs, np.int64).reshape(-1, 2)


def plant(seed: int, *, slips: int = 60, contradictions: int = 40, tasks: int = TASKS, twins: int = TWINS) -> Planted:
    """One project."""
    rng = np.random.default_rng(seed)
    c = len(CLASSES)
    traits = rng.standard_normal((tasks, 4))
    scores = annotator_scores(traits, ANNOTATORS, c, rng, strength=0.5, temper=4.0, leniency=0.5)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    label = (np.cumsum(p, -1) < rng.random((tasks, ANNOTATORS, 1))).sum(-1).clip(0, c - 1)  # (U, A)
    origin = rng.choice(tasks, twins, replace=False)
    again = (np.cumsum(p[origin], -1) < rng.random((twins, ANNOTATORS, 1))).sum(-1).clip(0, c - 1)
    label = np.vstack([label, np.where(rng.random(again.shape) < ALIKE, label[origin], again)])
    n_units = tasks + twins
    asked = rng.random((n_units, ANNOTATORS)) < COVERAGE
    turn = rng.random((n_units, ANNOTATORS))  # when each vote is given
    roles = ("",) * (ANNOTATORS - len(FAULTS)) + FAULTS
    label = _with_faults(label, turn, roles, rng)
    sound = np.array([not role for role in roles])
    slip, turned = np.zeros(label.shape, np.bool_), np.zeros(label.shape, np.bool_)
    pairs = [(tasks + i, a) for i in range(twins) for a in np.flatnonzero(sound)
             if asked[tasks + i, a] and asked[origin[i], a] and label[tasks + i, a] == label[origin[i], a]]
    for at in rng.choice(len(pairs), contradictions, replace=False):
        turned[pairs[at]] = True
    for u, a in rng.permutation(np.argwhere(asked & sound & ~turned))[:slips]:
        slip[u, a] = True
    wrong = slip | turned
    label[wrong] = (label[wrong] + rng.integers(1, c, int(wrong.sum()))) % c
    unit, annotator = np.nonzero(asked)
    tokens = simulate_tokens(traits, rng)
    tokens += [tokens[u] + 0.02 * rng.standard_normal(tokens[u].shape).astype(np.float16) for u in origin]
    names = [f"{u:04d}" for u in range(n_units)]
    votes = Votes.from_columns(
        units=names, annotators=[f"a{a:02d}" for a in range(ANNOTATORS)], values=[Value.of_class(n) for n in CLASSES],
        unit=unit, annotator=annotator, value=label[unit, annotator], time=turn[unit, annotator],
    )
    return Planted(
        votes=votes, tokens=dict(zip(names, tokens, strict=True)), slip=slip[unit, annotator],
        contradiction=turned[unit, annotator], roles=roles,
    )


def _with_faults(
    label: NDArray[np.int64], turn: NDArray[np.float64], roles: tuple[str, ...], rng: np.random.Generator
) -> NDArray[np.int64]:
    label, c = label.copy(), len(CLASSES)
    for a, role in enumerate(roles):
        guess = rng.integers(c, size=len(label))
        if role == "spammer":
            label[:, a] = guess
        elif role == "constant":
            label[:, a] = np.where(rng.random(len(label)) < 0.96, int(rng.integers(c)), guess)
        elif role == "inverter":
            label[:, a] = c - 1 - label[:, a]
        elif role == "drifter":
            label[:, a] = np.where(turn[:, a] > rng.uniform(0.3, 0.7), guess, label[:, a])
    return label


def average_precision(score: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """Mean precision at each positive, going down the ranking."""
    hit = positive[np.argsort(-score, kind="stable")]
    return float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].mean())
