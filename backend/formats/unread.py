"""What a reader could not take for a vote, counted by reason, so that no file is read half in silence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from backend.errors import NoVotes

_SHOWN = 4  # reasons in a sentence


@dataclass(slots=True)
class Unread:
    """Annotations (in tables: rows) of a file, and what was said in them that is no vote."""

    annotations: int = 0
    noun: str = "annotation"
    nouns: str = "annotations"
    reasons: Counter[str] = field(default_factory=Counter)  # reason -> answers; it continues "2 "
    notes: list[str] = field(default_factory=list)  # whole sentences on what was changed in reading

    def because(self, reason: str, times: int = 1) -> None:
        """Count answers that are no vote."""
        self.reasons[reason] += times

    def said(self) -> str:
        """The reasons, most frequent first."""
        most = self.reasons.most_common()
        told = [f"{times} {reason}" for reason, times in most[:_SHOWN]]
        return "; ".join(told) + (f"; and {len(most) - _SHOWN} more reasons" if len(most) > _SHOWN else "")


def check_votes(name: str, votes: int, unread: Unread) -> None:
    """Raises NoVotes, with one of two sentences: the file has no annotations, or none of them could be read."""
    if votes:
        return
    if not unread.annotations:
        raise NoVotes(f"{name} has no {unread.nouns}, so there are no votes.")
    why = unread.said() or "they say nothing about a task"
    some = f"{unread.annotations} {unread.noun if unread.annotations == 1 else unread.nouns}"
    raise NoVotes(f"{name} has {some}, and none could be read as a vote: {why}.")
