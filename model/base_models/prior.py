"""The annotator prior: how often each annotator gives each label, whatever the content.

    p[a, c] = (n[a, c] + k g[c]) / (n[a] + k),   g = everybody's smoothed frequencies,   k = `prior_strength`

With several choices the frequencies are those of each class being chosen. The last row stands for an unknown annotator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Arrays, BaseModel, Batch, Fitted, Floats, Sample, Stored, rows_for, rows_of
from model.data.dataset import Targets
from model.data.scores import to_scores
from model.data.spaces import Space, ValueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPrior(Fitted):
    """The frequencies of one control."""

    space: Space
    table: Floats  # (P + 1, C) probabilities

    def scores(self, batch: Batch) -> Floats:
        found = to_scores(self.space, self.table)
        return rows_of(np.broadcast_to(found, (len(batch.votes.has), *found.shape)), batch.source)

    def votes(self, sample: Sample) -> Floats:
        return np.asarray(to_scores(self.space, self.table)[sample.targets.annotator])

    def arrays(self) -> Arrays:
        return {"prior": self.table}

    def widened(self, people: int) -> FittedPrior:
        return replace(self, table=rows_for(self.table, people))


@dataclass(frozen=True, kw_only=True)
class Prior(BaseModel):
    """The base model; its strength is `LadderConfig.prior_strength`."""

    name: ClassVar[str] = "prior"
    title: ClassVar[str] = "How often each annotator gives each label"
    weight: ClassVar[float] = 0.1
    weight_observed: ClassVar[float] = 0.04
    reads_content: ClassVar[bool] = False
    reads_votes: ClassVar[bool] = False

    def fit(self, sample: Sample, start: Fitted | None = None) -> FittedPrior:
        table = fit_prior(sample.targets, sample.people, sample.config.prior_strength)
        return FittedPrior(space=sample.targets.space, table=table)

    def from_arrays(self, stored: Stored) -> FittedPrior:
        return FittedPrior(space=stored.space, table=stored.arrays["prior"])


def fit_prior(targets: Targets, annotators: int, strength: float) -> NDArray[np.float64]:
    """Probabilities (A + 1, C); the last row is for an annotator without votes."""
    classes = targets.y.shape[1]
    weighted = targets.y * targets.weight[:, None]
    count = np.zeros((annotators + 1, classes))
    np.add.at(count, targets.annotator, weighted)
    total = np.bincount(targets.annotator, weights=targets.weight, minlength=annotators + 1)
    start = 1.0 / classes if targets.space.kind is ValueKind.CLASS else 0.5
    everybody = (weighted.sum(0, dtype=np.float64) + start) / (float(targets.weight.sum()) + 1.0)
    own = (count + strength * everybody) / (total + strength)[:, None]
    return np.vstack([own[:annotators], everybody])
