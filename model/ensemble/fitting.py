"""`fit`: votes and tokens to a `Ladder` and its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.config import LadderConfig
from model.ensemble.data import Dataset, TrainingSet, build_dataset, check_tokens
from model.ensemble.predictor import ControlState, Ladder
from model.ensemble.prior import fit_prior
from model.ensemble.scoring import heldout_figures
from model.ensemble.stack import Stack

Progress = Callable[[float, str], None]


def silent(fraction: float, note: str) -> None:
    """The progress callback of callers who do not care."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted ladder, not yet judged."""

    ladder: Ladder
    figures: dict[str, Any]  # JSON-able


def fit(
    data: TrainingSet, config: LadderConfig, *, previous: Ladder | None = None, progress: Progress = silent,
    device: str = "cpu",
) -> Fit:
    """Fit every rung, pool and calibrate them. `progress` gets a fraction and a note; it may raise to stop.

    With `previous`, training goes on from it: its annotators keep their index. Raises NotEnoughVotes and ModelError.
    """
    started = time.monotonic()
    progress(0.0, "reading votes")
    dataset = build_dataset(data, config, previous.annotators if previous else ())
    dim = check_tokens(dataset.units[:1], data.tokens(dataset.units[:1]))
    training = ~dataset.heldout
    controls = {name: _fit_control(dataset, name, training, config) for name in dataset.controls}
    ladder = Ladder(annotators=dataset.annotators, controls=controls, dim=dim, config=config, device=device)
    progress(0.95, "scoring on held-out units")
    figures: dict[str, Any] = {"controls": heldout_figures(ladder, dataset, data.tokens)}
    figures["seconds"] = time.monotonic() - started
    progress(1.0, "fitted")
    return Fit(ladder=ladder, figures=figures)


def _fit_control(dataset: Dataset, name: str, training: Sequence[bool] | Any, config: LadderConfig) -> ControlState:
    targets = dataset.rows(name, training)
    people, classes = len(dataset.annotators), targets.y.shape[1]
    stack = Stack(weights={"prior": 1.0}, temperature=1.0, bias=np.zeros((people + 1, classes)))
    panel = np.bincount(dataset.controls[name].annotator, minlength=people) > 0
    return ControlState(
        space=targets.space, prior=fit_prior(targets, people, config.prior_strength), stack=stack, panel=panel,
    )
