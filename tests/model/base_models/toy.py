"""A base model from outside the package: what share of the others gave each label. For tests of the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from model.base_models.base import Arrays, BaseModel, Batch, Fitted, Floats, Sample, Stored, rows_for
from model.data.scores import to_scores
from model.data.spaces import Space


@dataclass(frozen=True, kw_only=True)
class FittedShare(Fitted):
    space: Space
    usual: Floats  # (P + 1, C) shares of each annotator's own labels

    def scores(self, batch: Batch) -> Floats:
        has = batch.votes.has[..., None]
        given = batch.votes.y * has
        total, count = given.sum(1)[:, None], has.sum(1)[:, None].astype(np.float64)  # (B, 1, C), (B, 1, 1)
        own = np.pad(given, ((0, 0), (0, 1), (0, 0))), np.pad(has, ((0, 0), (0, 1), (0, 0)))
        usual = self.usual[np.minimum(batch.source, len(self.usual) - 1)]
        return to_scores(self.space, (total - own[0] + 2.0 * usual) / (count - own[1] + 2.0))

    def votes(self, sample: Sample) -> Floats:
        targets = sample.targets
        visible = np.zeros(len(targets)) if sample.visible is None else sample.visible * 1.0
        units = int(targets.unit.max(initial=-1)) + 1
        total, count = np.zeros((units, targets.y.shape[1])), np.zeros(units)
        np.add.at(total, targets.unit, targets.y * visible[:, None])
        np.add.at(count, targets.unit, visible)
        share = total[targets.unit] - targets.y * visible[:, None] + 2.0 * self.usual[targets.annotator]
        return to_scores(self.space, share / (count[targets.unit] - visible + 2.0)[:, None])

    def arrays(self) -> Arrays:
        return {"share.usual": self.usual}

    def widened(self, people: int) -> FittedShare:
        return replace(self, usual=rows_for(self.usual, people))


@dataclass(frozen=True, kw_only=True)
class Share(BaseModel):
    name: ClassVar[str] = "share"
    title: ClassVar[str] = "How many of the others gave each label"
    weight: ClassVar[float] = 0.0
    weight_observed: ClassVar[float] = 0.2
    reads_content: ClassVar[bool] = False
    reads_votes: ClassVar[bool] = True

    def fit(self, sample: Sample, start: Fitted | None = None) -> FittedShare:
        targets, usual = sample.targets, np.ones((sample.people + 1, sample.targets.y.shape[1]))
        np.add.at(usual, targets.annotator, targets.y)
        return FittedShare(space=targets.space, usual=usual / usual.sum(1, keepdims=True))

    def from_arrays(self, stored: Stored) -> FittedShare | None:
        if "share.usual" not in stored.arrays:
            return None
        return FittedShare(space=stored.space, usual=stored.arrays["share.usual"])
