"""What a region of a task shows, as a content of its own: the words of a span, or a part of a picture.

A span of a `Text` is the text between its offsets, one of a `HyperText` the words that Label Studio stored with it. A
box, an ellipse or a polygon on an `Image` is the rectangle around it. Every other region (a piece of a sound, of a
video, of a dialogue, a brush stroke) is read as the whole task: it can be told from regions of other tasks, not of its
own.

Invariants: of a result only what makes a region and the answers that are learned are read, nobody's free text; whatever
geometry comes in, the outcome is a content or a sentence that says why there is none; contents of regions have the
layout of those of tasks, so that one network reads both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.config import LabelConfig
from backend.labeling.content import Content, Medium, modalities_of, pack
from backend.labeling.controls.base import PARTS
from backend.labeling.controls.per_region import GEOMETRY, place_of
from backend.labeling.objects import MediaTag, ObjectTag, defined

WORDS = frozenset({"text", "globalOffsets"})  # of a span, beside its geometry
# Types of a result that make a region, beside those that end in "labels". A list of what may be shown again, and none
# of what may not: free text on a region must never pass for its shape.
_MARKS = frozenset({
    "bitmask", "brush", "ellipse", "keypoint", "polygon", "rectangle", "vector", "videorectangle", "videovector",
})
Shown = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A region as somebody drew it."""

    place: str  # the same for regions of the same object and geometry; ends the id of its unit
    to_name: str
    item_index: object  # of several images, which; None where there is one
    geometry: Mapping[str, Any]  # with the words of a span
    entries: tuple[Shown, ...]  # of the result: what makes the region, without answers on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a region shows, packed (see `labeling.content`); or why it cannot be read."""

    content: str = ""
    problem: str = ""  # a sentence without anybody's text


def drawn_in(config: LabelConfig, result: Iterable[Shown]) -> dict[str, Drawn]:
    """Place -> region, of the regions in a `result` that an answer on a region may be about."""
    judged = {name for control in config.regional.values() for name in control.to_names}
    found: dict[str, list[Shown]] = {}
    for entry in result:
        value, to_name, name = entry.get("value"), entry.get("to_name"), entry.get("from_name")
        if not isinstance(value, Mapping) or not isinstance(to_name, str) or not isinstance(name, str):
            continue
        if to_name in judged and PARTS & set(value) and (name in config.regional or _marks(entry)):
            found.setdefault(place_of(entry, value), []).append(entry)
    return {place: _drawn(config, place, entries) for place, entries in found.items()}


def read_region(config: LabelConfig, data: Mapping[str, Any], region: Drawn, *, task: int) -> Read:
    """What the region shows in a task with this data."""
    whole = defined([*config.objects, *config.media], data)
    tags: list[ObjectTag | MediaTag] = [*config.objects, *config.media]
    tag = next((tag for tag in tags if tag.name == region.to_name), None)
    if isinstance(tag, ObjectTag) and tag.tag in ("Text", "HyperText"):
        words, problem = _words(tag, whole, region.geometry)
        return Read(problem=problem) if problem else Read(content=_packed(config, text=words, task=task))
    if isinstance(tag, MediaTag) and tag.modality == "image" and "rle" not in region.geometry:
        return _part(config, tag, whole, region, task)
    content = config.content(data, task=task)
    return Read(content=content) if content else Read(problem="The task of the region shows nothing that is read.")


def _drawn(config: LabelConfig, place: str, entries: Sequence[Shown]) -> Drawn:
    first = entries[0]
    value = {key: each for entry in entries for key, each in entry["value"].items() if key in GEOMETRY | WORDS}
    shapes = tuple(entry for entry in entries if entry.get("from_name") not in config.regional)
    return Drawn(
        place=place, to_name=str(first["to_name"]), item_index=first.get("item_index"), geometry=value, entries=shapes)


def _marks(entry: Shown) -> bool:
    """Whether an entry of a result makes a region, whatever else is said of it."""
    kind = entry.get("type")
    return isinstance(kind, str) and (kind in _MARKS or kind.endswith("labels"))


def _words(tag: ObjectTag, data: Mapping[str, Any], span: Mapping[str, Any]) -> tuple[str, str]:
    """(the words of a span, ""), or ("", why there are none)."""
    stored = span.get("text")
    if tag.tag == "HyperText":  # its offsets count in the browser's document, which is not here
        if not isinstance(stored, str) or not stored.strip():
            return "", "The region on a HyperText came without its words."
        plain = " ".join(tag.text(data).split())
        if "".join(stored.split()) not in "".join(plain.split()):
            return "", "The text has changed since the region was drawn."
        return " ".join(stored.split()), ""
    start, end = _whole_number(span.get("start")), _whole_number(span.get("end"))
    if start is None or end is None or start < 0:
        return "", "The region on a Text has no start and end."
    if end <= start:
        return "", "The region on a Text is empty."
    text = tag.source(data)
    units = text.encode("utf-16-le", "surrogatepass")  # as a browser counts
    counted = text[start:end], units[2 * start : 2 * end].decode("utf-16-le", "replace")
    if 2 * end > len(units):
        return "", "The region on a Text ends beyond it."
    words = next((each for each in counted if each == stored), counted[0])
    if isinstance(stored, str) and stored not in counted and stored.split() != words.split():
        return "", "The text has changed since the region was drawn."
    return (words.strip(), "") if words.strip() else ("", "The region on a Text is empty.")


def _part(config: LabelConfig, tag: MediaTag, data: Mapping[str, Any], region: Drawn, task: int) -> Read:
    """The part of the picture that the region is on."""
    pictures = tag.addresses(data)
    at = 0 if region.item_index is None else _whole_number(region.item_index)
    if at is None or not 0 <= at < len(pictures):
        return Read(problem="The region is on a picture that the task does not have.")
    box = _box(region.geometry)
    if box is None:
        return Read(problem="The region on a picture has no geometry.")
    x, y, wide, high, degrees = box
    if wide <= 0 or high <= 0:
        return Read(problem="The region on a picture has no size.")
    if degrees == 0 and (x >= 100 or y >= 100 or x + wide <= 0 or y + high <= 0):
        return Read(problem="The region lies outside its picture.")
    return Read(content=_packed(config, task=task, media=(
        Medium(modality="image", address=pictures[at], box=tuple(round(each, 3) for each in box)),)))


def _box(shape: Mapping[str, Any]) -> tuple[float, float, float, float, float] | None:
    """(x, y, width, height, degrees) around a shape in percent; None where it says nothing of that."""
    points = shape.get("points")
    if isinstance(points, list):
        pairs = [tuple(map(_number, point)) for point in points if isinstance(point, list) and len(point) == 2]
        across, down = [x for x, _ in pairs if x is not None], [y for _, y in pairs if y is not None]
        if not pairs or len(across) < len(pairs) or len(down) < len(pairs):
            return None
        return min(across), min(down), max(across) - min(across), max(down) - min(down), 0.0
    x, y = _number(shape.get("x")), _number(shape.get("y"))
    a, b = _number(shape.get("radiusX")), _number(shape.get("radiusY"))
    if x is not None and y is not None and a is not None and b is not None:
        return x - a, y - b, 2 * a, 2 * b, 0.0
    wide, high, turned = _number(shape.get("width")), _number(shape.get("height")), _number(shape.get("rotation", 0))
    if x is None or y is None or wide is None or high is None:
        return None
    return x, y, wide, high, turned or 0.0


def _packed(config: LabelConfig, *, task: int, text: str = "", media: tuple[Medium, ...] = ()) -> str:
    """With the modalities that all contents of this config have."""
    shown = [*(["text"] if config.objects else []), *(tag.modality for tag in config.media)]
    modalities = modalities_of(shown) if config.media else ()
    return pack(Content(text=text, media=media, modalities=modalities, task=task))


def _number(value: object) -> float | None:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e6
    return float(value) if plain and isinstance(value, (int, float)) and math.isfinite(value) else None


def _whole_number(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else None
