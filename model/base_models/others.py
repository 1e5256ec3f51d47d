"""What the other annotators said about a unit, through everybody's confusion matrix (Dawid-Skene).

    post[b, a, k] ~ rho[k] prod_{votes (b, j, l), j != a} pi_j[k, l]^trust
    p[b, a, l]    = sum_k post[b, a, k] pi_a[k, l]

An annotator's own vote on a unit is taken out of what is believed of it, so it never comes back to them. Each pi_a is
shrunk to the pooled matrix, which also stands for everybody unknown. Without votes on a unit the answer is the class
prior through the annotator's matrix. A single choice has one latent class out of C; several choices have a latent
yes or no for each of the C classes. numpy only: it needs neither content nor a network.

Shape legend: B units, R rows of answers, V = R - 1 columns of observed votes, P known annotators (their arrays have
P + 1 rows, the last for anybody unknown), G latent variables, K values of each, C classes, N votes. (G, K) is (1, C) or
(C, 2).
Index order of a confusion matrix: [annotator, latent variable, true value, given value].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Arrays, BaseModel, Batch, Codes, Fitted, Floats, Sample, Stored, rows_for
from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import VotePredictor
from model.crowd.room import require_confusions
from model.data.dataset import Targets
from model.data.scores import to_scores
from model.data.spaces import Space, ValueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentClasses(Fitted):
    """The latent classes of one control."""

    space: Space
    prior: Floats  # (G, K)
    confusion: Floats  # (P + 1, G, K, K)

    def scores(self, batch: Batch) -> Floats:
        votes, source = batch.votes, np.minimum(batch.source, len(self.confusion) - 1)
        unit, column = np.nonzero(votes.has)
        evidence = self._evidence(source[column], votes.y[unit, column], votes.weight[unit, column])  # (n, G, K)
        total = np.broadcast_to(exact(np.log(self.prior)), (len(votes.y), *self.prior.shape)).copy()  # (B, G, K)
        np.add.at(total, unit, evidence)
        others = np.broadcast_to(total[:, None], (len(total), len(source), *self.prior.shape)).copy()  # (B, R, G, K)
        others[unit, column] -= evidence  # their own
        return self._answers(np.einsum("bagk,agkl->bagl", _normalised(others), self.confusion[source]))

    def votes(self, sample: Sample) -> Floats:
        targets = sample.targets
        visible = np.zeros(len(targets), np.bool_) if sample.visible is None else sample.visible
        evidence = self._evidence(targets.annotator, targets.y, targets.weight) * visible[:, None, None]
        used, place = np.unique(targets.unit, return_inverse=True)
        total = np.zeros((len(used), *self.prior.shape))
        np.add.at(total, place, evidence)
        believed = _normalised(exact(np.log(self.prior)) + total[place] - evidence)
        return self._answers(np.einsum("ngk,ngkl->ngl", believed, self.confusion[targets.annotator]))

    def arrays(self) -> Arrays:
        return {"gaps.prior": self.prior, "gaps.confusion": self.confusion}

    def widened(self, people: int) -> LatentClasses:
        return replace(self, confusion=rows_for(self.confusion, people))

    def _evidence(self, giver: Codes, y: NDArray[np.floating], trust: NDArray[np.floating]) -> Floats:
        """What each vote says of the latent values: (n, G, K), in nats."""
        said = codes_of(self.space, y)  # (n, G)
        picked = self.confusion[giver[:, None], np.arange(said.shape[1]), :, said]  # (n, G, K true)
        return exact(np.log(picked) * trust[:, None, None])

    def _answers(self, p: Floats) -> Floats:
        """Probabilities of given values (..., G, K) as scores (..., C)."""
        return to_scores(self.space, p[..., 0, :] if self.space.kind is ValueKind.CLASS else p[..., 1])


@dataclass(frozen=True, kw_only=True)
class Others(BaseModel):
    """The base model; its strength is `LadderConfig.confusion_strength`."""

    name: ClassVar[str] = "others"
    title: ClassVar[str] = "The others’ labels"
    weight: ClassVar[float] = 0.0
    weight_observed: ClassVar[float] = 0.28
    reads_content: ClassVar[bool] = False
    reads_votes: ClassVar[bool] = True

    def fit(self, sample: Sample, start: Fitted | None = None) -> LatentClasses:
        return fit_latent(sample.targets, sample.people, sample.config.confusion_strength)

    def from_arrays(self, stored: Stored) -> LatentClasses | None:
        part = stored.arrays
        if "gaps.prior" not in part:
            return None
        return LatentClasses(space=stored.space, prior=part["gaps.prior"], confusion=part["gaps.confusion"])


def fit_latent(targets: Targets, annotators: int, strength: float) -> LatentClasses:
    """Fit on votes; those of somebody anonymous are left out. `strength`: pseudo-votes of the pooled matrix a row."""
    known = targets.select(targets.annotator < annotators)
    said = codes_of(known.space, known.y)
    single = known.space.kind is ValueKind.CLASS
    values = len(known.space.classes) if single else 2
    require_confusions("learning annotators' confusion matrices", annotators + 1, values)
    smoothing = 0.1 if single else 0.5
    method = DawidSkene(smoothing=smoothing, smoothing_prior=1.0 if single else 0.5)
    predictor = VotePredictor(strength=strength)
    units = tuple(str(unit) for unit in range(int(known.unit.max(initial=-1)) + 1))
    prior, confusion = [], []
    for variable in range(said.shape[1]):
        answers = AnswerMatrix.from_codes(
            units=units, annotators=[str(a) for a in range(annotators)], classes=[str(k) for k in range(values)],
            unit=known.unit, annotator=known.annotator, label=said[:, variable], weight=known.weight,
        )
        rho, matrices = _fitted(method.fit(answers), predictor, annotators, values)
        prior.append(rho)
        confusion.append(matrices)
    # In one piece, so that a loaded one is summed up in the same order.
    matrices_of_all = np.ascontiguousarray(np.stack(confusion, 1))
    return LatentClasses(space=known.space, prior=np.array(prior), confusion=matrices_of_all)


def codes_of(space: Space, y: NDArray[np.floating]) -> Codes:
    """Encoded votes (n, C) as the given value of each latent variable, (n, G)."""
    if space.kind is ValueKind.CLASS:
        return np.asarray(y.argmax(-1)[:, None])
    return np.asarray(y > 0.5).astype(np.int64)


def _fitted(found: Aggregate, predictor: VotePredictor, annotators: int, values: int) -> tuple[Floats, Floats]:
    """Prior (K,) and confusion (P + 1, K, K); uniform where there was nothing to fit on."""
    if found.counts is None:
        return np.full(values, 1.0 / values), np.full((annotators + 1, values, values), 1.0 / values)
    pooled = found.counts.sum(0) + predictor.floor
    pooled = pooled / pooled.sum(1, keepdims=True)
    return np.asarray(found.parameters["prior"]), np.concatenate([predictor.confusion(found), pooled[None]])


def exact(nats: Floats) -> Floats:
    """Kept to multiples of 2^-32: sums are then exact, so that a vote that is taken out leaves nothing behind, not even
    rounding, and the order of votes does not matter."""
    return np.asarray(np.round(nats * 2.0**32) / 2.0**32)


def _normalised(scores: Floats) -> Floats:
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True))
