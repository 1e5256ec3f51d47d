"""Answers of Label Studio controls without a labeling configuration: a region says by the key of its value what it is.

    choices  text or several        -> a set of classes (single where every answer of the control is one)
    rating   {"rating": 4}          -> a class that is a number; such controls are ordered
    number   {"number": 1.5}        -> a number
    selected {"selected": "left"}   -> a class
    taxonomy {"taxonomy": [[...]]}  -> a set of paths, named as by the configuration
    ranker   {"ranker": ...}        -> a ranking

Answers on regions (a value with a place in the task) are no answers about the task. What cannot be read is no vote, and
told with its reason.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backend.labeling import Control
from backend.labeling.controls.base import PARTS
from backend.labeling.controls.options import PATH_SEPARATOR
from backend.labeling.controls.taxonomy import read_paths
from backend.labeling.written import class_text, finite, finite_text, number_text
from model.data.spaces import Value, ValueKind

KINDS = ("choices", "rating", "number", "selected", "taxonomy", "ranker")
KIND_OF = {"Choices": "choices", "Rating": "rating", "Number": "number", "Pairwise": "selected",
           "Taxonomy": "taxonomy", "Ranker": "ranker"}
_LARGEST = 1e15  # of a number: beyond, a float does not tell whole numbers apart
Region = Mapping[str, Any]


def kind_of(value: object) -> str:
    """The kind of an answer on a whole task; "" for anything else."""
    if not isinstance(value, Mapping) or PARTS & set(value):
        return ""
    return next((kind for kind in KINDS if kind in value), "")


def answer_of(regions: Sequence[Region]) -> tuple[Value | None, str]:
    """The value of the regions of one control in one annotation, and their kind; None where it cannot be read."""
    values = [region["value"] for region in regions]
    kind = kind_of(values[0])
    stored = [value[kind] for value in values if kind_of(value) == kind]
    match kind:
        case "choices":
            entries = [entry for each in stored for entry in (each if isinstance(each, list) else [each])]
            return set_of(entries), kind
        case "taxonomy":
            return _paths(stored), kind
        case "rating":
            stars = finite(stored[0])
            return (Value.of_class(number_text(stars)) if stars is not None and stars.is_integer() else None), kind
        case "number":
            number = finite(stored[0])
            return (Value.of_number(number) if number is not None and abs(number) <= _LARGEST else None), kind
        case "selected":
            side = stored[0]
            return (Value.of_class(side) if isinstance(side, str) and side else None), kind
    return _ranking(stored[0]), kind


def set_of(entries: Sequence[object]) -> Value | None:
    """The answer of a list of choices; a nested one is named by its path. None for none and for unreadable ones."""
    names: list[str] = []
    for entry in entries:
        parts = [class_text(part) for part in entry] if isinstance(entry, list) else [class_text(entry)]
        if not parts or None in parts:
            return None
        names.append(PATH_SEPARATOR.join(part for part in parts if part is not None))
    return Value.of_classes(names) if names else None


def _paths(stored: Sequence[object]) -> Value | None:
    names: list[str] = []
    for each in stored:
        found = read_paths(each)
        if found is None:
            return None
        names += [PATH_SEPARATOR.join(path) for path in found]
    return Value.of_classes(names)


def _ranking(stored: object) -> Value | None:
    """A single list is an order; of several the buckets are one, "_" (what is in none) last."""
    lists: Mapping[str, Any] = {"_": stored} if isinstance(stored, list) else \
        stored if isinstance(stored, Mapping) else {}
    items = {name: [text for each in listed if (text := class_text(each)) is not None]
             for name, listed in lists.items() if isinstance(listed, list)}
    buckets: list[tuple[str, ...]]
    if len(items) == 1:
        buckets = [(item,) for listed in items.values() for item in listed]
    else:
        named = [listed for name, listed in items.items() if name != "_"]
        buckets = [tuple(listed) for listed in [*named, items.get("_", [])] if listed]
    return Value(ValueKind.RANKING, tuple(buckets)) if buckets else None


def flat_regions(name: str, cell: object, control: Control | None) -> list[dict[str, Any]]:
    """The regions that a cell of a flat export stands for; [] for an empty one.

    Flat exports hold text for one choice, {"choices": [...]} for several, and a list of region values for the rest;
    tables that went through other programs hold bare values ("4" for a rating) and lists in Python's spelling.
    """
    cell = parsed(cell)
    if cell is None or cell == "" or cell == []:
        return []
    listed = cell if isinstance(cell, list) else [cell]
    if all(isinstance(each, Mapping) and (kind_of(each) or PARTS & set(each)) for each in listed):
        return [{"from_name": name, "value": dict(each)} for each in listed if isinstance(each, Mapping)]
    kind = KIND_OF.get(control.tag, "") if control is not None else "choices"
    if kind in ("rating", "number"):
        number = finite_text(cell)
        return [{"from_name": name, "value": {kind: cell if number is None else number}}]
    return [{"from_name": name, "value": {kind: listed if kind == "choices" else cell}}] if kind else []


def parsed(cell: object) -> object:
    """A text that is JSON (or Python) of an object or a list, as that; anything else as it is."""
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("{", "["):
        return cell
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return cell


def is_structured(cell: object) -> bool:
    """Whether a cell is the stored answer of a control and cannot be task data by its looks."""
    cell = parsed(cell)
    listed = cell if isinstance(cell, list) else [cell]
    return bool(listed) and all(isinstance(each, Mapping) and kind_of(each) for each in listed)


def varies(units: Iterable[object], cells: Iterable[object]) -> bool:
    """Whether a column differs within a task, as only answers do: what a task holds is the same in all its rows."""
    first: dict[object, str] = {}
    for unit, cell in zip(units, cells, strict=True):
        text = cell if isinstance(cell, str) else json.dumps(cell, sort_keys=True, default=str)
        if first.setdefault(unit, text) != text:
            return True
    return False
