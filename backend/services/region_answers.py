"""Answers on regions beside those on tasks: what each annotator would say of each region that they may be shown.

Label Studio shows an answer on a region only where the region stands in the same prediction under the same id, so a
prediction carries both. By default these are the regions that the task came with, and in an annotator's own prediction
those that they drew themselves: nobody is shown what others drew. `shared_regions` adds places that two or more chose.

Invariants: one forward over `AT_ONCE` regions of any tasks, and no more tokens than theirs in memory; an annotator's
own vote on a region does not move their answer there (see `model.ensemble.ladder`); a region that cannot be read
is left out.
Shape legend: R regions, A annotators, C classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from backend.labeling import LabelConfig
from backend.labeling.content import text_of
from backend.labeling.region_content import Drawn, read_region
from backend.ports import Store
from backend.prediction_names import consensus_version, own_version
from backend.records import StoredVote
from backend.registry import Loaded
from backend.services.features import Features
from backend.services.regions import OURS, Region, Regions, add, asked_regions, known_regions, offered_regions
from backend.services.served import Offers, ReadyTask, TaskPredictions, Tokens, as_votes
from model.coldstart.adapting import Adapted
from model.data.spaces import Value
from model.data.votes import Votes

_COPIED = ("from_name", "to_name", "type", "value", "original_width", "original_height", "image_rotation", "item_index")
Entries = list[dict[str, Any]]
Results = Mapping[int, Sequence[Mapping[str, Any]]]  # task -> entries of results
AT_ONCE = 256  # regions; the tokens of that many parts of pictures are some 30 MB


def regions_for(
    store: Store, project: str, loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask], offered: Results,
    asked: Results,
) -> dict[int, Regions]:
    """Task -> its regions; {} where the version answers for none. `offered`: results of predictions that came with a
    request; `asked`: what the annotator who asks has drawn."""
    if not any(name in loaded.ladder.spaces for name in config.regional):
        return {}
    found = known_regions(store, project, config, [task.id for task in tasks])
    for results, read in ((offered, offered_regions), (asked, asked_regions)):
        for task_id, result in results.items():
            add(found.setdefault(task_id, {}), read(config, result))
    return found


def with_regions(
    features: Features, loaded: Loaded, config: LabelConfig, tasks: Sequence[ReadyTask],
    predictions: Sequence[TaskPredictions], votes: Sequence[StoredVote], regions: Mapping[int, Regions], *,
    shared: bool, seconds: Callable[[], float] | None, newcomers: Mapping[str, Adapted] = MappingProxyType({}),
) -> list[TaskPredictions]:
    """The predictions of these tasks with answers on regions. `seconds` says what may still be spent on encoding; None:
    all that it takes."""
    wanted = [_Wanted(row=row, task=task, region=region, shown=shown) for row, task in enumerate(tasks)
              for region in regions.get(task.id, {}).values() if (shown := _shown(region, task, shared))]
    given, people = as_votes(votes), sorted({who for task in tasks for who in task.annotators})
    offers = Offers(loaded.ladder.spaces, config, regional=True)
    added: dict[tuple[int, str | None], Entries] = {}
    for begin in range(0, len(wanted), AT_ONCE):
        part = wanted[begin : begin + AT_ONCE]
        read = [read_region(config, one.task.data, one.region.drawn, task=one.task.id).content for one in part]
        tokens = _tokens(features, loaded, [content for content in read if content],
                         None if seconds is None else seconds())
        known = [(one, tokens[content], text_of(content)) for one, content in zip(part, read, strict=True)
                 if content and content in tokens]
        for row, who, entries in _answers(loaded, config, offers, known, people, given, newcomers):
            added.setdefault((row, who), []).extend(entries)
    return [_added(one, task, {who: added.get((row, who), []) for who in (None, *task.annotators)}, loaded.version.name)
            for row, (one, task) in enumerate(zip(predictions, tasks, strict=True))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A region that somebody may be shown."""

    row: int  # of its task
    task: ReadyTask
    region: Region
    shown: Mapping[str | None, Drawn]  # annotator (None: consensus) -> as they are shown it


def _shown(region: Region, task: ReadyTask, shared: bool) -> dict[str | None, Drawn]:
    found = ((who, region.drawn_for(who, shared=shared)) for who in (None, *task.annotators))
    return {who: drawn for who, drawn in found if drawn is not None}


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
    loaded: Loaded, config: LabelConfig, offers: Offers, known: Sequence[tuple[_Wanted, Tokens, str]],
    people: Sequence[str], given: Votes, newcomers: Mapping[str, Adapted],
) -> Iterator[tuple[int, str | None, Entries]]:
    """(row of the task, annotator or None, what their prediction carries of a region), for all who are shown it."""
    if not known:
        return
    made = loaded.ladder.predict(
        [tokens for _, tokens, _ in known], people, given=given, texts=[text for _, _, text in known],
        units=[f"{one.task.id}/{one.region.place}" for one, _, _ in known], newcomers=newcomers)
    width = len(people) + 1  # the last column is the consensus
    rows = {name: np.concatenate([each.served, each.consensus[:, None]], axis=1).reshape(len(known) * width, -1)
            for name, each in made.items()}  # (R * (A + 1), C)
    of_region = np.repeat(np.arange(len(known)), width).tolist()
    decided = offers.answers(rows, [one.task.data for one, _, _ in known], of_region)
    column: dict[str | None, int] = {who: at for at, who in enumerate([*people, None])}
    for at, (one, _, _) in enumerate(known):
        identifier = _id(one.region)
        for who, drawn in one.shown.items():
            answer = decided[at * width + column[who]]
            yield one.row, who, [*_shapes(drawn, identifier), *_encoded(config, one.task, drawn, identifier, answer)]


def _encoded(
    config: LabelConfig, task: ReadyTask, drawn: Drawn, identifier: str, answer: Mapping[str, tuple[Value, float]]
) -> Entries:
    found: Entries = []
    for name, (value, sure) in answer.items():
        control = config.regional[name]
        if drawn.to_name in control.to_names:
            found += [_placed(entry, drawn, identifier) for entry in control.inner.encode(value, sure, task.data)]
    return found


def _placed(entry: Mapping[str, Any], drawn: Drawn, identifier: str) -> dict[str, Any]:
    """An answer on the whole task -> the same on a region."""
    shape = {key: each for key, each in (drawn.entries[0] if drawn.entries else {}).items() if key in _COPIED[4:]}
    value = {**drawn.geometry, **entry["value"]}
    return {**entry, **shape, "id": identifier, "to_name": drawn.to_name, "value": value}


def _added(
    one: TaskPredictions, task: ReadyTask, added: Mapping[str | None, Entries], name: str
) -> TaskPredictions:
    own = dict(one.own)
    for who in task.annotators:
        if added[who]:
            own[who] = _with(own.get(who), added[who], own_version(who, name))
    agreed = added[None]
    return replace(one, own=own, consensus=_with(one.consensus, agreed, consensus_version(name)) if agreed
                   else one.consensus)


def _with(prediction: dict[str, Any] | None, added: Entries, version: str) -> dict[str, Any]:
    """The prediction with regions and the answers on them, as sure as its least sure answer."""
    before = prediction or {"result": [], "score": 1.0, "model_version": version}
    sure = [entry["score"] for entry in added if "score" in entry]  # shapes have none
    return {**before, "result": [*before["result"], *added], "score": round(min(before["score"], *sure, 1.0), 6)}


def _shapes(drawn: Drawn, identifier: str) -> Entries:
    """What makes the region, as a prediction has it."""
    return [{**{key: each for key, each in entry.items() if key in _COPIED}, "id": identifier, "origin": "prediction"}
            for entry in drawn.entries]


def _id(region: Region) -> str:
    """The same for a region and the answers on it, at all times. It tells what a task came with from what somebody
    drew, so that taking over one's own region does not make it one that all are shown."""
    return ("" if region.came_as else OURS) + hashlib.sha256(region.place.encode()).hexdigest()[:10]
