"""What each known annotator makes of content beyond what all share, linear and cheap to ask of any unit.

    score_j(u) = pooled_j(u) + z(u) . U_j,    U_j ~ N(0, STRENGTH^2),    z(u): leading principal components of content

fitted for each annotator by Newton's method on their votes, everything else fixed. The query network says the same and
more, but reading a unit with it takes a hundred times longer; this is what a newcomer's earlier votes are compared
with, to find out whom they are like (`newcomer`). Nothing of it is served.

Shape legend: U units, B units asked for, A annotators, N votes, n votes of one annotator, F features, R components, G
questions with K values, L = K - 1 contrasts, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.base_models.others import codes_of
from model.coldstart.own_scores import contrasts, softmax
from model.data.dataset import Targets
from model.data.spaces import Space, ValueKind

Floats = NDArray[np.float64]
FEWEST = 10  # votes; of somebody with fewer nothing of their own is learned
_STRENGTH = 2.5  # standard deviation of what a deviation adds to the score of a typical unit
_COMPONENTS, _NUMBERS = 24, 96  # at most; the second of one annotator on one question
_STEPS, _CLOSE = 8, 1e-3
_SAMPLE = 4000  # units that components are found on


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Deviations of all annotators on one control."""

    basis: NDArray[np.float32]  # (F, R)
    weight: NDArray[np.float32]  # (A, R, C); 0 for those of whom nothing is known

    def scores(self, content: Floats) -> Floats:
        """What is added to the scores of each annotator, (B, A + 1, C); nothing for somebody unknown."""
        found = np.einsum("br,arc->bac", content @ self.basis, self.weight, optimize=True)
        return np.concatenate([found, np.zeros((len(found), 1, found.shape[2]))], 1)


def fit_people(space: Space, content: Floats, targets: Targets, shared: Floats, annotators: int) -> People:
    """Fit on votes `targets` (N,): content (U, F) of about unit length, and what is shared, scores (N, C)."""
    used = np.unique(targets.unit)
    some = used if len(used) <= _SAMPLE else np.random.default_rng(0).choice(used, _SAMPLE, replace=False)
    wide = 1 if space.kind is not ValueKind.CLASS else len(space.classes) - 1
    most = max(1, min(_COMPONENTS, _NUMBERS // max(wide, 1), len(some)))
    _, vectors = np.linalg.eigh(content[some].T @ content[some])
    basis = vectors[:, ::-1][:, :most]  # (F, R)
    weight = np.zeros((annotators, basis.shape[1], len(space.classes)))
    said = codes_of(space, targets.y)
    order = np.argsort(targets.annotator, kind="stable")
    ends = np.searchsorted(targets.annotator[order], np.arange(annotators + 1))
    for who in range(annotators):
        mine = order[ends[who] : ends[who + 1]]
        if len(mine) >= FEWEST:
            z = content[targets.unit[mine]] @ basis
            weight[who] = _fitted(space, z, shared[mine], said[mine], targets.weight[mine].astype(np.float64))
    return People(basis=basis.astype(np.float32), weight=weight.astype(np.float32))


def _fitted(space: Space, z: Floats, shared: Floats, said: NDArray[np.int64], weight: Floats) -> Floats:
    """(R, C) of one annotator, from components (n, R), shared scores (n, C) and values (n, G)."""
    if space.kind is ValueKind.CLASS:
        basis = contrasts(shared.shape[1])
        return np.asarray(_newton(z, shared, said[:, 0], weight) @ basis.T)
    columns = []
    for question in range(said.shape[1]):  # log-odds of present: the two values differ by it
        half = np.stack([-0.5 * shared[:, question], 0.5 * shared[:, question]], 1)
        there = contrasts(2)[1, 0] - contrasts(2)[0, 0]
        columns.append(_newton(z, half, said[:, question], weight)[:, 0] * there)
    return np.stack(columns, 1)


def _newton(z: Floats, shared: Floats, said: NDArray[np.int64], weight: Floats) -> Floats:
    """The mode in contrasts, (R, L)."""
    basis = contrasts(shared.shape[1])
    r, wide = z.shape[1], basis.shape[1]
    y = np.eye(shared.shape[1])[said]
    found = np.zeros((r, wide))
    for _ in range(_STEPS):
        p = softmax(shared + z @ found @ basis.T)
        slope = z.T @ (((p - y) @ basis) * weight[:, None]) + found / _STRENGTH**2
        mean = p @ basis
        curvature = np.einsum("nk,kl,km->nlm", p * weight[:, None], basis, basis, optimize=True)
        curvature -= np.einsum("nl,nm->nlm", mean * weight[:, None], mean)
        hessian = np.einsum("nr,nlm,ns->rlsm", z, curvature, z, optimize=True).reshape(r * wide, r * wide)
        hessian[np.diag_indices(r * wide)] += 1.0 / _STRENGTH**2
        step = np.linalg.solve(hessian, slope.ravel()).reshape(r, wide)
        found = found - step
        if float(np.abs(step).max(initial=0.0)) < _CLOSE:
            break
    return found
