"""`<Taxonomy>`: paths of a tree, one (`maxUsages="1"`) or any number of them, for the whole task.

A region is {"type": "taxonomy", "value": {"taxonomy": [["Animal", "Dog"], ["Plant"]]}}: each path from the root down to
what was chosen, which may be an inner node unless `leafsOnly`. A class is a path, so a predicted leaf always comes with
the path above it; it is called "Animal / Dog".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from backend.labeling.controls.base import NO_DATA, Control, Place, Region, Unmodelled
from backend.labeling.controls.options import PATH_SEPARATOR, from_data, options_of_tag
from backend.labeling.written import class_text, look
from model.data.spaces import MultipleChoice, SingleChoice, Space, Value, ValueKind
from model.errors import ModelError

MAX_CLASSES = 256  # of a large tree the paths that were chosen most are learned

Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Taxonomy(Control):
    """A `<Taxonomy>` tag whose tree is written in the configuration."""

    single: bool
    paths: Mapping[str, Path] = field(hash=False)  # class -> what Label Studio stores

    @classmethod
    def read(cls, place: Place) -> Taxonomy | Unmodelled:
        """The control of a tag, or why it is not modelled."""
        options = options_of_tag(place.tag)
        inner = {option.stored[:-1] for option in options}
        offered = [o for o in options if not (place.tag.is_true("leafsonly") and o.stored in inner)]
        paths = {PATH_SEPARATOR.join(option.path): option.stored for option in offered}
        why = ""
        if any(map(from_data, options)):
            why = "is not modelled yet: the text of its choices comes from task data one by one."
        elif place.tag.get("apiurl") or "$" in place.tag.get("value") or not options:
            why = "is not modelled yet: its tree does not stand in the labeling configuration."
        elif len(paths) < len(offered) or len(set(paths.values())) < len(paths):
            why = "is not modelled: two of its paths have the same name, so the answers cannot be told apart."
        if why:
            return Unmodelled(name=place.name, tag="Taxonomy", reason=f"Taxonomy '{place.name}' {why}")
        single = place.tag.get("maxusages").strip() == "1"
        return cls(name=place.name, tag="Taxonomy", to_names=place.to_names, single=single, paths=paths)

    def signature(self) -> list[Any]:
        """See `Control`."""
        return [self.tag, self.single, [[name, list(path)] for name, path in self.paths.items()]]

    def space(self, observed: Mapping[Value, int] | None = None) -> Space:
        """See `Control`."""
        classes = tuple(self.paths)
        if len(classes) > MAX_CLASSES:
            times = dict.fromkeys(classes, 0)
            for value, count in (observed or {}).items():
                for name in _names(value):
                    if name in times:
                        times[name] += count
            frequent = set(sorted(classes, key=lambda name: -times[name])[:MAX_CLASSES])
            classes = tuple(name for name in classes if name in frequent)
        return SingleChoice(classes) if self.single else MultipleChoice(classes)

    def decode(self, regions: Sequence[Mapping[str, Any]], data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        names: list[str] = []
        answered = False
        for region in self.own_regions(regions):
            chosen = region["value"].get("taxonomy")
            if chosen is None:
                continue
            answered = True
            found = read_paths(chosen)
            if found is None:
                return None  # an answer of which a part cannot be read is not known
            names += [self._called.get(path) or self._looks.get(tuple(map(look, path))) or PATH_SEPARATOR.join(path)
                      for path in found]
        if self.single and len(set(names)) == 1:
            return Value.of_class(names[0])
        # Several paths where one is asked for are kept for what they are; no single-choice space contains them.
        return Value.of_classes(names) if names or (answered and not self.single) else None

    @cached_property
    def _called(self) -> dict[Path, str]:
        """What Label Studio stores -> class."""
        return {path: name for name, path in self.paths.items()}

    @cached_property
    def _looks(self) -> dict[Path, str]:
        """What the path looks like (see `written.look`) -> class, where only one looks so."""
        seen = [tuple(map(look, path)) for path in self.paths.values()]
        times = Counter(seen)
        return {path: name for path, name in zip(seen, self.paths, strict=True) if times[path] == 1}

    def encode(self, value: Value, score: float | None = None, data: Mapping[str, Any] = NO_DATA) -> list[Region]:
        """See `Control`."""
        if self.offered(value, data) != value:
            raise ModelError(f"Taxonomy {self.name!r} does not offer this value of kind {value.kind.value!r}")
        paths = [list(self.paths[name]) for name in _names(value)]
        return [self.region("taxonomy", {"taxonomy": paths}, score)] if paths else []

    def offered(self, value: Value, data: Mapping[str, Any] = NO_DATA) -> Value | None:
        """See `Control`."""
        if self.single:
            return value if value.kind is ValueKind.CLASS and value.data in self.paths else None
        if value.kind is not ValueKind.CLASSES:
            return None
        names = _names(value)
        left = [name for name in names if name in self.paths]
        return Value.of_classes(left) if left or not names else None


def read_paths(chosen: object) -> list[Path] | None:
    """The paths of a stored answer (a list of paths, or one path); None where one of them cannot be read."""
    listed = chosen if isinstance(chosen, list) else [chosen]
    paths = listed if any(isinstance(part, list) for part in listed) else [listed] if listed else []
    found = []
    for path in paths:
        parts = [class_text(part) for part in path] if isinstance(path, list) else [class_text(path)]
        if not parts or None in parts:
            return None
        found.append(tuple(part for part in parts if part is not None))
    return found


def _names(value: Value) -> tuple[str, ...]:
    if value.kind is ValueKind.CLASS and isinstance(value.data, str):
        return (value.data,)
    if value.kind is ValueKind.CLASSES and isinstance(value.data, tuple):
        return tuple(name for name in value.data if isinstance(name, str))
    return ()
