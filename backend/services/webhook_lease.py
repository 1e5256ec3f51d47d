"""The mark on our webhook in Label Studio, by which two holders of one database notice each other.

Our webhook carries the header `X-Polyvox-Instance: <id of the instance>.<mark>`. The mark is new every hour, and
noted in the database before and after it is written. Who finds their own id with a mark that they never wrote knows
that another database with this id has been here since: of an original and its copy, the one that comes second finds
that out, whatever else of the two is alike. Only Label Studio is asked: addresses that stand in it are never called.

An instance that never had a mark on a project (a new one, or one that was just adopted) takes over the webhook at its
own address from whoever had it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from backend.records import WebhookMark

HEADER = "X-Polyvox-Instance"
NEW_EVERY = timedelta(hours=1)
_FORM = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote a webhook last."""

    instance: str
    mark: str

    def __str__(self) -> str:
        return f"{self.instance}.{self.mark}"


def holder(hook: Mapping[str, Any]) -> Holder | None:
    """None for a webhook without a mark, or with something else in its place."""
    headers = hook.get("headers")
    found = _FORM.fullmatch(str(headers.get(HEADER, ""))) if isinstance(headers, Mapping) else None
    return Holder(found[1], found[2]) if found else None


def contender(
    hooks: Sequence[Mapping[str, Any]], *, instance: str, known: WebhookMark | None, ours: str
) -> Mapping[str, Any] | None:
    """The webhook that shows another holder of our id, or one that took over the webhook at `ours`, our address."""
    written = {known.mark, known.offered} if known is not None else set()
    for hook in hooks:
        found = holder(hook)
        if found is None:
            continue
        twin = found.instance == instance and found.mark not in written
        taken = found.instance != instance and known is not None and hook.get("url") == ours
        if twin or taken:
            return hook
    return None


def next_mark(known: WebhookMark | None, now: datetime) -> str:
    """The mark that our webhook is to carry: the last one, for an hour."""
    if known is None or not known.mark or known.mark != known.offered:
        return uuid.uuid4().hex[:16]
    fresh = timedelta(0) <= now - known.written_at < NEW_EVERY  # a clock that was set back makes a new one
    return known.mark if fresh else uuid.uuid4().hex[:16]
