"""A floor for each annotator: what is served is a mixture whose weights are learned from their own votes.

    p[b, a] = sum_e share[a, e] p_e[b, a],      share[a, e] ~ prior[e] exp(-loss_e(votes of a))

over four ways to answer: the stack that everybody shares; the same with weights of the annotator's own, shrunk to
everybody's; their frequencies; and pooled content with their bias. The losses are those of votes that neither a base
model nor a stack was fitted on. By construction the mixture loses at most log(1 / prior[e]) in all, not a vote, to the
best of the four on these votes (Vovk 1990), so nobody is served much worse than by their own habits, and somebody of
whom little is known is served by the common stack.

A class that nobody ever gave gets at least what a rule of succession says of it (Krichevsky and Trofimov 1981), with
half a vote for each answer that there is: 1/2 / (N + C / 2). No model can know better.
Where others voted on a unit, the stacks of `gaps` are mixed with this answer and the frequencies in the same way.

Shape legend: B units, P known annotators (arrays have P + 1 rows, the last for anybody unknown), R base models, E ways,
N votes, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from model.base_models.prior import fit_prior
from model.data.dataset import Targets
from model.data.scores import loss_and_slope, losses, to_probabilities, to_scores
from model.data.spaces import Space, ValueKind
from model.ensemble.out_of_sample import OutOfSample
from model.ensemble.stack import Stack

Floats = NDArray[np.float64]
# Out of sample the network is that of a fold, weaker than the one that answers, so votes speak too well of the others:
# the stack gets most. On affective_text and toxicity_spans a prior of .45 for it lost .008 nats a vote, .8 lost .004.
PRIOR = np.array([0.88, 0.05, 0.05, 0.02])  # stack, own weights, frequencies, pooled
GAP_PRIOR = np.array([0.88, 0.07, 0.05])  # stack of the gaps, answer without votes, frequencies
_OWN_STRENGTH = 15.0  # pseudo-votes that pull an annotator's weights to everybody's


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What was learned of each annotator's mixture, for one control."""

    share: Floats  # (P + 1, E) of the ways, adds up to 1
    own: Floats  # (P + 1, R) what an annotator's weights differ by from those of the stack, base models by name
    frequencies: Floats  # (P + 1, C) probabilities
    unseen: Floats  # (C,) the least probability of a class that nobody gave; 0 for the others

    def serve(self, space: Space, stacked: Floats, scores_of: Mapping[str, Floats]) -> Floats:
        """Scores (B, P + 1, C) of what is served, from those of the stack and of the base models."""
        scores = np.stack([scores_of[name] for name in sorted(scores_of)])
        own = stacked + np.einsum("ar,rbac->bac", self.own, scores)
        always = np.broadcast_to(to_scores(space, self.frequencies), stacked.shape)
        found = mixed(space, self.share, [stacked, own, always, scores_of["pooled"]])
        return to_scores(space, self.raised(space, found))

    def raised(self, space: Space, p: Floats) -> Floats:
        """Probabilities (..., C) with the least there is for classes that nobody gave."""
        if not self.unseen.any():
            return p
        if space.kind is ValueKind.CLASS:
            least = np.maximum(p, self.unseen)
            return np.asarray(least / least.sum(-1, keepdims=True))
        return np.maximum(p, self.unseen)

    def serve_gaps(
        self, space: Space, share: Floats, conditioned: Floats, alone: Floats, source: NDArray[np.int64]
    ) -> Floats:
        """The same where others voted, from the scores of the stacks of `gaps` and from those without votes.

        `share` (R, 3) and scores (B, R, C) have a row for each answer, `source` (R,) says whose it is.
        """
        always = np.broadcast_to(to_scores(space, self.frequencies)[source], alone.shape)
        return to_scores(space, self.raised(space, mixed(space, share, [conditioned, alone, always])))


def mixed(space: Space, share: Floats, ways: Sequence[Floats]) -> Floats:
    """Probabilities (..., A, C) of a mixture by share (A, E) of ways, scores (..., A, C) each."""
    found = np.zeros(ways[0].shape)
    for e, scores in enumerate(ways):
        found += share[:, e, None] * to_probabilities(space, scores)
    return found


def shares(prior: Floats, lost: Floats) -> Floats:
    """Shares (A, E) of ways that lost (A, E) nats in all."""
    log = np.log(prior) - lost
    share = np.exp(log - log.max(1, keepdims=True))
    return np.asarray(share / share.sum(1, keepdims=True))


def lost_by(annotator: NDArray[np.integer], lost: Sequence[Floats], people: int) -> Floats:
    """Nats (P + 1, E) that each way lost in all by votes (N,); nothing is held of anybody unknown."""
    found = np.zeros((people + 1, len(lost)))
    for e, each in enumerate(lost):
        found[:people, e] = np.bincount(annotator, weights=each, minlength=people)[:people]
    return found


def frequencies_of(targets: Targets, people: int) -> Floats:
    """How often each annotator gives each label (P + 1, C), with half a vote for each class dealt as everybody does."""
    classes = targets.y.shape[1]
    return fit_prior(targets, people, 0.5 * classes if targets.space.kind is ValueKind.CLASS else 1.0)


def fit_own(
    space: Space, base: Floats, scores_of: Mapping[str, Floats], annotator: NDArray[np.integer],
    y: NDArray[np.floating], weight: NDArray[np.floating], people: int,
) -> Floats:
    """What each annotator's weights differ by (P + 1, R), on votes with scores (N, C) by the stack and by the base
    models; a convex problem. They may turn a base model round: somebody may mean the opposite."""
    scores = np.stack([scores_of[name] for name in sorted(scores_of)])  # (R, N, C)
    known = annotator < people

    def objective(flat: Floats) -> tuple[float, Floats]:
        own = np.concatenate([flat.reshape(people, len(scores)), np.zeros((1, len(scores)))])
        loss, slope = loss_and_slope(space, base + np.einsum("nr,rnc->nc", own[annotator], scores), y)
        by_vote = np.einsum("rnc,nc->rn", scores, slope * (weight * known)[:, None])
        gradient = np.stack([np.bincount(annotator, each, people + 1)[:people] for each in by_vote], 1)
        value = float(loss @ (weight * known)) + 0.5 * _OWN_STRENGTH * float(np.square(flat).sum())
        return value, gradient.ravel() + _OWN_STRENGTH * flat

    begin = np.zeros(people * len(scores))
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60, "ftol": 1e-6}).x
    return np.concatenate([found.reshape(people, len(scores)), np.zeros((1, len(scores)))])


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorFit:
    """A floor, and the votes that it was learned from as it would have served them had it not seen their fold."""

    floor: Floor
    served: Floats  # (N, C) scores
    frequencies: Floats  # (N, C) scores


def fit_floor(
    item: OutOfSample, stack: Stack, without: Mapping[int, Stack], learn: Callable[[int], Targets], people: int,
) -> FloorFit:
    """`without` holds a stack for each fold that has not seen it; `learn` gives the votes outside a fold (-1: all)."""
    targets, space = item.targets, item.targets.space
    folds = [int(fold) for fold in np.unique(item.fold)]
    ways = np.empty((len(PRIOR), *targets.y.shape))  # (E, N, C)
    ways[3] = item.scores["pooled"]
    for fold in folds:
        here = item.fold == fold
        rest = targets.scored & (~here if len(folds) > 1 else True)
        stacked = without[fold].pool_votes(item.scores, targets.annotator)
        own = _own_on(item, stacked, rest, people)
        ways[0, here], ways[1, here] = stacked[here], (stacked + _moved(own, item))[here]
        ways[2, here] = to_scores(space, frequencies_of(learn(fold), people))[targets.annotator[here]]
    lost = [losses(space, way, targets.y) * targets.weight * targets.scored for way in ways]
    every = learn(-1)
    floor = Floor(
        share=_known(shares(PRIOR, lost_by(targets.annotator, lost, people))),
        frequencies=frequencies_of(every, people), unseen=_unseen(every),
        own=_own_on(item, stack.pool_votes(item.scores, targets.annotator), targets.scored, people),
    )
    p = np.empty(targets.y.shape)
    for fold in folds:
        here = item.fold == fold
        others = [each * (~here if len(folds) > 1 else 1.0) for each in lost]
        share = _known(shares(PRIOR, lost_by(targets.annotator, others, people)))[targets.annotator[here]]
        p[here] = floor.raised(space, mixed(space, share, list(ways[:, here])))
    return FloorFit(floor=floor, served=to_scores(space, p), frequencies=ways[2])


def _known(share: Floats) -> Floats:
    """Anybody unknown is served by the stack alone."""
    share[-1] = np.eye(share.shape[1])[0]
    return share


def _own_on(item: OutOfSample, stacked: Floats, rows: NDArray[np.bool_], people: int) -> Floats:
    targets = item.targets
    return fit_own(
        targets.space, stacked[rows], {name: scores[rows] for name, scores in item.scores.items()},
        targets.annotator[rows], targets.y[rows], targets.weight[rows], people,
    )


def _moved(own: Floats, item: OutOfSample) -> Floats:
    scores = np.stack([item.scores[name] for name in sorted(item.scores)])
    return np.asarray(np.einsum("nr,rnc->nc", own[item.targets.annotator], scores))


def _unseen(targets: Targets) -> Floats:
    given = (targets.y * targets.weight[:, None]).sum(0)
    answers = targets.y.shape[1] if targets.space.kind is ValueKind.CLASS else 2
    return np.where(given > 0.0, 0.0, 0.5 / (float(targets.weight.sum()) + 0.5 * answers))
