"""One draft of one annotator: look whether it is still as we left it, then write it or take it away.

Invariants: an annotator's own work is never written over. A draft is ours only while its result and its time stamp are
those of our last write and nobody saved or postponed it; whatever else is found there is theirs, for ever. Each write
stands between two notes in the store, so that after a crash it is known whether it happened. Label Studio offers no
conditional write: between looking and writing there are a few milliseconds in which an edit would be lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from backend.ports import Desk, Store
from backend.records import Draft

REMOVING = "-"
Found = Mapping[str, Any]  # a draft as Label Studio describes it
Result = Sequence[Mapping[str, Any]]


class Place(Enum):
    """What is found where our draft is, or would be."""

    FREE = "free"  # the annotator has no draft there
    OURS = "ours"  # our draft, untouched
    THEIRS = "theirs"  # something of the annotator's
    GONE = "gone"  # our draft was there, and is not any more


class Outcome(Enum):
    """What became of a wish."""

    MADE = "made"
    CHANGED = "changed"
    KEPT = "kept"  # it was there already, as wanted
    REMOVED = "removed"
    THEIRS = "theirs"


def hashed(result: object) -> str:
    """Identifies a result as a whole, ids and origin of its regions included."""
    text = json.dumps(result, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def look(entry: Draft | None, found: Sequence[Found]) -> tuple[Place, Found | None]:
    """Judge the drafts that the annotator has on a task by what we remember of ours, None where we made none."""
    if entry is None or (entry.draft_id is None and not found):
        return (Place.THEIRS, None) if found else (Place.FREE, None)
    if entry.theirs:
        return Place.THEIRS, None
    if entry.draft_id is None:  # the process died while it was made; it has no id yet, but we know what it says
        ours = [draft for draft in found if _is_as_left(entry, draft)]
        return (Place.OURS, ours[0]) if ours else (Place.THEIRS, None)
    ours = [draft for draft in found if draft.get("id") == entry.draft_id]
    if not ours:
        if found:
            return Place.THEIRS, None
        return (Place.FREE if entry.pending == REMOVING else Place.GONE), None
    return (Place.OURS, ours[0]) if _is_as_left(entry, ours[0]) else (Place.THEIRS, None)


def _is_as_left(entry: Draft, draft: Found) -> bool:
    # The editor counts time, and ours has none; who goes on to the next task without submitting postpones it.
    if draft.get("was_postponed") or draft.get("lead_time") or draft.get("annotation") is not None:
        return False
    now = hashed(draft.get("result"))
    if entry.pending not in ("", REMOVING) and now == entry.pending:
        return True
    return now == entry.written and draft.get("updated_at") == entry.updated_at


class DraftWriter:
    """Writes with an annotator's own token and remembers what was written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(
        self, project: str, desk: Desk, email: str, entry: Draft | None, *, wanted: Draft, result: Result
    ) -> Outcome:
        """Have the annotator's draft say `result`; `wanted` is the entry to remember then. Raises LabelStudioError."""
        found = _of(email, desk.drafts(wanted.task_id))
        place, draft = look(entry, found)
        if place is Place.OURS and len(found) > 1 and draft is not None:
            desk.delete_draft(draft["id"])  # the annotator began one of their own beside it
            place = Place.THEIRS
        if place in (Place.THEIRS, Place.GONE):
            self._store.drafts.put(project, replace(entry or wanted, pending="", theirs=True))
            return Outcome.THEIRS
        sent = hashed(result)
        if draft is not None and hashed(draft.get("result")) == sent:
            self._store.drafts.put(project, _as_found(wanted, draft))
            return Outcome.KEPT
        if draft is None:
            self._store.drafts.put(project, replace(wanted, draft_id=None, written="", pending=sent))
            made = desk.create_draft(wanted.task_id, result)
            self._store.drafts.put(project, _as_found(wanted, made))
            return Outcome.MADE
        self._store.drafts.put(project, _as_found(entry or wanted, draft, pending=sent))
        self._store.drafts.put(project, _as_found(wanted, desk.update_draft(draft["id"], result)))
        return Outcome.CHANGED

    def take_away(self, project: str, desk: Desk, email: str, entry: Draft) -> Outcome:
        """Remove our draft if it is untouched, and forget it if it is gone. Raises LabelStudioError."""
        place, draft = look(entry, _of(email, desk.drafts(entry.task_id)))
        if place is Place.THEIRS:
            self._store.drafts.put(project, replace(entry, pending="", theirs=True))
            return Outcome.THEIRS
        if draft is not None:
            self._store.drafts.put(project, _as_found(entry, draft, pending=REMOVING))
            desk.delete_draft(draft["id"])
        self._store.drafts.forget(project, [(entry.task_id, entry.annotator)])
        return Outcome.REMOVED


def _as_found(entry: Draft, draft: Found, *, pending: str = "") -> Draft:
    """The entry with what to compare with next time."""
    return replace(
        entry, draft_id=int(draft["id"]), pending=pending, written=hashed(draft.get("result")),
        updated_at=str(draft.get("updated_at")),
    )


def _of(email: str, drafts: Sequence[Found]) -> list[Found]:
    return [draft for draft in drafts if str(draft.get("user")).casefold() == email.casefold()]
