"""Answers on regions beside those on tasks: what each annotator would say of each region that they may be shown.

Label Studio shows an answer on a region only where the region stands in the same prediction under the same id, so a
prediction carries both. By default these are the regions that the task came with, and in an annotator's own prediction
those that they drew themselves: nobody is shown what others drew. `shared_regions` adds places that two or more chose.

Invariants: one forward over all regions of all tasks; an annotator's own vote on a region does not move their answer
there (see `model.ensemble.ladder`); a region that cannot be read is left out.
Shape legend: R regions, A annotators, C classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from backend.labeling import LabelConfig
from backend.labeling.region_content import read_region
from backend.ports import Store
from backend.records import StoredVote
from backend.registry import Loaded
from backend.services.features import Features
from backend.services.regions import OURS, Region, Regions, add, known_regions, regions_in
from backend.services.served import Offers, ReadyTask, TaskPredictions, Tokens, as_votes, consensus_version, own_version
from model.spaces import Value

_COPIED = ("from_name", "to_name", "type", "value", "original_width", "original_height", "image_rotation", "item_index")
Entries = list[dict[str, Any]]


def regions_for(
    store: Store, project: str, loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask],
    offered: Mapping[int, Sequence[Mapping[str, Any]]],
) -> dict[int, Regions]:
    """Task -> its regions; {} where the version answers for none. `offered`: results that came with a request."""
    if not any(name in loaded.ladder.spaces for name in config.regional):
        return {}
    found = known_regions(store, project, config, [task.id for task in tasks])
    for task_id, result in offered.items():
        for place, region in regions_in(config, result, came=True).items():
            add(found.setdefault(task_id, {}), place, region)
    return found


def with_regions(
    features: Features, loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask],
    predictions: Sequence[TaskPredictions], votes: Sequence[StoredVote], regions: Mapping[int, Regions], *,
    shared: bool, seconds: float | None,
) -> list[TaskPredictions]:
    """The predictions of these tasks with answers on regions. `seconds`: what may be spent on encoding; None: all."""
    wanted = [(row, region) for row, task in enumerate(tasks) for region in regions.get(task.id, {}).values()
              if any(region.shown_to(who, shared=shared) for who in (None, *task.annotators))]
    read = [read_region(config, tasks[row].data, region.drawn, task=tasks[row].id).content for row, region in wanted]
    tokens = _tokens(features, loaded, [content for content in read if content], seconds)
    known = [(row, region, tokens[content]) for (row, region), content in zip(wanted, read, strict=True)
             if content in tokens]
    if not known:
        return list(predictions)
    people = sorted({who for task in tasks for who in task.annotators})
    answers = _answers(loaded, config, tasks, known, people, votes)
    found = list(predictions)
    for at, task in enumerate(tasks):
        mine = [(region, answers[place]) for place, (row, region, _) in enumerate(known) if row == at]
        found[at] = _added(found[at], task, mine, people, loaded.version.name, shared)
    return found


def _tokens(
    features: Features, loaded: Loaded, contents: Sequence[str], seconds: float | None
) -> dict[str, Tokens]:
    """Content -> tokens, of those that are at hand in time."""
    if seconds is None:
        return dict(zip(contents, features.texts(contents), strict=True))
    encoder = str(loaded.version.figures.get("encoder", ""))
    found = features.texts_within(contents, encoder_id=encoder, seconds=max(seconds, 0.0))
    return {content: tokens for content, tokens in zip(contents, found, strict=True) if tokens is not None}


def _answers(
    loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask], known: Sequence[tuple[int, Region, Tokens]],
    people: Sequence[str], votes: Sequence[StoredVote],
) -> list[list[Entries]]:
    """(R, A + 1) the entries of a result that answer for a region; the last column is the consensus."""
    made = loaded.ladder.predict(
        [tokens for *_, tokens in known], people, given=as_votes(votes),
        units=[f"{tasks[row].id}/{region.drawn.place}" for row, region, _ in known])
    width = len(people) + 1
    offers = Offers(loaded.ladder.spaces, config, regional=True)
    rows = {name: np.concatenate([each.served, each.consensus[:, None]], axis=1).reshape(len(known) * width, -1)
            for name, each in made.items()}  # (R * (A + 1), C)
    of_region = np.repeat(np.arange(len(known)), width).tolist()
    decided = offers.answers(rows, [tasks[row].data for row, *_ in known], of_region)
    return [[_encoded(config, tasks[row].data, region, decided[at * width + column]) for column in range(width)]
            for at, (row, region, _) in enumerate(known)]


def _encoded(
    config: LabelConfig, data: Mapping[str, Any], region: Region, answer: Mapping[str, tuple[Value, float]]
) -> Entries:
    found: Entries = []
    for name, (value, sure) in answer.items():
        control = config.regional[name]
        if region.drawn.to_name in control.to_names:
            found += [_placed(entry, region) for entry in control.inner.encode(value, sure, data)]
    return found


def _placed(entry: Mapping[str, Any], region: Region) -> dict[str, Any]:
    """An answer on the whole task -> the same on a region."""
    drawn = region.drawn
    shape = {key: each for key, each in (drawn.entries[0] if drawn.entries else {}).items() if key in _COPIED[4:]}
    value = {**drawn.geometry, **entry["value"]}
    return {**entry, **shape, "id": _id(region), "to_name": drawn.to_name, "value": value}


def _added(
    one: TaskPredictions, task: ReadyTask, regions: Sequence[tuple[Region, list[Entries]]], people: Sequence[str],
    name: str, shared: bool,
) -> TaskPredictions:
    column = {who: at for at, who in enumerate(people)}
    own = dict(one.own)
    for who in task.annotators:
        mine = [(region, entries[column[who]]) for region, entries in regions
                if region.shown_to(who, shared=shared)]
        if mine:
            own[who] = _with(own.get(who), mine, own_version(who, name))
    agreed = [(region, entries[-1]) for region, entries in regions if region.shown_to(None, shared=shared)]
    consensus = _with(one.consensus, agreed, consensus_version(name)) if agreed else one.consensus
    return replace(one, own=own, consensus=consensus)


def _with(
    prediction: dict[str, Any] | None, regions: Sequence[tuple[Region, Entries]], version: str
) -> dict[str, Any]:
    """The prediction with regions and the answers on them, as sure as its least sure answer."""
    before = prediction or {"result": [], "score": 1.0, "model_version": version}
    added = [entry for region, entries in regions for entry in [*_shapes(region), *entries]]
    sure = [entry["score"] for _, entries in regions for entry in entries]
    return {**before, "result": [*before["result"], *added], "score": round(min(before["score"], *sure, 1.0), 6)}


def _shapes(region: Region) -> Entries:
    """What makes the region, as a prediction has it."""
    return [{**{key: each for key, each in entry.items() if key in _COPIED}, "id": _id(region), "origin": "prediction"}
            for entry in region.drawn.entries]


def _id(region: Region) -> str:
    """The same for a region and the answers on it, at all times. It tells what a task came with from what somebody
    drew, so that taking over one's own region does not make it one that all are shown."""
    return ("" if region.came else OURS) + hashlib.sha256(region.drawn.place.encode()).hexdigest()[:10]
