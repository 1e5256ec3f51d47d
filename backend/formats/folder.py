"""A folder with tasks.jsonl, annotations.jsonl and meta.json: the format of our benchmark data.

    tasks.jsonl        {"id", "data": {...}, "gold"?: class}
    annotations.jsonl  {"task", "annotator", "label", "control"?, "kind"?, "time"?, "weight"?, "lead_time"?,
                        "annotation_id"?}
    annotations_X.jsonl  the same for the control X, a file for each of several controls
    meta.json          {"name", "classes": [...], "label_level": "nominal" | "ordinal", "control"?, ...}

Beside files of several controls, an annotations.jsonl that repeats one of them byte for byte is not read again; classes
for which meta.json names no control then belong to every control whose labels all are among them.
A label is text, a number, or a list (a set of classes); with `kind` it is the JSON of that kind of value. Gold and
classes belong to the control that meta.json names, else to the only one. Other keys are ignored. A single
annotations.jsonl can be read as well.
"""

from __future__ import annotations

import filecmp
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backend.formats.atomic import whole_folder
from backend.formats.builder import NAN, DatasetBuilder
from backend.formats.dataset import DEFAULT_CONTROL, Dataset, ReadOptions, WriteOptions, reading_order
from backend.formats.errors import FormatError, at_line
from backend.formats.json_stream import json_lines, whole
from backend.formats.scalars import as_id, as_seconds, as_value, as_weight, is_missing
from backend.labeling.written import finite_text
from model.data.spaces import Value, ValueKind
from model.errors import ModelError

ANNOTATIONS, TASKS, META = "annotations.jsonl", "tasks.jsonl", "meta.json"
SEVERAL = "annotations_"
OWNED = (ANNOTATIONS, TASKS, META)


def read(path: Path, options: ReadOptions) -> Dataset:
    """A folder, or the annotations alone. Raises FormatError with file and line."""
    meta = whole(path / META) if path.is_dir() and (path / META).is_file() else {}
    if not isinstance(meta, dict):
        raise FormatError(f"{META} must hold a JSON object.")
    builder = DatasetBuilder()
    tasks = path / TASKS
    listed = path.is_dir() and tasks.is_file()
    if listed:
        _read_tasks(tasks, builder, options)
    for file, its_control in _annotation_files(path):
        for line, row in json_lines(file, options.progress):
            _read_vote(file, line, row, builder, listed, its_control)
    only = builder.controls[0] if len(builder.controls) == 1 else DEFAULT_CONTROL
    control = as_id(meta.get("control")) or only
    if DEFAULT_CONTROL in builder.gold:
        builder.gold = {control: builder.gold[DEFAULT_CONTROL]}
    classes = tuple(name for each in _list(meta.get("classes")) if (name := as_id(each)) is not None)
    name = meta.get("name")
    found = builder.dataset(
        name=name if isinstance(name, str) else (path.name if path.is_dir() else path.stem),
        classes={control: classes} if classes else {}, ordinal=meta.get("label_level") == "ordinal",
    )
    if not classes or control in found.votes.controls:
        return found
    declared = {each: classes for each in found.votes.controls if set(found.classes_of(each)) <= set(classes)}
    return replace(found, classes=declared or found.classes)


def _annotation_files(path: Path) -> list[tuple[Path, str]]:
    """The files with votes, and the control of those that name none."""
    if not path.is_dir():
        return [(path, DEFAULT_CONTROL)]
    several = sorted((each, each.stem.removeprefix(SEVERAL)) for each in path.glob(f"{SEVERAL}?*.jsonl"))
    one = path / ANNOTATIONS
    if one.is_file() and not any(filecmp.cmp(one, each, shallow=False) for each, _ in several):
        return [(one, DEFAULT_CONTROL), *several]
    return several or [(one, DEFAULT_CONTROL)]


def write(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """The folder; everything that the data set knows but provenance."""
    votes = dataset.votes
    control = _control(dataset)
    gold = dataset.gold.get(control, {})
    with whole_folder(path, (*OWNED, *(each.name for each in path.glob(f"{SEVERAL}?*.jsonl")))) as folder:
        with (folder / TASKS).open("w", encoding="utf-8") as file:
            for unit in reading_order(votes.units):
                task: dict[str, Any] = {"id": unit, "data": dataset.content.get(unit, {})}
                if unit in gold:
                    task["gold"] = gold[unit]
                file.write(_line(task))
        with (folder / ANNOTATIONS).open("w", encoding="utf-8") as file:
            for row in range(len(votes)):
                file.write(_line(_row(dataset, row)))
        (folder / META).write_text(json.dumps(_meta(dataset, control), indent=1, ensure_ascii=False) + "\n", "utf-8")


def _read_tasks(path: Path, builder: DatasetBuilder, options: ReadOptions) -> None:
    for line, row in json_lines(path, options.progress):
        unit = as_id(row.get("id"))
        if unit is None:
            raise at_line(path, line, "it has no id")
        if builder.knows(unit):
            raise at_line(path, line, f"the task {unit} is there already")
        builder.unit(unit)
        if isinstance(data := row.get("data"), dict) and data:
            builder.content[unit] = data
        if not is_missing(gold := row.get("gold")):
            value = as_value(gold)
            if value is None or value.kind is not ValueKind.CLASS:
                raise at_line(path, line, "its gold label is no single class")
            builder.set_gold(unit, str(value.data))


def _read_vote(
    path: Path, line: int, row: dict[str, Any], builder: DatasetBuilder, listed: bool, control: str
) -> None:
    unit, annotator = as_id(row.get("task")), as_id(row.get("annotator"))
    if unit is None or annotator is None:
        missing = "task" if unit is None else "annotator"
        raise at_line(path, line, f"it has no {missing}; its keys are {', '.join(map(str, row)) or 'none'}")
    if listed and not builder.knows(unit):
        raise at_line(path, line, f"the task {unit} is not in {TASKS}")
    if "label" not in row:
        raise at_line(path, line, f"it has no label; its keys are {', '.join(map(str, row))}")
    builder.unread.annotations += 1
    if is_missing(row["label"]):
        builder.unit(unit)
        builder.unread.because("without a label")
        return
    value = _value(row["label"], row.get("kind"))
    if value is None:
        raise at_line(path, line, "its label is neither text, a number nor a list of them")

    def number(key: str, parse: Callable[[object], float | None], otherwise: float) -> float:
        if row.get(key) is None:
            return otherwise
        found = parse(row[key])
        if found is None:
            raise at_line(path, line, f"its {key} cannot be used")
        return found

    named = finite_text(row.get("annotation_id"))
    builder.vote(
        unit, annotator, value, control=as_id(row.get("control")) or control,
        time=number("time", as_seconds, 0.0), weight=number("weight", as_weight, 1.0),
        lead_time_s=number("lead_time", as_weight, NAN), known=row.get("time") is not None,
        number=None if named is None or not named.is_integer() else int(named),
    )


def _value(label: object, kind: object) -> Value | None:
    if kind is None:
        return as_value(label)
    try:
        return Value.from_json(str(kind), json.dumps(label))
    except ModelError:
        return None


def _row(dataset: Dataset, row: int) -> dict[str, Any]:
    votes = dataset.votes
    value = votes.values[votes.value[row]]
    found: dict[str, Any] = {
        "task": votes.units[votes.unit[row]], "annotator": votes.annotators[votes.annotator[row]], "label": value.data,
    }
    if (control := votes.controls[votes.control[row]]) != DEFAULT_CONTROL:
        found["control"] = control
    if value.kind not in (ValueKind.CLASS, ValueKind.CLASSES):
        found["kind"] = value.kind.value
    if votes.time[row]:
        found["time"] = float(votes.time[row])
    if votes.weight[row] != 1.0:
        found["weight"] = round(float(votes.weight[row]), 6)
    if dataset.lead_time_s is not None and not np.isnan(dataset.lead_time_s[row]):
        found["lead_time"] = float(dataset.lead_time_s[row])
    return found


def _meta(dataset: Dataset, control: str) -> dict[str, Any]:
    votes = dataset.votes
    named = {"control": control} if control != DEFAULT_CONTROL else {}
    return {
        "name": dataset.name, **named, "classes": list(dataset.classes_of(control)),
        "label_level": "ordinal" if dataset.ordinal else "nominal", "n_tasks": len(votes.units),
        "n_annotators": len(votes.annotators), "n_labels": len(votes), "has_gold": bool(dataset.gold.get(control)),
    }


def _control(dataset: Dataset) -> str:
    """The control that gold and classes are written for. Raises FormatError when several have gold."""
    golden = [name for name, gold in dataset.gold.items() if gold]
    if len(golden) > 1:
        raise FormatError("This folder format keeps gold labels of one control only; convert to CSV instead.")
    return (golden or list(dataset.votes.controls) or [DEFAULT_CONTROL])[0]


def _list(item: object) -> list[object]:
    return item if isinstance(item, list) else []


def _line(item: dict[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=False) + "\n"
