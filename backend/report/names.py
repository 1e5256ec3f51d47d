"""What annotators are called where names are masked: "Annotator 3", numbered in the order of their ids.

Masked, neither names nor Label Studio's user ids appear in a page, an address, the API or a report. The numbers are
those among the annotators that the figures speak of, so they can move when somebody new begins; they are no pseudonyms
for studies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.ports import Store
    from backend.services.statistics.reading import Reader


class Names:
    """Annotator id <-> what is shown of it."""

    def __init__(self, names: Mapping[str, str], *, mask: bool, later: Mapping[str, str] | None = None) -> None:
        """`names`: annotator id -> name. `later`: the same, newer; who is only there is numbered after all others."""
        self.masked = mask
        later = later or {}
        ordered = sorted(names, key=_order) + sorted(later.keys() - names.keys(), key=_order)
        every = {**names, **later}
        self._names = {who: f"Annotator {place}" for place, who in enumerate(ordered, 1)} if mask else every
        self._slugs = {who: f"annotator-{place}" if mask else who for place, who in enumerate(ordered, 1)}
        self._ids = {slug: who for who, slug in self._slugs.items()}

    def name(self, annotator: str) -> str:
        """For people."""
        return self._names.get(annotator) or ("Somebody" if self.masked else annotator)

    def slug(self, annotator: str) -> str:
        """For addresses and programs."""
        return self._slugs.get(annotator, "unknown" if self.masked else annotator)

    def find(self, slug: str) -> str | None:
        """The annotator that a slug stands for."""
        return self._ids.get(slug)

    def all(self, annotators: Iterable[str]) -> list[str]:
        """Names of several."""
        return [self.name(each) for each in annotators]


def names_of(reader: Reader, store: Store, project: str, annotators: Sequence[str], *, mask: bool) -> Names:
    """Of files: masked, everybody has the number that they have on the pages, which go by the last figures."""
    figures = reader.annotators(project)
    known = {each.annotator: each.name for each in store.votes.activity(project)}
    return Names({row.annotator: row.name for row in figures.rows} if figures else {}, mask=mask,
                 later={who: known.get(who, who) for who in annotators})


def _order(annotator: str) -> tuple[int, int, str]:
    return (0, int(annotator), "") if annotator.isascii() and annotator.isdigit() else (1, 0, annotator)
