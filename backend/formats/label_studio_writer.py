"""Writes Label Studio's JSON export, JSON-MIN and CSV, which the readers take back to the same votes.

Label Studio has no place for task ids that are no numbers and for gold labels; the JSON export keeps them under
`polyvox` in the task's meta. Annotators that are no user ids become {"email": ...}.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from backend.formats.atomic import whole_file
from backend.formats.dataset import Dataset, WriteOptions, reading_order
from backend.formats.errors import FormatError
from backend.formats.label_studio import OURS
from backend.formats.label_studio_flat import RESERVED
from model.data.spaces import Value, ValueKind
from model.data.votes import Provenance

_ORIGIN = {
    Provenance.MANUAL: "manual", Provenance.ACCEPTED: "prediction", Provenance.CHANGED: "prediction-changed",
}
_MOST_DIGITS = 18  # of a number that a database takes for an id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Annotation:
    """What one annotator said about a unit at one time."""

    id: int
    annotator: str
    answers: dict[str, tuple[Value, Provenance]]  # by control
    time: float
    lead_time_s: float  # NaN where unknown


def write_json(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """The JSON export: every task with its annotations."""
    numbers = _task_numbers(dataset.votes.units)
    with whole_file(path) as aside, aside.open("w", encoding="utf-8") as file:
        file.write("[")
        for position, (unit, given) in enumerate(_by_unit(dataset)):
            task = _task(dataset, unit, numbers[unit], given, options)
            file.write(("," if position else "") + "\n" + json.dumps(task, ensure_ascii=False))
        file.write("\n]\n")


def write_min(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """JSON-MIN: one annotation a row; tasks without any are not in it."""
    with whole_file(path) as aside, aside.open("w", encoding="utf-8") as file:
        file.write("[")
        for position, row in enumerate(_flat(dataset)):
            file.write(("," if position else "") + "\n" + json.dumps(row, ensure_ascii=False))
        file.write("\n]\n")


def write_csv(dataset: Dataset, path: Path, options: WriteOptions) -> None:
    """CSV: as JSON-MIN, without the task data."""
    names = sorted({*RESERVED, *dataset.votes.controls})
    with whole_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, names, restval="", extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        for row in _flat(dataset, with_data=False):
            table.writerow({
                key: json.dumps(each, ensure_ascii=False) if isinstance(each, dict) else each
                for key, each in row.items()
            })


def _by_unit(dataset: Dataset) -> Iterator[tuple[str, list[_Annotation]]]:
    """Units in reading order with their annotations; a repeated answer of an annotator is another annotation."""
    votes = dataset.votes
    strange = {votes.values[i].kind for i in np.unique(votes.value)} - {ValueKind.CLASS, ValueKind.CLASSES}
    if strange:
        raise FormatError(f"Only choices can be written for Label Studio, not answers of kind {min(strange).value}.")
    order = np.lexsort((votes.control, votes.time, votes.annotator, votes.unit))
    begins = np.searchsorted(votes.unit[order], np.arange(len(votes.units) + 1))
    code_of = {name: code for code, name in enumerate(votes.units)}
    number = 0
    for unit in reading_order(votes.units):
        code = code_of[unit]
        found: list[_Annotation] = []
        for row in order[begins[code]:begins[code + 1]].tolist():
            annotator, control = votes.annotators[votes.annotator[row]], votes.controls[votes.control[row]]
            time = float(votes.time[row])
            last = found[-1] if found else None
            if last is None or last.annotator != annotator or last.time != time or control in last.answers:
                number += 1
                lead = np.nan if dataset.lead_time_s is None else float(dataset.lead_time_s[row])
                last = _Annotation(id=number, annotator=annotator, answers={}, time=time, lead_time_s=lead)
                found.append(last)
            last.answers[control] = votes.values[votes.value[row]], Provenance(int(votes.provenance[row]))
        yield unit, found


def _task(
    dataset: Dataset, unit: str, number: int, given: list[_Annotation], options: WriteOptions
) -> dict[str, Any]:
    kept: dict[str, Any] = {} if unit == str(number) else {"unit": unit}
    gold = {control: labels[unit] for control, labels in dataset.gold.items() if unit in labels}
    if gold:
        kept["gold"] = gold
    return {
        "id": number, "data": dict(dataset.content.get(unit, {"task": unit})), "meta": {OURS: kept} if kept else {},
        "annotations": [_annotation(each, number, options) for each in given], "predictions": [],
    }


def _annotation(given: _Annotation, task: int, options: WriteOptions) -> dict[str, Any]:
    result = []
    for control, (value, provenance) in given.answers.items():
        region: dict[str, Any] = {
            "id": f"{given.id}-{control}", "from_name": control, "to_name": _to_name(control, options),
            "type": "choices", "value": {"choices": _choices(value)},
        }
        if provenance in _ORIGIN:
            region["origin"] = _ORIGIN[provenance]
        result.append(region)
    return {
        "id": given.id, "completed_by": _user(given.annotator), "result": result, "was_cancelled": False,
        "ground_truth": False, "task": task, **_times(given),
    }


def _flat(dataset: Dataset, *, with_data: bool = True) -> Iterator[dict[str, Any]]:
    controls = set(dataset.votes.controls)
    for unit, found in _by_unit(dataset):
        data = dataset.content.get(unit, {}) if with_data else {}
        free = {key: each for key, each in data.items() if key not in RESERVED and key not in controls}
        for given in found:
            answers: dict[str, Any] = {}
            for control, (value, _) in given.answers.items():
                chosen = _choices(value)
                answers[control] = chosen[0] if len(chosen) == 1 else {"choices": chosen}
            yield {
                **free, "id": int(unit) if _is_number(unit) else unit, **answers,
                "annotator": int(given.annotator) if _is_number(given.annotator) else given.annotator,
                "annotation_id": given.id, **_times(given),
            }


def _choices(value: Value) -> list[str]:
    return [str(each) for each in value.data] if isinstance(value.data, tuple) else [str(value.data)]


def _times(given: _Annotation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if given.time:
        found["created_at"] = found["updated_at"] = datetime.fromtimestamp(given.time, UTC).isoformat()
    if given.lead_time_s == given.lead_time_s:
        found["lead_time"] = given.lead_time_s
    return found


def _user(annotator: str) -> int | dict[str, str]:
    return int(annotator) if _is_number(annotator) else {"email": annotator}


def _to_name(control: str, options: WriteOptions) -> str:
    known = options.label_config.controls if options.label_config is not None else ()
    return next((each.to_names[0] for each in known if each.name == control), "text")


def _is_number(name: str) -> bool:
    """Whether it is an id as Label Studio has them: digits without a leading zero."""
    return name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS and str(int(name)) == name


def _task_numbers(units: tuple[str, ...]) -> dict[str, int]:
    """A number for each unit: its own, or one after the largest."""
    own = {unit: int(unit) for unit in units if _is_number(unit)}
    following = max(own.values(), default=0) + 1
    others = [unit for unit in reading_order(units) if unit not in own]
    return own | {unit: following + place for place, unit in enumerate(others)}
