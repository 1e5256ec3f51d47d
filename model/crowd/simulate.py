"""Simulated crowds with known truth: who labels what, and how each annotator errs.

    truth_u ~ class shares;   annotators of a task drawn without replacement;   vote ~ pi_a[truth_u, .]

Strategies say what the confusion matrices pi_a are, or replace them: `STRATEGIES` by name. The first four are those of
peerannot (Lefort et al. 2024, section 3.2 and 7.1); its diagonal dominance (the largest entry of each row is swapped
onto the diagonal) is in `dominant`. Everything is drawn from one Generator, vectorised over the votes.

Shape legend: U units, A annotators, C classes, N votes. Confusions are [annotator, true, given].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from model.crowd.assign import Assignment
from model.data.spaces import Value
from model.data.votes import Votes
from model.errors import ModelError
from model.simulate import annotator_scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_TRAITS = 4  # of the content that content-dependent annotators see


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What to simulate. `ratio` is the share of spammers, students, good annotators or drifters, by strategy."""

    n_annotators: int = 30
    n_tasks: int = 200
    n_classes: int = 5
    ratio: float = 0.1
    ratio_diff: float = 1.0  # discrete difficulty: easy tasks for each hard one
    random: float = 0.0  # discrete difficulty: share of tasks that nobody can tell
    n_clusters: int = 3  # clusters
    class_shares: tuple[float, ...] | None = None  # of the truth; None: all classes alike
    matrices: Floats | None = None  # (A, C, C) given confusions; student-teacher takes the teachers' from it
    assignment: Assignment = field(default_factory=Assignment)

    def __post_init__(self) -> None:
        if min(self.n_annotators, self.n_tasks, self.n_classes, self.n_clusters) < 1:
            raise ModelError("a simulation needs at least one annotator, task, class and cluster")
        for name in ("ratio", "random"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ModelError(f"{name} must lie between 0 and 1")
        if not 0.0 <= self.ratio_diff < np.inf:
            raise ModelError("the ratio of easy to hard tasks must not be negative")
        if self.class_shares is not None:
            shares = np.asarray(self.class_shares)
            if len(shares) != self.n_classes or (shares < 0).any() or not shares.sum() > 0:
                raise ModelError(f"class shares must be {self.n_classes} numbers that are not negative")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedCrowd:
    """Votes with everything that is true of them. Units and annotators are named by their number, classes as well."""

    votes: Votes
    truth: Ints  # (U,)
    n_classes: int
    confusion: Floats | None  # (A, C, C); None where answers do not come from such matrices
    roles: tuple[str, ...]  # (A,) what each annotator is
    groups: Ints | None = None  # (A,) teacher or cluster of each annotator
    difficulty: tuple[str, ...] = ()  # (U,) "easy", "hard", "random"
    change: Ints | None = None  # (A,) how many votes a drifter gives before it changes; -1: never


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """What a strategy decides before votes are drawn. `after` (A, C, C) holds from a drifter's change on."""

    confusion: Floats | None
    roles: tuple[str, ...]
    groups: Ints | None = None
    easy: NDArray[np.bool_] | None = None  # (U,)
    unknowable: NDArray[np.bool_] | None = None  # (U,)
    after: Floats | None = None
    change_share: Floats | None = None  # (A,) share of their votes before the change; NaN: never
    probabilities: Floats | None = None  # (U, A, C) instead of confusions
    truth: Ints | None = None


def simulate(strategy: str, crowd: Crowd, rng: np.random.Generator) -> SimulatedCrowd:
    """Simulate a crowd. Raises ModelError for an unknown strategy or for wishes that cannot be met."""
    plan_of = STRATEGIES.get(strategy)
    if plan_of is None:
        raise ModelError(f"no simulation is called {strategy!r}; there are {', '.join(STRATEGIES)}")
    shares = None if crowd.class_shares is None else np.asarray(crowd.class_shares) / np.sum(crowd.class_shares)
    truth = rng.choice(crowd.n_classes, size=crowd.n_tasks, p=shares)
    plan = plan_of(crowd, rng)
    truth = truth if plan.truth is None else plan.truth
    unit, annotator = crowd.assignment.draw(crowd.n_tasks, crowd.n_annotators, rng)
    turn = _turns(annotator, crowd.n_annotators, rng)  # the how-manieth vote of its annotator, from 0
    changed, change = _changed(plan, annotator, turn, crowd.n_annotators)
    label = np.empty(len(unit), dtype=np.int64)
    for first in range(0, len(unit), 1 << 18):
        part = slice(first, first + (1 << 18))
        rows = _rows(plan, truth, unit[part], annotator[part], changed[part], crowd.n_classes)
        label[part] = draw_classes(rows, rng)
    names = [str(i) for i in range(max(crowd.n_tasks, crowd.n_annotators, crowd.n_classes))]
    votes = Votes.from_columns(
        units=names[: crowd.n_tasks], annotators=names[: crowd.n_annotators],
        values=[Value.of_class(name) for name in names[: crowd.n_classes]], unit=unit, annotator=annotator, value=label,
        time=turn + 1.0 if plan.change_share is not None else None,
    )
    levels = ()
    if plan.easy is not None and plan.unknowable is not None:
        levels = tuple(np.where(plan.unknowable, "random", np.where(plan.easy, "easy", "hard")).tolist())
    return SimulatedCrowd(
        votes=votes, truth=truth, n_classes=crowd.n_classes, confusion=plan.confusion, roles=plan.roles,
        groups=plan.groups, difficulty=levels, change=change,
    )


def draw_classes(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """(N,) one class of each row of (N, C) probabilities."""
    below = np.cumsum(probabilities, axis=1) < rng.random((len(probabilities), 1)) * probabilities.sum(axis=1)[:, None]
    drawn: Ints = np.minimum(below.sum(axis=1), probabilities.shape[1] - 1)
    return drawn


def dominant(matrices: Floats) -> Floats:
    """(A, C, C) with the largest entry of each row swapped onto the diagonal: nobody is wrong on purpose."""
    swapped = matrices.copy()
    a, k = np.indices(matrices.shape[:2])
    best = matrices.argmax(axis=2)
    swapped[a, k, k], swapped[a, k, best] = matrices[a, k, best], matrices[a, k, k]
    return swapped


def uniform_confusions(n: int, n_classes: int, rng: np.random.Generator, *, concentration: float = 1.0) -> Floats:
    """(n, C, C) rows drawn from a symmetric Dirichlet distribution; 1 is uniform on the simplex."""
    return np.asarray(rng.dirichlet(np.full(n_classes, concentration), size=(n, n_classes)))


def _rows(
    plan: _Plan, truth: Ints, unit: NDArray[np.integer], annotator: NDArray[np.integer], changed: NDArray[np.bool_],
    n_classes: int,
) -> Floats:
    """(N, C) probabilities of the answers of some votes."""
    if plan.probabilities is not None:
        return np.asarray(plan.probabilities[unit, annotator])
    assert plan.confusion is not None
    rows: Floats = plan.confusion[annotator, truth[unit]]
    if plan.after is not None and changed.any():
        rows[changed] = plan.after[annotator[changed], truth[unit[changed]]]
    if plan.easy is not None:
        rows[plan.easy[unit]] = np.eye(n_classes)[truth[unit[plan.easy[unit]]]]
    if plan.unknowable is not None:
        rows[plan.unknowable[unit]] = 1.0 / n_classes
    return rows


def _turns(annotator: NDArray[np.integer], n_annotators: int, rng: np.random.Generator) -> Ints:
    """(N,) a random order of each annotator's votes."""
    order = np.lexsort((rng.random(len(annotator)), annotator))
    n = np.bincount(annotator, minlength=n_annotators)
    first = np.cumsum(n) - n
    turn = np.empty(len(annotator), dtype=np.int64)
    turn[order] = np.arange(len(annotator)) - first[annotator[order]]
    return turn


def _changed(
    plan: _Plan, annotator: NDArray[np.integer], turn: Ints, n_annotators: int
) -> tuple[NDArray[np.bool_], Ints | None]:
    if plan.change_share is None:
        return np.zeros(len(annotator), dtype=np.bool_), None
    n = np.bincount(annotator, minlength=n_annotators)
    change = np.where(np.isnan(plan.change_share), -1, np.floor(np.nan_to_num(plan.change_share) * n)).astype(np.int64)
    mine = change[annotator]
    return (mine >= 0) & (turn >= mine), change


def _given(crowd: Crowd, n: int) -> Floats | None:
    """The first `n` of the given matrices, checked."""
    if crowd.matrices is None:
        return None
    table = np.asarray(crowd.matrices, dtype=np.float64)
    if table.ndim != 3 or len(table) < n or table.shape[1:] != (crowd.n_classes, crowd.n_classes):
        raise ModelError(f"matrices have shape {table.shape}, needed are ({n}, {crowd.n_classes}, {crowd.n_classes})")
    if not np.isfinite(table).all() or (table < 0).any() or np.abs(table.sum(axis=2) - 1).max() > 1e-3:
        raise ModelError("rows of the given matrices must be probabilities")
    return table[:n]


def _hammer_spammer(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """`ratio` spammers answer at random, hammers are always right."""
    spammers = int(crowd.ratio * crowd.n_annotators)
    hammers = crowd.n_annotators - spammers
    confusion = np.repeat(np.eye(crowd.n_classes)[None], crowd.n_annotators, axis=0)
    confusion[hammers:] = 1.0 / crowd.n_classes
    return _Plan(confusion=confusion, roles=("hammer",) * hammers + ("spammer",) * spammers)


def _independent_confusion(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """Everybody has a confusion matrix of their own."""
    confusion = _given(crowd, crowd.n_annotators)
    if confusion is None:
        confusion = dominant(uniform_confusions(crowd.n_annotators, crowd.n_classes, rng))
    return _Plan(confusion=confusion, roles=("annotator",) * crowd.n_annotators)


def _student_teacher(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """`ratio` students have the matrix of a teacher."""
    students = min(int(crowd.ratio * crowd.n_annotators), crowd.n_annotators - 1)
    teachers = crowd.n_annotators - students
    matrices = _given(crowd, teachers)
    if matrices is None:
        matrices = dominant(uniform_confusions(teachers, crowd.n_classes, rng))
    groups = np.concatenate([np.arange(teachers), rng.integers(teachers, size=students)])
    return _Plan(confusion=matrices[groups], roles=("teacher",) * teachers + ("student",) * students, groups=groups)


def _discrete_difficulty(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """Easy tasks are answered right by all, hard ones by confusion; `ratio` of the annotators are good."""
    good = int(crowd.ratio * crowd.n_annotators)
    bad = crowd.n_annotators - good
    confusion = _given(crowd, crowd.n_annotators)
    if confusion is None:
        confusion = np.concatenate([
            dominant(uniform_confusions(good, crowd.n_classes, rng, concentration=0.2)),
            uniform_confusions(bad, crowd.n_classes, rng),
        ])
    level = rng.random(crowd.n_tasks)
    easy = level < (1.0 - crowd.random) * crowd.ratio_diff / (1.0 + crowd.ratio_diff)
    return _Plan(
        confusion=confusion, roles=("good",) * good + ("bad",) * bad, easy=easy, unknowable=level >= 1.0 - crowd.random,
    )


def _drift(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """Good annotators, of whom `ratio` begin to guess somewhere between 30 and 70 % of their votes."""
    plan = _Plan(confusion=_skilled(crowd, rng), roles=())
    drifters = int(np.ceil(crowd.ratio * crowd.n_annotators))
    share = np.full(crowd.n_annotators, np.nan)
    share[crowd.n_annotators - drifters:] = rng.uniform(0.3, 0.7, size=drifters)
    steady = crowd.n_annotators - drifters
    return _Plan(
        confusion=plan.confusion, roles=("steady",) * steady + ("drifter",) * drifters, change_share=share,
        after=np.full((crowd.n_annotators, crowd.n_classes, crowd.n_classes), 1.0 / crowd.n_classes),
    )


def _clusters(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """Annotators of one cluster share a matrix."""
    n = min(crowd.n_clusters, crowd.n_annotators)
    matrices = _given(crowd, n)
    if matrices is None:
        matrices = dominant(uniform_confusions(n, crowd.n_classes, rng))
    groups = rng.permutation(np.arange(crowd.n_annotators) % n)
    return _Plan(confusion=matrices[groups], roles=tuple(f"cluster {g}" for g in groups), groups=groups)


def _content(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """Everybody reads the content in their own way; the truth is what most of the whole crowd would say."""
    traits = rng.standard_normal((crowd.n_tasks, _TRAITS))
    scores = annotator_scores(traits, crowd.n_annotators, crowd.n_classes, rng)
    odds = np.exp(scores - scores.max(axis=2, keepdims=True))
    odds /= odds.sum(axis=2, keepdims=True)
    truth = odds.mean(axis=1).argmax(axis=1)
    return _Plan(confusion=None, probabilities=odds, truth=truth, roles=("annotator",) * crowd.n_annotators)


def _faults(crowd: Crowd, rng: np.random.Generator) -> _Plan:
    """Good annotators; the last four are a spammer, a constant answerer, an inverter and a drifter."""
    c = crowd.n_classes
    confusion = _skilled(crowd, rng)
    faults = ("spammer", "constant", "inverter", "drifter")[: max(crowd.n_annotators - 1, 0)]
    share = np.full(crowd.n_annotators, np.nan)
    for place, fault in enumerate(faults, start=crowd.n_annotators - len(faults)):
        if fault == "spammer":
            confusion[place] = 1.0 / c
        elif fault == "constant":
            confusion[place] = 0.04 / max(c - 1, 1)
            confusion[place, :, rng.integers(c)] = 0.96 if c > 1 else 1.0
            confusion[place] /= confusion[place].sum(axis=1, keepdims=True)
        elif fault == "inverter":
            confusion[place][:, [0, c - 1]] = confusion[place][:, [c - 1, 0]]  # names the first for the last class
        else:
            share[place] = rng.uniform(0.3, 0.7)
    good = crowd.n_annotators - len(faults)
    return _Plan(
        confusion=confusion, roles=("good",) * good + faults, change_share=share,
        after=np.full((crowd.n_annotators, c, c), 1.0 / c),
    )


def _skilled(crowd: Crowd, rng: np.random.Generator) -> Floats:
    """(A, C, C) annotators who are right in 75 to 95 % and err evenly, or the given matrices."""
    given = _given(crowd, crowd.n_annotators)
    if given is not None:
        return given.copy()
    c = crowd.n_classes
    if c == 1:
        return np.ones((crowd.n_annotators, 1, 1))
    right = rng.uniform(0.75, 0.95, size=crowd.n_annotators)
    wrong = ((1.0 - right) / (c - 1))[:, None, None]
    return np.asarray(wrong + (right[:, None, None] - wrong) * np.eye(c))


STRATEGIES: dict[str, Callable[[Crowd, np.random.Generator], _Plan]] = {
    "hammer-spammer": _hammer_spammer, "independent-confusion": _independent_confusion,
    "student-teacher": _student_teacher, "discrete-difficulty": _discrete_difficulty, "drift": _drift,
    "clusters": _clusters, "content": _content, "faults": _faults,
}
