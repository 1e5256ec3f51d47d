"""The folder of peerannot: answers.json {task: {annotator: label}}, metadata.json, and ground_truth.npy beside them.

peerannot itself needs ids and classes numbered from 0. Reading takes any ids and labels; writing numbers them and keeps
the real ids and class names in metadata.json (`task_ids`, `annotator_ids`, `classes`), from which they are read back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.formats.atomic import whole_folder
from backend.formats.builder import DatasetBuilder
from backend.formats.dataset import DEFAULT_CONTROL, Dataset, ReadOptions, WriteOptions, reading_order
from backend.formats.errors import FormatError, at_line
from backend.formats.json_stream import members, whole
from backend.formats.scalars import as_id, as_value, is_missing
from model.data.spaces import Value, ValueKind

ANSWERS, METADATA, TRUTH = "answers.json", "metadata.json", "ground_truth.npy"
OWNED = (ANSWERS, METADATA, TRUTH, "matrices.npy", "difficulties.npy", "student_teacher_association.npy")


def read(path: Path, options: ReadOptions) -> Dataset:
    """A folder, or an answers.json with its neighbours."""
    answers = path / ANSWERS if path.is_dir() else path
    metadata = _metadata(answers.parent / METADATA)
    tasks, annotators = _names(metadata, "task_ids"), _names(metadata, "annotator_ids")
    classes = _classes(metadata)
    builder = DatasetBuilder()
    keys: list[str] = []
    for line, key, given in members(answers, options.progress):
        if not isinstance(given, dict):
            raise at_line(answers, line, "a task must hold an object {annotator: label}")
        unit = _named(key, tasks)
        keys.append(key)
        builder.unit(unit)
        for who, label in given.items():
            if not who:
                raise at_line(answers, line, "an annotator has an empty id")
            builder.unread.annotations += 1
            if is_missing(label):
                builder.unread.because("without a label")
                continue
            value = as_value(label)
            if value is None or value.kind is not ValueKind.CLASS:
                raise at_line(answers, line, "a label of this task is neither a number nor text")
            if isinstance(label, int | float) and not isinstance(label, bool):
                value = Value.of_class(_named(str(value.data), classes))
            builder.vote(unit, _named(who, annotators), value)
    _read_truth(answers.parent / TRUTH, keys, tasks, classes, builder)
    name = metadata.get("name")
    return builder.dataset(
        name=name if isinstance(name, str) else answers.parent.name,
        classes={DEFAULT_CONTROL: classes} if classes else {},
    )


def write(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """A folder that peerannot can use. Raises FormatError for votes that are no single classes."""
    write_with(dataset, path, options, {}, {})


def write_with(
    dataset: Dataset, path: Path, options: WriteOptions, facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """The folder with more `facts` in the metadata and `arrays` (file name without suffix -> array) beside."""
    from model.crowd.answers import AnswerMatrix  # loads scipy

    control = dataset.control(options.control)
    if dataset.kinds(control) - {ValueKind.CLASS}:
        raise FormatError(f"peerannot knows single classes only; the control {control} has other answers.")
    votes = dataset.votes
    answers = AnswerMatrix.from_votes(votes, control, classes=dataset.classes_of(control))
    task, annotator = _numbered(answers.units), _numbered(answers.annotators)
    label = np.arange(len(answers.classes))  # classes keep their order
    metadata = {
        "name": dataset.name, "n_classes": len(answers.classes), "n_workers": len(answers.annotators),
        "n_task": len(answers.units), "n_tasks": len(answers.units),
    }
    for key, table, numbers in (
        ("task_ids", answers.units, task), ("annotator_ids", answers.annotators, annotator),
        ("classes", answers.classes, label),
    ):
        ordered = [table[i] for i in np.argsort(numbers)]
        if ordered != [str(i) for i in range(len(ordered))]:
            metadata[key] = ordered
    order = np.argsort(task)
    with whole_folder(path, OWNED) as folder:
        with (folder / ANSWERS).open("w", encoding="utf-8") as file:
            file.write("{")
            for position, code in enumerate(order):
                rows = slice(answers.indptr[code], answers.indptr[code + 1])
                who, what = annotator[answers.annotator[rows]], label[answers.label[rows]]
                given = {str(a): int(b) for a, b in sorted(zip(who.tolist(), what.tolist(), strict=True))}
                file.write(f'{"," if position else ""}\n   "{position}": {json.dumps(given)}')
            file.write("\n}\n")
        gold = answers.gold_codes(dataset.gold.get(control))
        if (gold >= 0).any():
            np.save(folder / TRUTH, np.where(gold >= 0, label[np.maximum(gold, 0)], -1)[order].astype(np.int64))
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
        text = json.dumps({**metadata, **facts}, indent=3, ensure_ascii=False)
        (folder / METADATA).write_text(text + "\n", encoding="utf-8")


def _numbered(table: Sequence[str]) -> NDArray[np.int64]:
    """The number of each entry: its own where the ids are 0 .. n-1 already, else its place in reading order."""
    place = {name: number for number, name in enumerate(reading_order(tuple(table)))}
    return np.array([place[name] for name in table], dtype=np.int64)


def _metadata(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found = whole(path)
    if not isinstance(found, dict):
        raise FormatError(f"{path.name} must hold a JSON object.")
    return found


def _names(metadata: Mapping[str, Any], key: str) -> tuple[str, ...]:
    listed = metadata.get(key)
    names = [as_id(each) for each in listed] if isinstance(listed, list) else []
    known = tuple(name for name in names if name is not None)
    if len(set(known)) != len(names):
        raise FormatError(f"{METADATA}: {key} must hold different ids.")
    return known


def _classes(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Class names: those that are listed, else 0 .. n_classes - 1."""
    named = _names(metadata, "classes")
    n = metadata.get("n_classes")
    if named or not isinstance(n, int) or isinstance(n, bool) or not 0 < n <= 100_000:
        return named
    return tuple(str(each) for each in range(n))


def _named(key: str, names: Sequence[str]) -> str:
    """The name that stands for a number; the key itself where there is none."""
    if names and key.isascii() and key.isdigit() and int(key) < len(names):
        return names[int(key)]
    return key


def _read_truth(
    path: Path, keys: Sequence[str], tasks: Sequence[str], classes: Sequence[str], builder: DatasetBuilder
) -> None:
    """Gold labels, one for each task in the order of their numbers; -1 is unknown."""
    if not path.is_file():
        return
    try:
        truth = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(f"{path.name} is not a NumPy array.") from error
    if truth.ndim != 1 or not np.issubdtype(truth.dtype, np.integer):
        raise FormatError(f"{path.name} must hold one class number for each task.")
    numbered = {str(i) for i in range(len(truth))}
    if not set(keys) <= numbered:
        raise FormatError(f"{path.name} has {len(truth)} labels, which do not fit the tasks of {ANSWERS}.")
    for number, code in enumerate(truth.tolist()):
        if code >= 0:
            builder.set_gold(_named(str(number), tasks), _named(str(code), classes))
