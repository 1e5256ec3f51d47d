"""Baselines that ours is measured against, by name; see `base` for what each of them gets and owes."""

from collections.abc import Mapping

from model.evaluate.baselines.base import Baseline
from model.evaluate.baselines.deep import DEEP
from model.evaluate.baselines.factors import FactorModel
from model.evaluate.baselines.gaps import DawidSkeneGaps, VisibleMajority
from model.evaluate.baselines.naive import AnnotatorPrior, PooledBias, PooledContent

_ALL: tuple[Baseline, ...] = (
    AnnotatorPrior(), PooledContent(), PooledBias(),
    VisibleMajority(), DawidSkeneGaps(), FactorModel(), *DEEP,
)

BASELINES: Mapping[str, Baseline] = {baseline.name: baseline for baseline in _ALL}

__all__ = ["BASELINES", "Baseline"]
