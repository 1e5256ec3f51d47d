"""Ours as a contender: one ladder is fitted on the training votes, and answers as `served` and as `network`.

The votes that a test unit shows go in as `given`, as they would in a live project. Nothing of a test task takes part in
the fit: the ladder's own folds, early stopping, stacking and calibration all lie within the training tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from model.config import LadderConfig
from model.data.votes import Votes
from model.ensemble.ladder import Ladder, TrainingSet, fit
from model.evaluate.baselines.base import Fold
from model.evaluate.contenders import OURS, Answers, Ready


@dataclass(frozen=True, kw_only=True)
class _ReadyLadder:
    ladder: Ladder
    fold: Fold
    models: tuple[str, ...]
    control: str
    notes: Mapping[str, Any]

    def answer(self, units: Sequence[str], visible: Votes | None) -> Answers:
        found = self.ladder.predict(
            self.fold.tokens(units), self.fold.annotators, units=units, given=visible,
            texts=self.fold.texts and self.fold.texts(units),
        )
        ours = found[self.control]
        ways = {"served": ours.served, "network": ours.network}
        return Answers(p=dict(zip(self.models, (ways[way] for way in OURS), strict=False)), consensus=ours.consensus)


@dataclass(frozen=True, kw_only=True)
class Ours:
    """The ladder with a configuration; `label` tells variants apart ("served@paper")."""

    config: LadderConfig = field(default_factory=LadderConfig)
    label: str = ""

    uses_visible: bool = True
    needs_visible: bool = False

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(f"{way}@{self.label}" if self.label else way for way in OURS)

    def fit(self, fold: Fold) -> Ready:
        control = fold.votes.controls[0]
        data = TrainingSet(
            votes=fold.votes, spaces={control: fold.space}, tokens=fold.tokens, heldout=lambda unit: False,
            texts=fold.texts,
        )
        result = fit(data, replace(self.config, seed=fold.seed), device=fold.device)
        figures = result.figures["controls"][control]
        notes = {
            "weights": figures["weights"], "temperature": figures["temperature"], "epochs": result.figures["epochs"],
        }
        return _ReadyLadder(ladder=result.ladder, fold=fold, models=self.models, control=control, notes=notes)
