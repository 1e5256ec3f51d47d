"""Who is meant in one file: a person given by id in one annotation and by e-mail address in another is one person.

Only what the file itself says joins them: an object that carries both. Addresses that differ in capitals are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backend.labeling.written import person


class People:
    """Note what stands in the file, then ask which names are another's."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}  # address, in small letters -> ids that stand beside it

    def note(self, item: object) -> None:
        """An author as the file has it."""
        if isinstance(item, Mapping) and isinstance(item.get("user"), Mapping):
            self.note(item["user"])
        elif isinstance(item, Mapping) and isinstance(address := item.get("email"), str) and "@" in address:
            who = person(item)
            if who and "@" not in who:
                self._ids.setdefault(_small(address), set()).add(who)

    def renamed(self, names: Iterable[str]) -> dict[str, str]:
        """name -> the name that the person goes by, for those that go by another one. An address that stands beside
        several ids is none of them."""
        first: dict[str, str] = {}
        found: dict[str, str] = {}
        for name in names:
            if "@" not in name:
                continue
            ids = self._ids.get(_small(name), set())
            one = next(iter(ids)) if len(ids) == 1 else first.setdefault(_small(name), name)
            if one != name:
                found[name] = one
        return found


def _small(address: str) -> str:
    return address.strip().casefold()
