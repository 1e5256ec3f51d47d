"""A batch of votes on tasks that differ: expected change, lowered near tasks that are in the batch already.

    gain(u, a | batch) = expected change(u, a) * min(1, min_{v in batch} |f_u - f_v| / scale)

f are the leading principal components of the features, or the consensus where there are none; `scale` is the median
distance from the middle. It matters where tasks resemble each other and a batch is large: the same question is not
asked ten times before the first answer is in.

Shape legend: U units, A annotators, D features, E components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from model.acquisition.base import Ask, Floats, Situation, asks
from model.acquisition.greedy import Limits, Purse
from model.acquisition.policies import ExpectedChange

_COMPONENTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DiverseBatch(ExpectedChange):
    """Expected change, over tasks unlike each other. Scores are those of expected change; the batch is what differs."""

    name: ClassVar[str] = "diverse-batch"
    reason: ClassVar[str] = (
        "Such a vote is expected to change the consensus ({confidence:.0%} today), on a task unlike the others asked."
    )
    candidates: int = 8  # tasks that are compared, for each vote that the budget pays for

    def _choose(self, situation: Situation, limits: Limits) -> list[Ask]:
        scores = self.scores(situation)
        rates = scores / limits.costs
        purse = Purse.full(limits)
        votes = limits.budget / purse.cheapest if len(limits.costs) else 0.0
        most = int(min(len(scores), max(64.0, self.candidates * votes)))
        best = np.argsort(-rates.max(axis=1, initial=-np.inf), kind="stable")[:most]
        place = _components(situation.consensus if situation.features is None else situation.features)[best]
        scale = max(float(np.median(np.linalg.norm(place - place.mean(axis=0), axis=1))) if len(place) else 0.0, 1e-12)
        near, rates = np.ones(len(best)), rates[best].copy()
        while not purse.empty and len(rates):
            value = rates.max(axis=1, initial=-np.inf) * near
            row = int(value.argmax())
            if not np.isfinite(value[row]):
                break
            person, unit = int(rates[row].argmax()), int(best[row])
            if purse.allows(unit, person):
                purse.buy(unit, person, float(scores[unit, person]))
                distance = np.linalg.norm(place - place[row], axis=1) / scale
                near = np.minimum(near, np.maximum(distance, 1e-3))
            rates[row, person] = -np.inf
        return asks(*purse.chosen)


def _components(features: Floats) -> Floats:
    """(U, E) the leading principal components, all of the same spread."""
    if not len(features):
        return features
    centred = features - features.mean(axis=0, keepdims=True)
    if centred.shape[1] > _COMPONENTS:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        centred = centred @ vectors[:, -_COMPONENTS:]
    return np.asarray(centred / np.maximum(centred.std(axis=0, keepdims=True), 1e-12))
