"""Attention in the `meta` of predicted regions, which Label Studio keeps: where the annotator's query looks.

    "meta": {"attention": {"version": "r12", "places": [{"kind": "text", "start": 6, "end": 12, "weight": 0.31}, ...]}}

Own predictions carry their annotator's attention, the consensus the mean of all annotators. Only the strongest places
are written. This costs one more reading of the content by the network, and so is a setting (`region_attention`).

Shape legend: B tasks, Q queries, T tokens, P places.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.labeling import LabelConfig
from backend.labeling.content import Content, unpack
from backend.registry import Loaded
from backend.services.features import Features
from backend.services.served import ReadyTask, TaskPredictions
from model.errors import ModelError

if TYPE_CHECKING:
    from model.explain.places import Places

STRONGEST = 5  # places of one region
PATIENCE_S = 0.5  # of a batch, for the tokenizer, which may be busy with somebody else's texts
Floats = NDArray[np.float64]


def with_attention(
    features: Features, loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask],
    predictions: Sequence[TaskPredictions],
) -> list[TaskPredictions]:
    """The predictions of these tasks with attention in their regions; without where a task's places are not known."""
    index = {name: row for row, name in enumerate(loaded.ladder.annotators)}
    found, until = [], time.monotonic() + PATIENCE_S
    for task, prediction, maps in zip(tasks, predictions, _maps(loaded, tasks), strict=True):
        places = _places(features, unpack(config.content(task.data, task=task.id)), task, until)
        if places is None:
            found.append(prediction)
            continue
        looked = places.sums(maps)  # (Q, P)
        own = {
            who: _written(each, places, looked[index.get(who, -1)], loaded.version.name)
            for who, each in prediction.own.items()
        }
        mean = looked[:-1].mean(0)
        agreed = prediction.consensus
        found.append(replace(
            prediction, own=own,
            consensus=None if agreed is None else _written(agreed, places, mean, loaded.version.name),
        ))
    return found


def _maps(loaded: Loaded, tasks: Sequence[ReadyTask]) -> list[Floats]:
    """(Q, T) of each task, in batches that fit in memory."""
    from model.explain.attention import attention
    from model.qumab.batches import pad

    committee = loaded.ladder.committee
    lengths = np.array([len(task.tokens) for task in tasks], np.int64)
    maps: list[Floats] = [np.empty((0, 0))] * len(tasks)
    for rows in committee.split(np.argsort(lengths, kind="stable"), lengths):
        batch = attention(committee.network, *pad([tasks[row].tokens for row in rows], committee.device))
        for row, one in zip(rows, batch.double().cpu().numpy(), strict=True):
            maps[row] = one[:, : lengths[row]]
    return maps


def _places(features: Features, content: Content, task: ReadyTask, until: float) -> Places | None:
    from model.explain.places import layout_places, text_places

    try:
        spans = features.spans(content.text, seconds=max(0.0, until - time.monotonic())) if content.text else None
    except ModelError:  # an encoder that does not say where its tokens stand
        return None
    if content.modalities:
        return layout_places(task.tokens, content.text, spans)
    if spans is None or len(spans) != len(task.tokens):
        return None
    return text_places(content.text, spans)


def _written(prediction: dict[str, Any], places: Places, weights: Floats, version: str) -> dict[str, Any]:
    """The prediction with `meta` in each region."""
    strongest = [at for at in np.argsort(-weights, kind="stable")[:STRONGEST] if weights[at] > 0]
    rows = []
    for at in strongest:
        place = {name: value for name, value in dataclasses.asdict(places.places[at]).items() if value is not None}
        rows.append({**place, "weight": round(float(weights[at]), 4)})
    meta = {"attention": {"version": version, "places": rows}}
    return {**prediction, "result": [{**region, "meta": {**region.get("meta", {}), **meta}}
                                     for region in prediction["result"]]}  # fmt: skip
