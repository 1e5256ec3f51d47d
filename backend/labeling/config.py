"""A label config, read: the controls that are learned, those that are not and why, and what text a task shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from backend.errors import LabelConfigError
from backend.labeling.content import pack
from backend.labeling.controls import Control, Place, Unmodelled, is_control, read_control
from backend.labeling.controls.per_region import PerRegion
from backend.labeling.controls.ranker import Ranker
from backend.labeling.markup import Tag, read, walk
from backend.labeling.objects import OBJECT_TAGS, MediaTag, ObjectTag, Unread, content, defined, read_object
from backend.labeling.regions import KINDS
from model.data.numbers import NumberBins, kept
from model.data.spaces import Space, Value
from model.data.votes import Votes

NOTHING_LEARNED: Mapping[str, Mapping[str, Any]] = {}


@dataclass(frozen=True, kw_only=True)
class LabelConfig:
    """What a labeling configuration asks and shows."""

    controls: tuple[Control, ...]  # those that are modelled, in document order
    unmodelled: tuple[Unmodelled, ...]
    objects: tuple[ObjectTag, ...]  # texts that show task data
    unread: tuple[Unread, ...]  # tables, documents and so on
    media: tuple[MediaTag, ...] = ()  # images, sounds and videos of a task

    @cached_property
    def fingerprint(self) -> str:
        """Stable hash of all that changes what is read and learned: controls, classes, aliases, texts. Not display."""
        matters = [
            [[control.name, control.signature()] for control in self.controls],
            [[text.name, text.tag, text.template, text.encoding] for text in self.objects],
            *([[[medium.name, medium.tag, medium.template] for medium in self.media]] if self.media else []),
        ]
        return hashlib.sha256(json.dumps(matters, ensure_ascii=True).encode()).hexdigest()[:16]

    def control(self, name: str) -> Control | None:
        """The modelled control of this name."""
        return next((control for control in self.controls if control.name == name), None)

    @cached_property
    def drawing(self) -> dict[str, str]:
        """Name -> tag of the controls with which regions are drawn that can be compared, learned or not."""
        declared: list[Control | Unmodelled] = [*self.controls, *self.unmodelled]
        return {each.name: each.tag for each in declared if each.tag in KINDS.values() and each.name}

    @cached_property
    def regional(self) -> dict[str, PerRegion]:
        """Name -> control, of those that are answered for each region."""
        return {control.name: control for control in self.controls if isinstance(control, PerRegion)}

    def region_spaces(
        self, votes: Votes, learned: Mapping[str, Mapping[str, Any]] = NOTHING_LEARNED
    ) -> dict[str, Space]:
        """`spaces` of the controls that are answered for each region; what asks about whole tasks leaves them out."""
        return _spaces([control.inner for control in self.regional.values()], votes, learned)

    def spaces(
        self, votes: Votes | None = None, learned: Mapping[str, Mapping[str, Any]] = NOTHING_LEARNED
    ) -> dict[str, Space]:
        """Control name -> space. Controls that take their choices from task data collect their classes from votes,
        and are left out as long as no class is known; so do those whose numbers are binned by the votes. `learned`
        are the figures of the published version for each control: its bins are kept while they do."""
        return _spaces(self.controls, votes, learned)

    def content(self, data: Mapping[str, Any], *, task: int | None = None) -> str:
        """What a task shows, packed for the encoder (see `labeling.content`); "" when that is nothing.

        `task` is Label Studio's id, without which media in cloud storage cannot be asked for.
        """
        return pack(content(self.objects, self.media, data, task))

    def text(self, data: Mapping[str, Any]) -> str:
        """The words that a task shows, for people; "" where it shows none."""
        return content(self.objects, (), data, None).text

    def problems(self, data: Mapping[str, Any]) -> list[str]:
        """Sentences on what keeps a task from being read whole. They carry names from the config, no task text."""
        lists = [each for each in self.controls if isinstance(each, Ranker)]
        unordered = [problem for control in lists for problem in control.problems(data)]
        shown: list[ObjectTag | MediaTag] = [*self.objects, *self.media]
        if not shown and lists:
            return unordered
        if not shown:
            nothing = "The labeling configuration shows nothing from the task that can be read."
            return [thing.reason for thing in self.unread] or [nothing]
        whole = defined(shown, data)
        return [*(problem for tag in shown for problem in tag.problems(whole)), *unordered]

    def prediction(
        self, values: Mapping[str, tuple[Value, float]], *, data: Mapping[str, Any], model_version: str, score: float
    ) -> dict[str, Any] | None:
        """A Label Studio prediction of (value, probability) per control.

        Values that the task does not offer are left out, and so are those of controls that the predicted answers leave
        hidden (`visibleWhen`); None when nothing is left. A predicted empty set of labels is
        something: it makes a prediction with an empty result, since Label Studio has no region for it.
        """
        offered = {
            control.name: part for control in self.controls
            if control.name in values and (part := control.offered(values[control.name][0], data)) is not None
        }
        shown = self._shown(offered, data)
        result = [
            region for control in self.controls if control.name in shown
            for region in control.encode(shown[control.name], values[control.name][1], data)
        ]
        answered = bool(shown)
        if not answered:
            return None
        return {"result": result, "score": round(min(max(float(score), 0.0), 1.0), 6), "model_version": model_version}

    def shows(self, control: Control, result: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> bool:
        """Whether annotators would see a control (`visibleWhen`) if the regions of `result` were the answers."""
        if not control.shown_when:
            return True
        needed = {condition.control for condition in control.shown_when}
        chosen = {each.name: _choices(each, value, data) for each in self.controls
                  if each.name in needed and (value := each.decode(result, data)) is not None}
        return all(condition.holds(chosen) for condition in control.shown_when)

    def _shown(self, offered: Mapping[str, Value], data: Mapping[str, Any]) -> dict[str, Value]:
        """The answers of the controls that annotators would see if these were the answers."""
        shown: dict[str, Value] = {}
        chosen: dict[str, list[str]] = {}
        left = [control for control in self.controls if control.name in offered]
        while ready := [c for c in left if all(condition.holds(chosen) for condition in c.shown_when)]:
            for control in ready:
                value = shown[control.name] = offered[control.name]
                chosen[control.name] = _choices(control, value, data)
            left = [control for control in left if control not in ready]
        return shown


def _spaces(
    controls: Sequence[Control], votes: Votes | None, learned: Mapping[str, Mapping[str, Any]]
) -> dict[str, Space]:
    spaces: dict[str, Space] = {}
    for control in controls:
        seen = _observed(votes, control.name)
        space = control.space(seen)
        if isinstance(space, NumberBins):
            space = kept(space, learned.get(control.name, {}).get("bins"), seen)
        if space is not None:
            spaces[control.name] = space
    return spaces


def _choices(control: Control, value: Value, data: Mapping[str, Any]) -> list[str]:
    """What a condition may call a value: its labels and what Label Studio stores for them."""
    labels = [value.data] if isinstance(value.data, str) else list(value.data) if isinstance(value.data, tuple) else []
    stored = [entry for region in control.encode(value, None, data) for entry in region["value"].get("choices", [])]
    return [name for name in [*labels, *stored] if isinstance(name, str)]


def parse_config(xml: object) -> LabelConfig:
    """Read a label config. Raises LabelConfigError with a sentence that names the tag and the control."""
    root = read(xml)
    controls: list[Control] = []
    unmodelled: list[Unmodelled] = []
    objects: list[ObjectTag] = []
    media: list[MediaTag] = []
    unread: list[Unread] = []
    _no_name_twice(root)
    names = {tag.get("name"): tag.kind for tag, _ in walk(root) if tag.get("name")}
    for tag, ancestors in walk(root):
        place = Place(tag=tag, ancestors=ancestors)
        match read_control(place):
            case Control() as control:
                points = _where_to(control, names)
                if points:
                    unmodelled.append(Unmodelled(name=control.name, tag=control.tag, reason=points))
                else:
                    controls.append(control)
            case Unmodelled() as declared:
                unmodelled.append(declared)
        match read_object(tag):
            case ObjectTag() as text if not any(ancestor.kind == "repeater" for ancestor in ancestors):
                objects.append(text)
            case MediaTag() as medium if not any(ancestor.kind == "repeater" for ancestor in ancestors):
                media.append(medium)
            case Unread() as thing:
                unread.append(thing)
    return LabelConfig(
        controls=tuple(controls), unmodelled=tuple(unmodelled), objects=tuple(objects), unread=tuple(unread),
        media=tuple(media),
    )


def _no_name_twice(root: Tag) -> None:
    """Raises LabelConfigError when two controls or objects share a name."""
    taken: set[str] = set()
    for tag, _ in walk(root):
        name = tag.get("name")
        if not name or not (is_control(tag.kind) or tag.kind in OBJECT_TAGS):
            continue
        if name in taken:
            raise LabelConfigError(f"Two tags of the labeling configuration are named '{name}'.")
        taken.add(name)


def _where_to(control: Control, names: Mapping[str, str]) -> str:
    """A sentence that says why what a control points to keeps it from being learned; "" where nothing does.

    `names` are those of all tags, with their kinds. Raises LabelConfigError for a control without a name and one that
    points to what is not there, which Label Studio takes for none either.
    """
    if not control.name:
        raise LabelConfigError(f"A {control.tag} tag of the labeling configuration has no name.")
    called = f"{control.tag} '{control.name}'"
    if not control.to_names:
        return f"{called} is not modelled: it has no toName, so it is about no object of the task."
    for name in control.to_names:
        if name not in names:
            raise LabelConfigError(f"{called} points to '{name}', which does not exist.")
        if names[name] not in OBJECT_TAGS and not is_control(names[name]):
            return f"{called} is not modelled: its toName is '{name}', which shows nothing of the task."
    return ""


def _observed(votes: Votes | None, control: str) -> dict[Value, int]:
    """The values given with a control, and how often."""
    if votes is None:
        return {}
    given = np.bincount(votes.of_control(control).value, minlength=len(votes.values))
    return {value: int(times) for value, times in zip(votes.values, given, strict=True) if times}
