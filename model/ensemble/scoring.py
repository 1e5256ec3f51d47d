"""A ladder against votes: the probabilities it gave to each held-out vote, and figures made of them.

Only votes with `scored` count, and only on held-out units: nothing here was trained, stacked or calibrated on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.ensemble.data import Dataset, Targets, Tokens
from model.ensemble.predictor import Ladder
from model.evaluate.metrics import summarise

TokensOf = Callable[[Sequence[str]], list[Tokens]]
_BATCH_UNITS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Held-out votes of one control with the probabilities each way of predicting gave, (n, C) each."""

    targets: Targets
    p: dict[str, NDArray[np.float64]]  # "served" and every rung


def score_heldout(ladder: Ladder, dataset: Dataset, tokens: TokensOf) -> dict[str, Scored]:
    """control -> its scored votes on held-out units; controls that the ladder lacks are left out."""
    wanted = {name: dataset.rows(name, dataset.heldout) for name in dataset.controls if name in ladder.controls}
    wanted = {name: targets.select(targets.scored) for name, targets in wanted.items()}
    parts: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in wanted}
    units = np.unique(np.concatenate([targets.unit for targets in wanted.values()] or [np.empty(0, np.int64)]))
    for start in range(0, len(units), _BATCH_UNITS):
        batch = units[start : start + _BATCH_UNITS]
        answer = ladder.predict(tokens([dataset.units[u] for u in batch]), dataset.annotators)
        for name, targets in wanted.items():
            here = np.flatnonzero(np.isin(targets.unit, batch))
            at = (np.searchsorted(batch, targets.unit[here]), targets.annotator[here])
            for way, p in {"served": answer[name].served, **answer[name].rungs}.items():
                column = parts[name].setdefault(way, np.empty((len(targets), p.shape[-1])))
                column[here] = p[at]
    return {name: Scored(targets=targets, p=parts[name]) for name, targets in wanted.items()}


def heldout_figures(ladder: Ladder, dataset: Dataset, tokens: TokensOf) -> dict[str, Any]:
    """control -> {"votes", "heldout": {way: metrics}, "weights", "temperature"}; JSON-able."""
    figures: dict[str, Any] = {}
    for name, scored in score_heldout(ladder, dataset, tokens).items():
        targets = scored.targets
        state = ladder.controls[name]
        figures[name] = {
            "votes": len(dataset.controls[name]),
            "classes": len(state.space.classes),
            "heldout": {way: summarise(targets.space, p, targets.y, targets.annotator) for way, p in scored.p.items()},
            "weights": dict(state.stack.weights),
            "temperature": state.stack.temperature,
        }
    return figures
