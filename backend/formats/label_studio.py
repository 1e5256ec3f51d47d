"""Label Studio's JSON export (and snapshots): tasks with raw annotations.

With a labeling configuration the votes are those of the live project. Without one the answers on whole tasks are read
by what they are (see `answers`), by the name of their control: of `<Choices>` and `<Taxonomy>` as single classes where
every answer is one choice, as sets otherwise.
Either way skipped annotations, drafts and predictions give no vote.

`ground_truth` means nothing unless the options say so: it is Label Studio's default on imported annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backend.errors import ClientError
from backend.formats.answers import answer_of, kind_of
from backend.formats.builder import NAN, DatasetBuilder
from backend.formats.dataset import Dataset, ReadOptions
from backend.formats.errors import at_line
from backend.formats.json_stream import elements
from backend.formats.scalars import as_id
from backend.formats.unread import Unread
from backend.labeling import LabelConfig, read_task
from backend.labeling.outside import look_alike_choices
from backend.labeling.provenance import is_filled, provenance_of
from backend.labeling.regions import KINDS as REGION_KINDS
from backend.records import Annotation, TaskSnapshot
from model.data.numbers import NumberBins
from model.data.spaces import SingleChoice, Value, ValueKind
from model.data.votes import Provenance, Votes

OURS = "polyvox"  # key in a task's meta: what Label Studio has no place for
NO_CONFIG = LabelConfig(controls=(), unmodelled=(), objects=(), unread=())
Answer = tuple[str, str, Value, Provenance]  # control, part of the task ("" for all), value, how it came to be
READ = ("choices", "rating", "number", "pairwise", "taxonomy", "ranker")  # types of regions that answers have
Kinds = dict[str, set[str]]  # control -> kinds of its answers, as `answers.KINDS` has them


def read(path: Path, options: ReadOptions) -> Dataset:
    """An export file. Raises FormatError naming the line."""
    config = options.label_config
    builder = DatasetBuilder()
    kinds: Kinds = {}
    for line, task in elements(path, options.progress):
        if not isinstance(task, dict):
            raise at_line(path, line, "a task was expected")
        try:
            snapshot = read_task(
                config or NO_CONFIG, with_ids(task), project_id=0, control_arm_percent=0, shown_since=None,
                known_annotators={},
            )
        except ClientError as error:
            raise at_line(path, line, "this task has no id") from error
        for author in authors(task):
            builder.people.note(author)
        unit = str(snapshot.task.id)
        kept = meta.get(OURS) if isinstance(meta := task.get("meta"), dict) else None
        if isinstance(kept, dict):
            unit = as_id(kept.get("unit")) or unit
        builder.unit(unit)
        if snapshot.task.data:
            builder.content[unit] = snapshot.task.data
        contradiction = _add_gold(unit, kept, builder)
        answers = list(_modelled(snapshot) if config else _choices(snapshot, kinds))
        _count_unread(snapshot, {(each.id, control) for each, (control, _, _, _) in answers}, config, builder.unread)
        taken = 0
        for annotation, (control, part, value, provenance) in answers:
            if options.trust_ground_truth and annotation.ground_truth:
                if value.kind is ValueKind.CLASS or (value.kind is ValueKind.CLASSES and len(_names(value)) == 1):
                    label = value.data if isinstance(value.data, str) else _names(value)[0]
                    contradiction |= not builder.set_gold(unit, label, control)
                taken += 1
                continue
            lead_time_s = NAN if annotation.lead_time_s is None else annotation.lead_time_s
            builder.vote(
                unit + part, annotation.annotator, value, control=control, number=annotation.id,
                time=annotation.updated_at.timestamp() if annotation.timed else 0.0, known=annotation.timed,
                lead_time_s=lead_time_s, provenance=provenance,
            )
        if taken:
            builder.unread.because("taken for gold labels (--trust-ground-truth)", taken)
        if contradiction:
            raise at_line(path, line, "this task has two different gold labels")
    return finished(builder.dataset(name=path.stem), config, kinds)


def finished(dataset: Dataset, config: LabelConfig | None, kinds: Kinds) -> Dataset:
    """The data set with what is known of its answers: their spaces by the config; without one, sets of one become
    single classes, control by control, and ratings stand in the order of their stars."""
    if config is not None:
        spaces = {**config.spaces(dataset.votes), **config.region_spaces(dataset.votes)}
        dataset.unread.notes += [sentence for _, sentence in look_alike_choices(config)]
        classes = {name: space.classes for name, space in spaces.items() if not isinstance(space, NumberBins)}
        return replace(dataset, spaces=spaces, classes=classes)
    dataset = replace(dataset, votes=single_where_one(dataset.votes))
    stars = [name for name in dataset.votes.controls if kinds.get(name) == {"rating"}]
    shown = {name: dataset.classes_of(name) for name in stars}
    return replace(dataset, spaces={
        name: SingleChoice(given, ordered=len(given) > 2) for name, given in shown.items() if given
    })


def single_where_one(votes: Votes) -> Votes:
    """Sets of classes become single classes in every control where each answer is exactly one."""
    values = {value: code for code, value in enumerate(votes.values)}
    codes = votes.value.copy()
    for position in range(len(votes.controls)):
        rows = votes.control == position
        used = np.unique(votes.value[rows])
        if not len(used) or any(
            votes.values[i].kind is not ValueKind.CLASSES or len(_names(votes.values[i])) != 1 for i in used
        ):
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


def _names(value: Value) -> tuple[str, ...]:
    return tuple(str(each) for each in value.data) if isinstance(value.data, tuple) else (str(value.data),)


def _modelled(snapshot: TaskSnapshot) -> Iterator[tuple[Annotation, Answer]]:
    by_id = {annotation.id: annotation for annotation in snapshot.annotations}
    task = str(snapshot.task.id)
    for vote in snapshot.votes:
        yield by_id[vote.annotation_id], (
            vote.control, vote.unit.removeprefix(task), vote.value, vote.provenance)


def _choices(snapshot: TaskSnapshot, kinds: Kinds) -> Iterator[tuple[Annotation, Answer]]:
    """Answers on whole tasks: a region that carries a place in the task beside the answer judges a part of it."""
    for annotation in snapshot.annotations:
        if annotation.was_cancelled or is_filled(annotation.result):
            continue
        regions: dict[str, list[Mapping[str, Any]]] = {}
        for region in annotation.result:
            control = region.get("from_name")
            if isinstance(control, str) and control and region.get("item_index") is None and kind_of(
                    region.get("value")):
                regions.setdefault(control, []).append(region)
        for control, mine in regions.items():
            answer, kind = answer_of(mine)
            if answer is not None:
                kinds.setdefault(control, set()).add(kind)
                yield annotation, (control, "", answer, provenance_of(mine, annotation))


def _count_unread(
    snapshot: TaskSnapshot, read: Set[tuple[int, str]], config: LabelConfig | None, unread: Unread
) -> None:
    """Count the annotations, and what of them is no vote with the reason."""
    for annotation in snapshot.annotations:
        unread.annotations += 1
        if annotation.was_cancelled:
            unread.because("skipped by annotators")
        elif is_filled(annotation.result):
            unread.because("predicted and written as annotations")
        elif not annotation.result:
            unread.because("empty")
        else:
            for name, kind in {str(region.get("from_name")): str(region.get("type")) for region in annotation.result
                               }.items():
                if (annotation.id, name) not in read:
                    unread.because(why_unread(name, kind, config))


def why_unread(name: str, kind: str, config: LabelConfig | None) -> str:
    """Why an answer with a control is no vote, as `Unread.because` wants it."""
    if kind in REGION_KINDS:
        return f"with {name} on regions (agreement --regions compares them)"
    if config is not None and (control := config.control(name)) is not None:
        return f"with {name} that hold no answer of a {control.tag}"
    if config is not None:
        declared = next((each for each in config.unmodelled if each.name == name), None)
        return f"with {name}, which is no control of the labeling configuration" if declared is None else \
            f"with {name}, not read: {declared.reason.rstrip('.')}"
    if kind in READ:
        return f"with {name} ({kind}) that hold no answer about the task"
    return f"with {name} ({kind}), which is of a kind that is not read"


def authors(task: Mapping[str, Any]) -> Iterator[object]:
    """Who made the annotations of a task, as the file has it."""
    listed = task.get("annotations")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each.get("completed_by")


def with_ids(task: dict[str, Any]) -> Mapping[str, Any]:
    """The task with a number for each annotation that has none, so that none is lost; by their order."""
    annotations = task.get("annotations")
    listed = annotations if isinstance(annotations, list) else []
    if all(not isinstance(each, dict) or _is_number(each.get("id")) for each in listed):
        return task
    taken = [each["id"] for each in listed if isinstance(each, dict) and _is_number(each.get("id"))]
    following, numbered = max(taken, default=0) + 1, []
    for at, each in enumerate(listed):
        nameless = isinstance(each, dict) and not _is_number(each.get("id"))
        numbered.append({**each, "id": following + at} if nameless else each)
    return {**task, "annotations": numbered}


def _is_number(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool) and abs(item) < 2**63


def _add_gold(unit: str, kept: object, builder: DatasetBuilder) -> bool:
    """Gold labels that our own writer put into the task's meta; True when they contradict others."""
    gold = kept.get("gold") if isinstance(kept, dict) else None
    pairs = gold.items() if isinstance(gold, dict) else ()
    return any(not builder.set_gold(unit, str(label), str(control)) for control, label in pairs)
