"""`fit`: votes and tokens to a `Ladder`, with the votes and scores that the gate looks at."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from model.base_models.pooled import with_surface
from model.base_models.registry import starting_weights
from model.coldstart.adapting import content_of
from model.coldstart.people import fit_people
from model.config import LadderConfig
from model.data.dataset import Dataset, TrainingSet, build_dataset
from model.data.numbers import NumberBins, to_json
from model.data.scores import to_probabilities
from model.ensemble.check import calibrated
from model.ensemble.consensus import fit_panel_noise
from model.ensemble.control import ControlState
from model.ensemble.crossfit import CrossFit, crossfit
from model.ensemble.floor import FloorFit, fit_floor
from model.ensemble.gaps import Gaps, fit_gaps
from model.ensemble.out_of_sample import OutOfSample
from model.ensemble.predictor import Ladder
from model.ensemble.scoring import Scored, score_both, summaries
from model.ensemble.stack import Stack, fit_stack
from model.qumab.batches import TokenStore

Progress = Callable[[float, str], None]
Floats = NDArray[np.float64]


def silent(fraction: float, note: str) -> None:
    """The progress callback of callers who do not care."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted ladder, not yet judged."""

    ladder: Ladder
    figures: dict[str, Any]  # JSON-able
    heldout: dict[str, Scored]  # control -> votes on held-out units with the probabilities they got
    cross_validation: dict[str, Scored]  # the same for training votes, by base models and a stack without their fold
    out_of_sample: dict[str, Scored]  # like `cross_validation`, with the votes that may not score anything too
    units: tuple[str, ...]  # (U,) that `targets.unit` points into
    features: NDArray[np.float32]  # (U, D) mean tokens


def fit(
    data: TrainingSet, config: LadderConfig, *, previous: Ladder | None = None, progress: Progress = silent,
    device: str = "cpu",
) -> Fit:
    """Fit every base model, stack and calibrate them. `progress` gets a fraction and a note; it may raise to stop.

    With `previous`, training goes on from it: its annotators keep their index, its network is the start. The result is
    the same, bit for bit, for the same seed and input on the CPU with the same number of threads. Raises
    NotEnoughVotes when there is nothing to learn from, ModelError for unusable features.
    """
    started = time.monotonic()
    progress(0.0, "reading votes")
    if previous and any(map(data.anonymous, previous.annotators)):
        previous = None  # its network has queries for nobody; growing cannot take them out
    dataset = build_dataset(data, config, previous.annotators if previous else ())
    progress(0.02, "loading features")
    store = TokenStore(
        dataset.units, data.tokens, trained=~dataset.heldout, resident_mb=config.resident_mb,
        device=torch.device(device),
    )
    texts = None if data.texts is None else data.texts(dataset.units)
    features = with_surface(store.mean_tokens, texts if texts is not None and any(texts) else None)
    progress(0.05, "training")
    result = crossfit(
        dataset, store, config, previous=previous, device=device, features=features,
        progress=lambda share: progress(0.05 + 0.85 * share, "training"),
    )
    progress(0.92, "stacking and calibrating")
    found = {name: _fit_control(dataset, name, result, config) for name in dataset.controls}
    controls = {name: _with_people(dataset, name, features, each.state) for name, each in found.items()}
    ladder = Ladder(
        annotators=dataset.annotators, controls=controls, committee=result.committee, dim=store.dim, config=config,
        learned=result.learned, begun=result.begun, fingerprint=result.fingerprint,
    )
    never = dict(zip(dataset.units, dataset.heldout.tolist(), strict=True))
    held = np.array([never.get(unit, False) for unit in data.votes.units], np.bool_)
    ladder = calibrated(ladder, data.votes.select(held[data.votes.unit]), data.tokens, data.texts)
    progress(0.95, "scoring on held-out units")
    heldout, gaps = score_both(ladder, dataset, data)
    every = {name: _cross_validated(item, found[name].served) for name, item in result.votes.items()}
    cross = {name: item.select(item.targets.scored) for name, item in every.items()}
    figures = _figures(dataset, ladder, result, heldout, cross, gaps)
    figures["seconds"] = time.monotonic() - started
    progress(1.0, "fitted")
    return Fit(
        ladder=ladder, figures=figures, heldout=heldout, cross_validation=cross, out_of_sample=every,
        units=dataset.units, features=store.mean_tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """A control, and the scores (N, C) that it would have served its votes with had it not seen their fold."""

    state: ControlState
    served: Floats


def _fit_control(dataset: Dataset, name: str, result: CrossFit, config: LadderConfig) -> _Fitted:
    """The base models fitted again on all training votes, and the stack on their out-of-sample scores or as it was
    kept."""
    sample, item, carried = result.samples[name], result.votes[name], result.carried_over.get(name)
    people, scored = sample.people, item.targets.scored
    panel = np.bincount(dataset.controls[name].annotator, minlength=people)[:people] > 0
    fitted = {base: found.on_all(sample) for base, found in result.found[name].items()}
    stack = _stack(item, scored, people, config) if carried is None else carried.stack
    floor, served = _floor(dataset, name, item, stack, config)
    if carried is not None:
        return _Fitted(served=served, state=replace(
            carried, base_models={**carried.base_models, **fitted}, panel=panel,
            floor=None if floor is None else floor.floor,
        ))
    stacked = stack.pool_votes({base: s[scored] for base, s in item.scores.items()}, item.targets.annotator[scored])
    gaps, on_stack = fit_gaps(item, stack, scored, people, config, floor)
    return _Fitted(served=served, state=ControlState(
        space=sample.targets.space, base_models={**fitted, **on_stack}, stack=stack, panel=panel, gaps=gaps,
        panel_noise=fit_panel_noise(sample.targets.space, stacked, item.targets.unit[scored], item.targets.y[scored]),
        floor=None if floor is None else floor.floor,
    ))


def _with_people(
    dataset: Dataset, name: str, features: NDArray[np.float32], state: ControlState
) -> ControlState:
    """With what newcomers are compared with."""
    learn = dataset.rows(name, ~dataset.heldout)
    return replace(state, people=fit_people(
        state.space, content_of(state.pooled, features), learn, state.pooled.of_votes(features, learn),
        len(dataset.annotators),
    ))


def _stack(item: OutOfSample, rows: NDArray[np.bool_], people: int, config: LadderConfig) -> Stack:
    targets = item.targets.select(rows)
    return fit_stack(
        targets.space, {name: scores[rows] for name, scores in item.scores.items()}, targets.annotator, targets.y,
        targets.weight, people, stack_strength=config.stack_strength, bias_strength=config.bias_strength,
        centre_of=starting_weights(observed=False),
    )


def _floor(
    dataset: Dataset, name: str, item: OutOfSample, stack: Stack, config: LadderConfig
) -> tuple[FloorFit | None, Floats]:
    """The floor, where there is to be one; and out-of-sample scores (N, C) of what is served."""
    people, targets = len(dataset.annotators), item.targets
    without = {
        int(fold): _stack(item, targets.scored & (item.fold != fold), people, config) for fold in np.unique(item.fold)
    }
    if config.floor and len(targets):
        found = fit_floor(
            item, stack, without, lambda fold: dataset.rows(name, ~dataset.heldout & (dataset.fold != fold)), people
        )
        return found, found.served
    served = np.empty(targets.y.shape, np.float64)
    for fold, each in without.items():
        here = item.fold == fold
        served[here] = each.pool_votes({name: s[here] for name, s in item.scores.items()}, targets.annotator[here])
    return None, served


def _cross_validated(item: OutOfSample, served: Floats) -> Scored:
    """Probabilities of training votes, each by base models and a stack that were fitted without its fold."""
    ways = {"served": served, **item.scores}
    space = item.targets.space
    return Scored(targets=item.targets, p={way: to_probabilities(space, scores) for way, scores in ways.items()})


def _gap_figures(gaps: Gaps | None, scored: Scored) -> dict[str, Any]:
    """How held-out votes are predicted when all others' votes on their units are known, and by which weights."""
    if gaps is None:
        return {}
    return {
        "heldout": summaries(scored), "spread": gaps.panel_noise,
        "weights": {"few": dict(gaps.few.weights), "many": dict(gaps.many.weights)},
        "temperature": {"few": gaps.few.temperature, "many": gaps.many.temperature},
    }


def _figures(
    dataset: Dataset, ladder: Ladder, result: CrossFit, heldout: dict[str, Scored], cross: dict[str, Scored],
    gaps: dict[str, Scored],
) -> dict[str, Any]:
    controls = {}
    for name, state in ladder.controls.items():
        controls[name] = {
            "votes": len(dataset.controls[name]),
            "training_votes": len(dataset.rows(name, ~dataset.heldout)),
            "classes": len(state.space.classes),
            **({"bins": to_json(state.space)} if isinstance(state.space, NumberBins) else {}),
            "heldout": summaries(heldout[name]),
            "cross_validation": summaries(cross[name]),
            "weights": dict(state.stack.weights),
            "gaps": _gap_figures(state.gaps, gaps[name]),
            "temperature": state.stack.temperature,
            "spread": state.panel_noise,
            "pooled_penalty": state.pooled.penalty,
        }
    return {
        "controls": controls, "epochs": result.history.epochs, "best_epoch": result.history.best_epoch,
        "warm": result.warm, "brief": result.brief, "kept": sorted(result.carried_over),
        "annotators": len(dataset.annotators), "units": len(dataset.units), "heldout_units": int(dataset.heldout.sum()),
    }
