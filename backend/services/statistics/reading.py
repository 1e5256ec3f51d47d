"""Reading documents, for pages and the API: parsed once for each version, so that a request costs one small query."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import TypeVar

from backend.ports import Store
from backend.services.statistics.codec import decode
from backend.services.statistics.documents import (
    TYPES,
    Alike,
    Annotators,
    Consensus,
    Document,
    DocumentKind,
    Flags,
    Overview,
    Profile,
    Regions,
    Tasks,
)

log = logging.getLogger(__name__)
D = TypeVar("D", Overview, Annotators, Profile, Tasks, Flags, Consensus, Regions, Alike)
Key = tuple[str, str, str]  # project, kind, part


class Reader:
    """Documents by key. Safe for threads; what another process wrote is seen at the next call."""

    def __init__(self, store: Store, *, in_memory: int = 24) -> None:
        """`in_memory` parsed documents are kept."""
        self._store = store
        self._in_memory = in_memory
        self._lock = threading.Lock()
        self._parsed: OrderedDict[Key, tuple[str, Document]] = OrderedDict()

    def version(self, project: str, kind: DocumentKind, part: str = "") -> str | None:
        """What changes whenever the document does (an ETag); None where there is no document."""
        return self._store.statistics.version(project, kind.value, part)

    def read(self, project: str, kind: DocumentKind, part: str = "") -> Document | None:
        """The newest document; None before the first, and for one that an older release wrote in another shape.

        `part` is the annotator of a profile, and "" for all other kinds.
        """
        version, key = self.version(project, kind, part), (project, kind.value, part)
        if version is None:
            return None
        with self._lock:
            kept = self._parsed.get(key)
            if kept is not None and kept[0] == version:
                self._parsed.move_to_end(key)
                return kept[1]
        stored = self._store.statistics.body(project, kind.value, part)
        if stored is None:
            return None
        try:
            document = decode(TYPES[kind], stored[1])
        except (ValueError, TypeError, KeyError):
            log.warning("the %s of project %s was written by another release; it waits for the next one", kind, project)
            return None
        with self._lock:
            self._parsed[key] = (stored[0], document)
            self._parsed.move_to_end(key)
            while len(self._parsed) > self._in_memory:
                self._parsed.popitem(last=False)
        return document

    def overview(self, project: str) -> Overview | None:
        """See `read`."""
        return _of(Overview, self.read(project, DocumentKind.OVERVIEW))

    def annotators(self, project: str) -> Annotators | None:
        """See `read`."""
        return _of(Annotators, self.read(project, DocumentKind.ANNOTATORS))

    def profile(self, project: str, annotator: str) -> Profile | None:
        """See `read`; None for somebody without a vote."""
        return _of(Profile, self.read(project, DocumentKind.PROFILE, annotator))

    def tasks(self, project: str) -> Tasks | None:
        """See `read`."""
        return _of(Tasks, self.read(project, DocumentKind.TASKS))

    def flags(self, project: str) -> Flags | None:
        """See `read`."""
        return _of(Flags, self.read(project, DocumentKind.FLAGS))

    def consensus(self, project: str) -> Consensus | None:
        """See `read`."""
        return _of(Consensus, self.read(project, DocumentKind.CONSENSUS))

    def regions(self, project: str) -> Regions | None:
        """See `read`; None too where annotators draw nothing that is compared."""
        return _of(Regions, self.read(project, DocumentKind.REGIONS))

    def alike(self, project: str) -> Alike | None:
        """See `read`."""
        return _of(Alike, self.read(project, DocumentKind.ALIKE))


def _of(kind: type[D], document: Document | None) -> D | None:
    assert document is None or isinstance(document, kind)
    return document
