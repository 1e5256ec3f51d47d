"""The choices of a control: class names for the model, stored strings for Label Studio, and the way between them.

Label Studio stores the alias of a choice where there is one, else its value. With `allowNested="true"` it stores the
path from the topmost choice down, and a parent is chosen exactly when all its descendants are; so a class is a set of
leaves, named by the deepest choice that covers it. Without it every choice stands for itself and is stored flat.

Class names are display values: "Dog" or, nested, "Animal / Dog". Where one value occurs with several aliases, the
alias is the name, because only it tells the choices apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from backend.labeling.markup import Tag
from backend.labeling.task_data import as_text
from backend.labeling.written import class_text, look

PATH_SEPARATOR = " / "
_FROM_DATA = re.compile(r"\$[A-Za-z_]")

Stored = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One choice: what annotators read and what Label Studio stores, each from the topmost choice down."""

    path: tuple[str, ...]
    stored: Stored


def from_data(option: Option) -> bool:
    """Whether the text of a choice is another in every task: Label Studio puts task data into it, not into aliases."""
    return bool(_FROM_DATA.search(option.path[-1]) or _FROM_DATA.match(option.stored[-1]))


def options_of_tag(tag: Tag) -> tuple[Option, ...]:
    """The choices written in the config, parents before their children; views between them are transparent."""
    found: list[Option] = []

    def collect(parent: Tag, path: tuple[str, ...], stored: Stored) -> None:
        for child in parent.children:
            if child.kind != "choice":
                collect(child, path, stored)
                continue
            value = child.value or child.get("alias")
            if value:
                option = Option((*path, value), (*stored, child.attributes.get("alias", value)))
                found.append(option)
                collect(child, option.path, option.stored)

    collect(tag, (), ())
    return tuple(found)


def options_of_data(listed: Any) -> tuple[Option, ...]:
    """The choices that a task brings along: a list of {"value", "alias"?, "children"?} or of plain texts."""
    found: list[Option] = []

    def collect(items: Any, path: tuple[str, ...], stored: Stored, depth: int) -> None:
        for item in items if isinstance(items, list) and depth < 20 else []:
            fields: Mapping[str, Any] = item if isinstance(item, Mapping) else {"value": item}
            alias = fields.get("alias")
            value = as_text(fields.get("value")) or as_text(alias)
            if value:
                option = Option((*path, value), (*stored, value if alias is None else as_text(alias)))
                found.append(option)
                collect(fields.get("children"), option.path, option.stored, depth + 1)

    collect(listed, (), (), 0)
    return tuple(found)


class OptionTable:
    """Classes of a list of options. `clash` tells why stored answers could not be told apart ("" when they can)."""

    def __init__(self, options: Sequence[Option], *, nested: bool) -> None:
        self.nested = nested
        unique: dict[Stored, Option] = {}
        for option in options:
            unique.setdefault(self._key(option), option)
        self._options = tuple(unique.values())
        self._name_of_leaves = self._classes(self._names())
        self.classes = tuple(dict.fromkeys(self._name_of_leaves.values()))
        values = {(self._key(option), self._shown(option)) for option in options}
        ambiguous = len({key for key, _ in values}) < len(values) or len(self.classes) < len(self._name_of_leaves)
        self.clash = "two of its choices are stored under the same name" if ambiguous else ""

    def decode(self, entries: Sequence[Any], *, multiple: bool) -> list[str]:
        """Class names of stored entries (texts or paths); a parent with all its leaves is one class, unless multiple.
        Entries that no option has are named as they stand."""
        keys = [key for key in map(self._find, entries) if key]
        known = [key for key in keys if key in self._leaves]
        deepest = [key for key in known if not any(_below(other, key) for other in known)]
        leaves = frozenset[Stored]().union(*(self._leaves[key] for key in deepest))
        whole = None if multiple else self._name_of_leaves.get(leaves)
        names = [whole] if whole else [self._name_of_leaves[frozenset({leaf})] for leaf in sorted(leaves)]
        return names + [PATH_SEPARATOR.join(key) for key in keys if key not in self._leaves]

    def readable(self, entry: Any) -> bool:
        """Whether a stored entry names a choice at all, one of today or not."""
        return self._find(entry) is not None

    def encode(self, name: str) -> list[Any]:
        """Entries as Label Studio stores them when the class is chosen: a parent comes with all its descendants."""
        leaves = self._leaves_of_name[name]
        if not self.nested:
            return [key[0] for key in leaves]
        return [list(key) for key in self._leaves if self._leaves[key] <= leaves]

    @cached_property
    def leaf_classes(self) -> tuple[str, ...]:
        """Classes that stand for a single leaf; any set of them can be chosen in a multiple choice."""
        return tuple(name for leaves, name in self._name_of_leaves.items() if len(leaves) == 1)

    @cached_property
    def _leaves(self) -> dict[Stored, frozenset[Stored]]:
        """Leaves under each option, by its key; a flat option is its own leaf."""
        keys = [self._key(option) for option in self._options]
        if not self.nested:
            return {key: frozenset({key}) for key in keys}
        parents = {key[:-1] for key in keys}
        leaves: dict[Stored, set[Stored]] = {key: set() for key in keys}
        for key in keys:
            if key not in parents:
                for length in range(1, len(key) + 1):
                    leaves.setdefault(key[:length], set()).add(key)
        return {key: frozenset(leaves[key]) for key in keys}

    @cached_property
    def _leaves_of_name(self) -> dict[str, frozenset[Stored]]:
        return {name: leaves for leaves, name in self._name_of_leaves.items()}

    @cached_property
    def _key_of_text(self) -> dict[str, Stored]:
        """Every text that means exactly one option: its last stored part, else its value."""
        return self._of_one({}, lambda text: text)

    @cached_property
    def _key_of_look(self) -> dict[str, Stored]:
        """The same for what texts look like (see `written.look`)."""
        return self._of_one({}, look)

    def _of_one(self, texts: dict[str, Stored], seen: Callable[[str], str]) -> dict[str, Stored]:
        stored = [seen(option.stored[-1]) for option in self._options]
        values = [seen(option.path[-1]) for option in self._options]
        for column in (stored, values):
            counted = Counter(column)
            for text, option in zip(column, self._options, strict=True):
                if counted[text] == 1:
                    texts.setdefault(text, self._key(option))
        return texts

    def _names(self) -> dict[Stored, str]:
        """What each option is called; by what is stored where several show the same."""
        shown = Counter(self._shown(option) for option in self._options)
        return {
            self._key(option): (
                self._shown(option) if shown[self._shown(option)] == 1 else PATH_SEPARATOR.join(self._key(option))
            )
            for option in self._options
        }

    def _classes(self, names: Mapping[Stored, str]) -> dict[frozenset[Stored], str]:
        """Leaf sets with the name of the deepest option that covers them, in the order of the options."""
        deepest: dict[frozenset[Stored], Stored] = {}
        for key, leaves in self._leaves.items():
            if leaves not in deepest or len(key) > len(deepest[leaves]):
                deepest[leaves] = key
        return {leaves: names[key] for leaves, key in deepest.items()}

    def _find(self, entry: Any) -> Stored | None:
        """The key of a stored entry; a key of no option where there is none; None for what is not a label at all."""
        if not isinstance(entry, list):
            text = class_text(entry)  # imports write numbers where the config, being XML, has text
            if text is None or (text,) in self._leaves:
                return None if text is None else (text,)
            return self._key_of_text.get(text) or self._key_of_look.get(look(text)) or (text,)
        parts = [class_text(part) for part in entry]
        path = tuple(part for part in parts if part is not None)
        if not path or len(path) < len(parts):
            return None
        if path in self._leaves:
            return path
        return self._key_of_text.get(path[-1]) or self._key_of_look.get(look(path[-1])) or path

    def _key(self, option: Option) -> Stored:
        return option.stored if self.nested else option.stored[-1:]

    def _shown(self, option: Option) -> str:
        return PATH_SEPARATOR.join(option.path) if self.nested else option.path[-1]


def _below(key: Stored, ancestor: Stored) -> bool:
    return len(key) > len(ancestor) and key[: len(ancestor)] == ancestor
