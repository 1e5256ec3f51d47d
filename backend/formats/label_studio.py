"""Label Studio's JSON export (and snapshots): tasks with raw annotations.

With a labeling configuration the votes are those of the live project. Without one the answers of `<Choices>` on whole
tasks are read, by the name of their control: as single classes where every answer is one choice, as sets otherwise.
Either way skipped annotations, drafts and predictions give no vote.

`ground_truth` means nothing unless the options say so: it is Label Studio's default on imported annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backend.errors import ClientError
from backend.formats.builder import NAN, DatasetBuilder
from backend.formats.dataset import Dataset, ReadOptions
from backend.formats.errors import at_line
from backend.formats.json_stream import elements
from backend.formats.scalars import as_id
from backend.labeling import LabelConfig, read_task
from backend.labeling.provenance import provenance_of
from backend.records import Annotation, TaskSnapshot
from model.spaces import Value, ValueKind
from model.votes import Provenance, Votes

OURS = "polyvox"  # key in a task's meta: what Label Studio has no place for
NO_CONFIG = LabelConfig(controls=(), unmodelled=(), objects=(), unread=())
Answer = tuple[str, Value, Provenance]  # control, value, how it came to be


def read(path: Path, options: ReadOptions) -> Dataset:
    """An export file. Raises FormatError naming the line."""
    config = options.label_config
    builder = DatasetBuilder()
    for line, task in elements(path, options.progress):
        if not isinstance(task, dict):
            raise at_line(path, line, "a task was expected")
        try:
            snapshot = read_task(
                config or NO_CONFIG, task, project_id=0, control_arm_percent=0, shown_since=None,
                known_annotators=_other_annotators(task),
            )
        except ClientError as error:
            raise at_line(path, line, "this task has no id") from error
        unit = str(snapshot.task.id)
        kept = meta.get(OURS) if isinstance(meta := task.get("meta"), dict) else None
        if isinstance(kept, dict):
            unit = as_id(kept.get("unit")) or unit
        builder.unit(unit)
        if snapshot.task.data:
            builder.content[unit] = snapshot.task.data
        contradiction = _add_gold(unit, kept, builder)
        answers = _modelled(snapshot) if config else _choices(snapshot)
        for annotation, (control, value, provenance) in answers:
            if options.trust_ground_truth and annotation.ground_truth:
                if value.kind is ValueKind.CLASS or (value.kind is ValueKind.CLASSES and len(_names(value)) == 1):
                    label = value.data if isinstance(value.data, str) else _names(value)[0]
                    contradiction |= not builder.set_gold(unit, label, control)
                continue
            lead_time_s = NAN if annotation.lead_time_s is None else annotation.lead_time_s
            builder.vote(
                unit, annotation.annotator, value, control=control, time=annotation.updated_at.timestamp(),
                lead_time_s=lead_time_s, provenance=provenance,
            )
        if contradiction:
            raise at_line(path, line, "this task has two different gold labels")
    return finished(builder, path.stem, config)


def finished(builder: DatasetBuilder, name: str, config: LabelConfig | None) -> Dataset:
    """The data set; without a config its sets of one become single classes, control by control."""
    dataset = builder.dataset(name=name)
    if config is None:
        return replace_votes(dataset, single_where_one(dataset.votes))
    classes = {control: space.classes for control, space in config.spaces(dataset.votes).items()}
    return replace_votes(dataset, dataset.votes, classes=classes)


def replace_votes(dataset: Dataset, votes: Votes, classes: Mapping[str, tuple[str, ...]] | None = None) -> Dataset:
    """The same data set with other votes in the same rows."""
    return Dataset(
        votes=votes, name=dataset.name, gold=dataset.gold, classes=dataset.classes if classes is None else classes,
        ordinal=dataset.ordinal, lead_time_s=dataset.lead_time_s, content=dataset.content,
    )


def single_where_one(votes: Votes) -> Votes:
    """Sets of classes become single classes in every control where each answer is exactly one."""
    values = {value: code for code, value in enumerate(votes.values)}
    codes = votes.value.copy()
    for position in range(len(votes.controls)):
        rows = votes.control == position
        used = np.unique(votes.value[rows])
        if not len(used) or any(len(_names(votes.values[i])) != 1 for i in used):
            continue
        renamed = np.zeros(len(votes.values), dtype=np.int32)
        for i in used:
            renamed[i] = values.setdefault(Value.of_class(_names(votes.values[i])[0]), len(values))
        codes[rows] = renamed[votes.value[rows]]
    table = list(values)
    left, compact = np.unique(codes, return_inverse=True)
    return Votes.from_columns(
        units=votes.units, annotators=votes.annotators, controls=votes.controls, values=[table[i] for i in left],
        unit=votes.unit, annotator=votes.annotator, control=votes.control, value=compact, time=votes.time,
        weight=votes.weight, provenance=votes.provenance,
    )


def set_of(chosen: object) -> Value | None:
    """The answer of a list of choices; a nested one is named by its path. None when nothing was chosen."""
    entries = chosen if isinstance(chosen, list) else [chosen]
    names = [" / ".join(map(str, entry)) if isinstance(entry, list) else entry for entry in entries]
    picked = [name for name in names if isinstance(name, str) and name]
    return Value.of_classes(picked) if picked else None


def _names(value: Value) -> tuple[str, ...]:
    return tuple(str(each) for each in value.data) if isinstance(value.data, tuple) else (str(value.data),)


def _modelled(snapshot: TaskSnapshot) -> Iterator[tuple[Annotation, Answer]]:
    by_id = {annotation.id: annotation for annotation in snapshot.annotations}
    for vote in snapshot.votes:
        yield by_id[vote.annotation_id], (vote.control, vote.value, vote.provenance)


def _choices(snapshot: TaskSnapshot) -> Iterator[tuple[Annotation, Answer]]:
    """Answers on whole tasks: a region that carries a place in the task beside the choices judges a part of it."""
    for annotation in snapshot.annotations:
        if annotation.was_cancelled:
            continue
        chosen: dict[str, list[object]] = {}
        regions: dict[str, list[Mapping[str, Any]]] = {}
        for region in annotation.result:
            value, control = region.get("value"), region.get("from_name")
            if not isinstance(value, dict) or set(value) != {"choices"} or not isinstance(control, str):
                continue
            if region.get("item_index") is None and control:
                picked = value["choices"]
                chosen.setdefault(control, []).extend(picked if isinstance(picked, list) else [picked])
                regions.setdefault(control, []).append(region)
        for control, entries in chosen.items():
            answer = set_of(entries)
            if answer is not None:
                yield annotation, (control, answer, provenance_of(regions[control], annotation))


def _add_gold(unit: str, kept: object, builder: DatasetBuilder) -> bool:
    """Gold labels that our own writer put into the task's meta; True when they contradict others."""
    gold = kept.get("gold") if isinstance(kept, dict) else None
    pairs = gold.items() if isinstance(gold, dict) else ()
    return any(not builder.set_gold(unit, str(label), str(control)) for control, label in pairs)


def _other_annotators(task: Mapping[str, Any]) -> dict[int, str]:
    """annotation id -> annotator, where that is no Label Studio user id but an e-mail address or another text."""
    found = {}
    annotations = task.get("annotations")
    for annotation in annotations if isinstance(annotations, list) else []:
        if not isinstance(annotation, dict) or not isinstance(annotation.get("id"), int):
            continue
        who = annotation.get("completed_by")
        name = as_id(who.get("email") if isinstance(who, dict) else who)
        if name is not None:
            found[annotation["id"]] = name
    return found
