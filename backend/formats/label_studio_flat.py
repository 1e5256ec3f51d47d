"""Label Studio's flat exports, one annotation a row: JSON-MIN, CSV and TSV.

A choice stands there as plain text, several as {"choices": [...]}. In JSON-MIN the controls are the keys between `id`
and `annotator`. CSV sorts its columns, so controls cannot be told from task data: the labeling configuration says which
they are, or an option, or there is only one candidate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backend.formats import columns
from backend.formats.builder import NAN, DatasetBuilder
from backend.formats.columns import Column
from backend.formats.dataset import Dataset, ReadOptions
from backend.formats.errors import FormatError, at_line
from backend.formats.json_stream import elements
from backend.formats.label_studio import finished, replace_votes, set_of, single_where_one
from backend.formats.scalars import as_id, as_seconds, as_weight
from backend.formats.table import ROLES, assemble
from backend.labeling import Control, LabelConfig
from model.spaces import Value, ValueKind
from model.votes import Votes

RESERVED = ("annotation_id", "annotator", "created_at", "id", "lead_time", "updated_at")


def read_min(path: Path, options: ReadOptions) -> Dataset:
    """A JSON-MIN file. Raises FormatError naming the line."""
    controls = _controls(options.label_config)
    builder = DatasetBuilder()
    for line, row in elements(path, options.progress):
        unit = as_id(row.get("id")) if isinstance(row, dict) else None
        if unit is None:
            raise at_line(path, line, "a row with the id of a task was expected")
        annotator = as_id(row.get("annotator")) or f"deleted:{as_id(row.get('annotation_id')) or line}"
        builder.unit(unit)
        names = _names_of_controls(row)
        data = {key: each for key, each in row.items() if key not in names and key not in RESERVED}
        if data:
            builder.content[unit] = data
        for name in controls or names:
            value = _decode(row.get(name), controls.get(name), row)
            if value is not None:
                lead_time = as_weight(row.get("lead_time"))
                builder.vote(
                    unit, annotator, value, control=name, time=as_seconds(row.get("updated_at")) or 0.0,
                    lead_time_s=NAN if lead_time is None else lead_time,
                )
    return finished(builder, path.stem, options.label_config)


def read_csv(path: Path, options: ReadOptions) -> Dataset:
    """A CSV or TSV export. Raises FormatError naming the line."""
    delimiter = columns.delimiter_of(path)
    there = columns.header(path, delimiter)
    config = options.label_config
    names = _answer_columns(path, there, options)
    wanted = [*[name for name in RESERVED if name in there and name != "created_at"], *names]
    read = columns.delimited(path, delimiter, wanted, options.progress)

    def place(row: int, what: str) -> FormatError:
        return at_line(path, columns.line_of_row(path, delimiter, row), what)

    shared = {"task": read["id"], "annotator": _known(read["annotator"], read["annotation_id"])}
    for role, name in (("time", "updated_at"), ("lead_time", "lead_time")):
        if name in read:
            shared[role] = read[name]
    parts = [assemble({**shared, "label": read[name]}, path.stem, place) for name in names]
    answered = [np.flatnonzero(read[name].codes >= 0) for name in names]
    return _joined(parts, names, answered, config)


def _joined(
    parts: Sequence[Dataset], names: Sequence[str], rows: Sequence[np.ndarray[Any, np.dtype[np.int64]]],
    config: LabelConfig | None,
) -> Dataset:
    """Data sets over the same ids, one for each control, as one; texts become typed values."""
    controls = _controls(config)
    values: dict[Value, int] = {}
    kept, code = [], []
    for part, name in zip(parts, names, strict=True):
        table = np.full(len(part.votes.values), -1, dtype=np.int32)
        for position, each in enumerate(part.votes.values):
            value = _decode(_cell(str(each.data)), controls.get(name), {})
            if value is not None:
                table[position] = values.setdefault(value, len(values))
        codes = table[part.votes.value]
        kept.append(np.flatnonzero(codes >= 0))
        code.append(codes[kept[-1]])
    first = parts[0]

    def column(of: str) -> Any:
        return np.concatenate([getattr(part.votes, of)[at] for part, at in zip(parts, kept, strict=True)])

    timed = any(part.timed or (len(part.votes) and part.votes.time[0] != 0) for part in parts)
    clocked = all(part.lead_time_s is not None for part in parts)
    votes = Votes.from_columns(
        units=first.votes.units, annotators=first.votes.annotators, controls=tuple(names), values=tuple(values),
        unit=column("unit"), annotator=column("annotator"), value=np.concatenate(code),
        control=np.repeat(np.arange(len(names), dtype=np.int32), [len(at) for at in kept]) if len(names) > 1 else None,
        time=column("time") if timed else None,
    )
    lead_time = [part.lead_time_s[at] for part, at in zip(parts, kept, strict=True) if part.lead_time_s is not None]
    dataset = Dataset(votes=votes, name=first.name, lead_time_s=np.concatenate(lead_time) if clocked else None)
    if config is None:
        return replace_votes(dataset, single_where_one(votes))
    classes = {name: space.classes for name, space in config.spaces(votes).items()}
    return replace(dataset, classes=classes)


def _answer_columns(path: Path, there: Sequence[str], options: ReadOptions) -> list[str]:
    """The columns that hold answers. Raises FormatError when they cannot be told."""
    candidates = [name for name in there if name not in RESERVED]
    listed = ", ".join(candidates) or "none"
    if options.label_config is not None:
        known = [control.name for control in options.label_config.controls]
        found = [name for name in known if name in candidates]
        if not found:
            raise FormatError(f"{path.name} has no column of the controls {', '.join(known)}; it has {listed}.")
        return found
    if options.control:
        if options.control not in candidates:
            raise FormatError(f"{path.name} has no column {options.control}; it has {listed}.")
        return [options.control]
    usual = [name for name in candidates if name.lower() in ROLES["label"]]
    chosen = candidates if len(candidates) == 1 else usual
    if len(chosen) != 1:
        raise FormatError(f"Which column of {path.name} holds the answers? Say it with --control: {listed}.")
    return chosen


def _names_of_controls(row: Mapping[str, Any]) -> list[str]:
    keys = list(row)
    begin, end = keys.index("id"), keys.index("annotator") if "annotator" in keys else len(keys)
    return [key for key in keys[begin + 1:end] if key not in RESERVED]


def _controls(config: LabelConfig | None) -> dict[str, Control]:
    return {} if config is None else {control.name: control for control in config.controls}


def _decode(answer: object, control: Control | None, data: Mapping[str, Any]) -> Value | None:
    chosen = answer.get("choices") if isinstance(answer, dict) else answer
    if not isinstance(chosen, str | list) or not chosen:
        return None
    if control is None:
        return set_of(chosen)
    listed = chosen if isinstance(chosen, list) else [chosen]
    value = control.decode([{"from_name": control.name, "value": {"choices": listed}}], data)
    return value if value is None or value.kind in (ValueKind.CLASS, ValueKind.CLASSES) else None


def _cell(text: str) -> object:
    """What a cell of a CSV export holds: text, or the JSON of several choices."""
    if text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return None if text.startswith("[{") else text


def _known(annotator: Column, annotation: Column) -> Column:
    """Annotators; one whose account is gone is named after the annotation."""
    gone = np.flatnonzero(annotator.codes < 0)
    if not len(gone):
        return annotator
    names = [f"deleted:{annotation.texts[annotation.codes[row]]}" for row in gone]
    texts = sorted({*annotator.texts, *names})
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([place[text] for text in annotator.texts] or [0], dtype=np.int32)[annotator.codes]
    codes[gone] = [place[name] for name in names]
    return Column(codes=codes, texts=tuple(texts))
