"""Regions that annotators drew, as what `model.regions` compares: `Labels`, `RectangleLabels` and `PolygonLabels`.

A region says itself what it is by its type. Coordinates of pictures are percents of width and height; with the size of
the picture they become pixels, which matters where a box is turned (clockwise, about its upper left corner). A region
that says no place or an impossible one is left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.regions import Region

KINDS = {"labels": "Labels", "rectanglelabels": "RectangleLabels", "polygonlabels": "PolygonLabels"}
Outline = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The regions of one annotation."""

    of_control: Mapping[str, Sequence[Region]]
    unreadable: int  # regions of these kinds without a place


def read_regions(result: Sequence[Mapping[str, Any]]) -> Drawn:
    """The regions of an annotation's result, by their control."""
    found: dict[str, list[Region]] = {}
    unreadable = 0
    for item in result:
        kind, value, control = item.get("type"), item.get("value"), item.get("from_name")
        if not isinstance(kind, str) or kind not in KINDS or not isinstance(control, str):
            continue
        outline = _outline(kind, value, item) if isinstance(value, Mapping) else None
        if outline is None or not isinstance(value, Mapping):
            unreadable += 1
            continue
        labels = value.get(kind)
        named = [name for name in labels if isinstance(name, str)] if isinstance(labels, list) else []
        where = [item.get("to_name"), item.get("item_index"), value.get("channel")]
        found.setdefault(control, []).append(Region(labels=frozenset(named), where=repr(where), outline=outline))
    return Drawn(of_control=found, unreadable=unreadable)


def _outline(kind: str, value: Mapping[str, Any], item: Mapping[str, Any]) -> Outline | None:
    if kind == "labels":
        start, end = _number(value.get("start")), _number(value.get("end"))
        return None if start is None or end is None or end < start else ((start, end),)
    wide, high = (_size(item.get(name)) for name in ("original_width", "original_height"))
    if kind == "rectanglelabels":
        return _box(value, wide, high)
    points = value.get("points")
    corners = [_corner(point) for point in points] if isinstance(points, list) else []
    found = [(x * wide, y * high) for corner in corners if corner is not None for x, y in [corner]]
    return tuple(found) if len(found) == len(corners) >= 3 else None


def _box(value: Mapping[str, Any], wide: float, high: float) -> Outline | None:
    numbers = [_number(value.get(name)) for name in ("x", "y", "width", "height")]
    turned = _number(value.get("rotation", 0.0))
    if turned is None or any(number is None for number in numbers):
        return None
    x, y, width, height = (float(number) for number in numbers if number is not None)
    if width < 0.0 or height < 0.0:
        return None
    cos, sin = math.cos(math.radians(turned)), math.sin(math.radians(turned))
    across, down = width * wide, height * high
    steps = ((0.0, 0.0), (across, 0.0), (across, down), (0.0, down))
    return tuple((x * wide + a * cos - b * sin, y * high + a * sin + b * cos) for a, b in steps)


def _corner(point: Any) -> tuple[float, float] | None:
    if not isinstance(point, list) or len(point) != 2:
        return None
    x, y = _number(point[0]), _number(point[1])
    return None if x is None or y is None else (x, y)


def _size(value: Any) -> float:
    """Pixels a percent; 1 where the size of the picture is not known."""
    number = _number(value)
    return number / 100.0 if number is not None and number > 0.0 else 1.0


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e9:
        return None
    return float(value)
