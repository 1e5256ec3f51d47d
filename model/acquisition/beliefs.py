"""What votes alone say of the consensus, of every annotator and of how ambiguous each unit is: latent classes, graded.

    vote of a on u ~ (1 - h_g) pi_a[k, .] + h_g m,      k ~ rho_u,  g ~ omega

A unit has a class k and a grade of ambiguity g. A share h_g of the votes on a unit of grade g is not about its class:
those follow m, the shares of all votes. This is Dawid-Skene where all h are 0. Without grades a unit with five votes
for and five against looks like one where the next vote decides; with them it looks like what it is. Fitted by EM;
pi_a is shrunk to the pooled matrix. numpy only.

Shape legend: U units, A annotators, C classes, G grades, N votes. Confusions are [annotator, consensus, given].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
_CHUNK = 1 << 16  # gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefConfig:
    """How beliefs are fitted."""

    grades: tuple[float, ...] = (0.0, 0.5, 0.9)  # shares of votes that are not about the class
    grade_votes: tuple[float, ...] = (4.0, 2.0, 1.0)  # pseudo-units of each grade
    strength: float = 20.0  # pseudo-votes of the pooled matrix in each row: what a few votes tell apart misleads
    trust: float = 0.7  # what the pooled matrix starts from: probability of the right class
    trust_votes: float = 10.0  # pseudo-votes of that in each row
    iterations: int = 8  # few on purpose: with one vote a unit nothing holds EM where it began, and it drifts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beliefs:
    """What is believed after some votes."""

    consensus: Floats  # (U, C)
    ambiguity: Floats  # (U,) expected share of votes that are not about the class
    confusion: Floats  # (A, C, C)
    shares: Floats  # (C,) m
    explained: Floats  # (U, C) sum_g P(k, g) (1 - h_g)

    def probabilities(self, where: NDArray[np.bool_] | None = None) -> Floats:
        """(U, A, C) what everybody would say; with `where` (U, A), there only, and 0 elsewhere."""
        told = np.zeros((len(self.consensus), len(self.confusion), len(self.shares)))
        unit, annotator = np.nonzero(np.ones(told.shape[:2], np.bool_) if where is None else where)
        for first in range(0, len(unit), _CHUNK):
            u, a = unit[first : first + _CHUNK], annotator[first : first + _CHUNK]
            own = (self.explained[u][:, :, None] * self.confusion[a]).sum(axis=1)  # (n, C)
            told[u, a] = own + self.ambiguity[u][:, None] * self.shares
        return told


def fit_beliefs(
    given: NDArray[np.integer], classes: int, *, prior: Floats | None = None, config: BeliefConfig | None = None
) -> Beliefs:
    """Beliefs from votes (U, A), -1 at gaps. `prior` (U, C): what content says of a unit; by default class shares."""
    config = config or BeliefConfig()
    unit, annotator = np.nonzero(given >= 0)
    label = given[unit, annotator]
    (units, people), h = given.shape, np.asarray(config.grades)
    table = sparse.csr_array(
        (np.ones(len(unit)), (unit, annotator * classes + label)), shape=(units, people * classes))  # who said what
    voted = np.diff(table.indptr) > 0
    shares = (np.bincount(label, minlength=classes) + 1.0) / (len(label) + classes)  # (C,)
    noise = h * shares[:, None, None]  # (C given, 1, G)
    even = np.full((classes, classes), (1.0 - config.trust) / max(classes - 1, 1))
    np.fill_diagonal(even, config.trust if classes > 1 else 1.0)
    confusion = np.repeat(even[None], people, axis=0)
    rho, omega = shares, np.asarray(config.grade_votes) / sum(config.grade_votes)
    for _ in range(config.iterations):
        about = confusion.transpose(0, 2, 1)[..., None] * (1.0 - h)  # (A, C given, C, G)
        vote = about + noise
        start = np.log(np.broadcast_to(rho, (units, classes)) if prior is None else prior)[..., None] + np.log(omega)
        evidence = table @ np.log(vote).reshape(people * classes, classes * len(h))
        post = _softmax(start + evidence.reshape(start.shape))  # (U, C, G)
        consensus = post.sum(axis=2)
        said = (table.T @ post.reshape(units, classes * len(h))).reshape(vote.shape)  # (A, C given, C, G)
        counts = (said * about / vote).sum(axis=3).transpose(0, 2, 1)  # votes that are about the class
        confusion = _shrunk(counts, even * config.trust_votes, config.strength)
        rho = (consensus[voted].sum(axis=0) + 1.0) / (voted.sum() + classes)
        grades = post[voted].sum(axis=(0, 1)) + np.asarray(config.grade_votes)
        omega = grades / grades.sum()
    return Beliefs(
        consensus=consensus, ambiguity=np.asarray(post.sum(axis=1) @ h), confusion=confusion, shares=shares,
        explained=np.asarray(post @ (1.0 - h)),
    )


def _softmax(scores: Floats) -> Floats:
    """Of each unit's (C, G) together, in place."""
    scores -= scores.max(axis=(1, 2), keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=(1, 2), keepdims=True)
    return scores


def _shrunk(counts: Floats, pseudo: Floats, strength: float) -> Floats:
    """(A, C, C) confusion matrices from expected votes, shrunk to the pooled one."""
    pooled = counts.sum(axis=0) + pseudo
    pooled /= pooled.sum(axis=1, keepdims=True)
    shrunk = counts + strength * pooled
    return np.asarray(shrunk / shrunk.sum(axis=2, keepdims=True))
