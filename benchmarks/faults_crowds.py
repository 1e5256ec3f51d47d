"""Simulated projects for `benchmarks.faults`: people who label sensibly each in their own way, and planted faults.

    reading[u, a] = severity[u] + strength own[a] . trait[u] + noise,    label = thresholds below it

`severity` is one trait that all read; leniency moves the thresholds, a shift renames a class, a rule reads a trait that
nobody else reads. The content model of a project is a ridge regression of each annotator's labels on what it sees of
the traits, asked about tasks that it was not fitted on.

Shape legend: U tasks, A annotators, N votes, C classes, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Rng = np.random.Generator
SENSIBLE = ("ordinary", "careless", "lenient", "severe", "shifted", "rule", "newcomer")
FAULTY = ("random", "habitual", "constant", "inverter", "drifter")
NAMED = {"random": "spammer", "habitual": "spammer", "constant": "constant", "inverter": "inverter",
         "drifter": "drifter"}
TRAITS, RULE = 6, 5  # the last trait is read by those who follow a rule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crowd:
    """One project with known roles."""

    answers: AnswerMatrix
    features: Floats | None  # (U, F) what a model sees; None where there is no version yet
    roles: tuple[str, ...]  # (A,)
    kind: str

    def until(self, share: float) -> Crowd:
        """The project as it was after this share of its votes."""
        time = self.answers.time
        assert time is not None
        kept = self.answers.select(time <= np.quantile(time, share))
        return Crowd(answers=kept, features=self.features, roles=self.roles, kind=self.kind)

    def gain(self) -> Floats | None:
        """(N,) nats by which out-of-sample predictions tell each vote better than class rates; None without content."""
        return None if self.features is None else content_gain(self.answers, self.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a project is like."""

    people: Sequence[str]  # role of each
    classes: int
    tasks: int
    votes: Sequence[int]  # of each
    noise: float = 0.45
    strength: float = 0.3
    content: bool = True  # whether there is a version
    seen: bool = True  # whether the model sees the trait that rules read
    kind: str = "mixed"


def draw(plan: Plan, rng: Rng) -> Crowd:
    """One project."""
    people, c = len(plan.people), plan.classes
    traits = rng.standard_normal((plan.tasks, TRAITS))
    shares = rng.dirichlet(np.full(c, 8.0))
    usual = np.quantile(traits[:, 0], np.cumsum(shares)[:-1])  # (C - 1,) thresholds of the common reading
    columns = []
    alone = plan.tasks
    for a, role in enumerate(plan.people):
        n = min(plan.votes[a], plan.tasks)
        order = rng.permutation(plan.tasks)[:n]
        label = _labels(role, traits[order], usual, plan, rng)
        unit = order
        if role == "newcomer":  # nobody else gets these tasks
            unit, alone = np.arange(alone, alone + n), alone + n
        columns.append((unit, np.full(n, a), label, rng.uniform(0, 1) * 0.3 + np.sort(rng.random(n)) * 0.7))
    unit, who, label, time = (np.concatenate(each) for each in zip(*columns, strict=True))
    features = None
    if plan.content:
        seen = traits if plan.seen else traits[:, :RULE]
        noisy = seen + 0.3 * rng.standard_normal(seen.shape)
        features = np.vstack([noisy, rng.standard_normal((alone - plan.tasks, seen.shape[1]))])
    answers = AnswerMatrix.from_codes(
        units=[f"t{u}" for u in range(alone)], annotators=[f"a{a}" for a in range(people)],
        classes=[f"c{k}" for k in range(c)], unit=unit, annotator=who, label=label, time=time, keep_time=True,
    )
    return Crowd(answers=answers, features=features, roles=tuple(plan.people), kind=plan.kind)


def _labels(role: str, traits: Floats, usual: Floats, plan: Plan, rng: Rng) -> Codes:
    """What somebody says of tasks, in the order in which they get them."""
    n, c = len(traits), plan.classes
    noise = plan.noise * (2.0 if role == "careless" else rng.uniform(0.6, 1.3))
    own = rng.standard_normal(4) / 2.0
    reading = traits[:, 0] + plan.strength * traits[:, 1:5] @ own + noise * rng.standard_normal(n)
    if role == "rule":
        reading = traits[:, RULE] + 0.15 * rng.standard_normal(n)
    shift = {"lenient": rng.uniform(0.6, 1.3), "severe": -rng.uniform(0.6, 1.3)}.get(role, 0.15 * rng.standard_normal())
    label = np.searchsorted(usual + shift, reading).astype(np.int64)
    if role == "shifted":  # calls one class by the name of a neighbour
        k = int(rng.integers(c))
        to = k + 1 if k == 0 or (k < c - 1 and rng.random() < 0.5) else k - 1
        label = np.where((label == k) & (rng.random(n) < rng.uniform(0.6, 0.85)), to, label)
    return _with_fault(role, label, c, rng)


def _with_fault(role: str, label: Codes, c: int, rng: Rng) -> Codes:
    n = len(label)
    if role == "random":
        return rng.integers(c, size=n)
    if role == "habitual":  # by fixed rates, whatever the task is
        return rng.choice(c, size=n, p=0.1 / c + 0.9 * rng.dirichlet(np.full(c, 5.0)))
    if role == "constant":  # not the class that most tasks have anyway: nobody could tell
        return np.where(rng.random(n) < 0.97, np.bincount(label, minlength=c).argmin(), rng.integers(c, size=n))
    if role == "inverter":  # the first and the last class, in 90 % of the tasks
        turned = np.where(label == 0, c - 1, np.where(label == c - 1, 0, label))
        return np.where(rng.random(n) < 0.9, turned, label)
    if role == "drifter":  # answers at random from about the middle on
        return np.where(np.arange(n) >= rng.uniform(0.35, 0.65) * n, rng.integers(c, size=n), label)
    return label


def content_gain(answers: AnswerMatrix, features: Floats, folds: int = 5, ridge: float = 10.0) -> Floats:
    """(N,) nats by which ridge regressions on features (U, F), asked out of fold, tell votes better than rates do."""
    n_classes = len(answers.classes)
    fold = (np.arange(len(answers.units)) * 7919 % 104729) % folds
    x = np.column_stack([np.ones(len(features)), features])
    y = np.eye(n_classes)[answers.label]
    pooled = (y.sum(axis=0) + 1.0) / (len(y) + n_classes)
    out = np.full(len(answers), np.nan)
    for a in range(len(answers.annotators)):
        mine = np.flatnonzero(answers.annotator == a)
        if len(mine) < 10:
            continue
        for f in range(folds):
            test = fold[answers.unit[mine]] == f
            train = mine[~test]
            prior = (y[train].sum(axis=0) + 4.0 * pooled) / (len(train) + 4.0)
            inside, asked = x[answers.unit[train]], x[answers.unit[mine[test]]]
            square = inside.T @ inside + ridge * np.eye(inside.shape[1])
            weights = np.linalg.solve(square, inside.T @ (y[train] - prior))
            p = np.clip(prior + asked @ weights, 0.02, 1.0)
            p /= p.sum(axis=1, keepdims=True)
            given = answers.label[mine[test]]
            out[mine[test]] = np.log(p[np.arange(len(given)), given] / prior[given])
    return out


def sensible(rng: Rng) -> Plan:
    """A project without faults: a mix of people, sizes and overlaps; some ordinary, some of one person."""
    kind = str(rng.choice(["mixed", "ordinary", "alone", "half lenient", "newcomers"], p=[0.6, 0.15, 0.05, 0.1, 0.1]))
    people = 1 if kind == "alone" else int(rng.integers(5, 41))
    share = {
        "mixed": [0.3, 0.15, 0.15, 0.15, 0.1, 0.1, 0.05], "ordinary": [0.8, 0.2, 0, 0, 0, 0, 0],
        "alone": [0.4, 0, 0.2, 0.2, 0.1, 0.1, 0], "half lenient": [0.4, 0.1, 0.5, 0, 0, 0, 0],
        "newcomers": [0.5, 0.1, 0, 0, 0, 0, 0.4],
    }[kind]
    most = int(rng.integers(40, 401))
    votes = np.maximum(10, (most * rng.uniform(0.15, 1.0, people)).astype(int))
    overlap = rng.uniform(2.0, 6.0)  # votes a task, about
    return Plan(
        people=tuple(rng.choice(SENSIBLE, size=people, p=share)), classes=int(rng.integers(2, 6)), votes=votes.tolist(),
        tasks=max(most, int(votes.sum() / overlap)), noise=float(rng.uniform(0.25, 0.7)),
        strength=float(rng.uniform(0.0, 0.6)), content=bool(rng.random() < 0.6), kind=kind,
    )


def faulty(rng: Rng) -> Plan:
    """A project of 12 to 20 sensible people and one of each fault, 200 to 400 votes each, with content."""
    people = int(rng.integers(12, 21))
    roles = [str(each) for each in rng.choice(SENSIBLE[:5], size=people, p=[0.6, 0.1, 0.1, 0.1, 0.1])] + list(FAULTY)
    votes = rng.integers(200, 401, len(roles))
    return Plan(
        people=tuple(roles), classes=int(rng.integers(2, 6)), votes=votes.tolist(),
        tasks=max(400, int(votes.sum() / rng.uniform(3.0, 6.0))), noise=float(rng.uniform(0.25, 0.5)),
        strength=float(rng.uniform(0.0, 0.4)), kind="planted",
    )
