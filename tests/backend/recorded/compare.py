"""What differs between two recordings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Path = tuple[str, ...]
MISSING = "(not there)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two recordings do not say the same."""

    path: Path
    recorded: Any
    now: Any

    def __str__(self) -> str:
        return f"{'/'.join(self.path)}: {self.recorded!r} was recorded, now it is {self.now!r}"


def differences(recorded: Any, now: Any, *, within: float) -> list[Difference]:
    """Numbers may differ by `within`, or that share of the recorded one; everything else must be the same."""
    before, after = dict(leaves(recorded)), dict(leaves(now))
    return [Difference(path, before.get(path, MISSING), after.get(path, MISSING))
            for path in sorted(before.keys() | after.keys())
            if not _same(before.get(path, MISSING), after.get(path, MISSING), within)]


def matches(path: Path, place: str) -> bool:
    """Whether a path lies in a place (see `intended`)."""
    parts = place.split("/")
    return len(parts) <= len(path) and all(map(fnmatchcase, path, parts))


def drift(recorded: Any, now: Any) -> dict[str, tuple[float, float]]:
    """Part of a recording (project, and which of its services) -> (mean difference of its numbers, each counted as 1 at
    most, relative where they are above 1; share of its other leaves that differ)."""
    before, after = dict(leaves(recorded)), dict(leaves(now))
    numbers, others = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for path, old in before.items():
        new, part = after.get(path, MISSING), "/".join(path[:2])
        if _number(old) is None or _number(new) is None:
            others[part].append(float(old != new))
        else:
            numbers[part].append(min(1.0, _apart(old, new)))
    return {part: (_mean(numbers[part]), _mean(others[part])) for part in numbers.keys() | others.keys()}


def leaves(item: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, text, truth value and None, and every empty list or dict, with the path to it."""
    inside = list(item.items() if isinstance(item, Mapping) else enumerate(item) if isinstance(item, list) else ())
    if not inside:
        yield path, item
    for key, each in inside:
        yield from leaves(each, (*path, str(key)))


def _same(old: Any, new: Any, within: float) -> bool:
    if old == new and isinstance(old, bool) == isinstance(new, bool):
        return True
    return _number(old) is not None and _number(new) is not None and _apart(old, new) <= within


def _number(item: Any) -> float | None:
    """Of a number, or of a text that is one: labels of numbers are texts."""
    if isinstance(item, bool) or not isinstance(item, int | float | str):
        return None
    try:
        return float(item)
    except ValueError:
        return None


def _apart(old: Any, new: Any) -> float:
    return abs(float(old) - float(new)) / max(1.0, abs(float(old)))


def _mean(found: list[float]) -> float:
    return sum(found) / len(found) if found else 0.0
