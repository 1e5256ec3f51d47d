"""Baselines that ours is measured against, by name; see `base` for what each of them gets and owes."""

from collections.abc import Mapping

from model.evaluate.baselines.base import Baseline

_ALL: tuple[Baseline, ...] = ()

BASELINES: Mapping[str, Baseline] = {baseline.name: baseline for baseline in _ALL}

__all__ = ["BASELINES", "Baseline"]
