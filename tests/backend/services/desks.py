"""Label Studio's drafts in memory: what annotators' tokens can do with them, and where that can break.

As facts say of the real one: a draft belongs to whose token made it; anybody can list all of a task; nothing keeps an
annotator from having several; `updated_at` moves with every write.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from backend.errors import LabelStudioError


class Drawer:
    """All drafts. `breaks` maps a call to what it raises; "create:after" breaks after the work was done."""

    def __init__(self, emails: Mapping[str, str]) -> None:
        self.emails = dict(emails)  # token -> e-mail
        self.drafts: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.breaks: dict[str, BaseException] = {}
        self.refused: set[str] = set()  # tokens
        self.missing: set[int] = set()  # tasks that are gone
        self._stamp = 0

    def open(self, token: str) -> Desk:
        return Desk(self, token)

    def of(self, email: str) -> dict[int, dict[str, Any]]:
        """task -> draft; two of one annotator on a task are an error."""
        mine = [draft for draft in self.drafts if draft["user"] == email]
        assert len({draft["task"] for draft in mine}) == len(mine)
        return {draft["task"]: draft for draft in mine}

    def add(self, email: str, task: int, result: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """A draft, as the editor or a token makes it."""
        draft = {"id": 100 + self._tick(), "user": email, "task": task, "annotation": None, "was_postponed": False,
                 "lead_time": 0.0, "result": copy.deepcopy(list(result)), "updated_at": self._now()} | more
        self.drafts.append(draft)
        return draft

    def edit(self, draft: dict[str, Any], **changes: Any) -> None:
        self._tick()
        draft |= {"updated_at": self._now(), **changes}

    def discard(self, draft: dict[str, Any]) -> None:
        self.drafts.remove(draft)

    def called(self, name: str, token: str) -> None:
        self.calls.append(name)
        if token in self.refused:
            raise LabelStudioError("Refused (401).", retry=False, http_status=401)
        self.broke(name)

    def broke(self, name: str) -> None:
        if name in self.breaks:
            raise self.breaks.pop(name)

    def _tick(self) -> int:
        self._stamp += 1
        return self._stamp

    def _now(self) -> str:
        return f"2026-11-28T12:00:00.{self._stamp:06}Z"


class Desk:
    """`ports.Desk` for one token."""

    def __init__(self, drawer: Drawer, token: str) -> None:
        self._drawer = drawer
        self._token = token

    def who(self) -> tuple[str, str]:
        self._drawer.called("who", self._token)
        if self._token not in self._drawer.emails:
            raise LabelStudioError("Refused (401).", retry=False, http_status=401)
        return self._token.rpartition("-")[2], self._drawer.emails[self._token]

    def drafts(self, task_id: int) -> list[dict[str, Any]]:
        self._drawer.called("drafts", self._token)
        return [copy.deepcopy(draft) for draft in self._drawer.drafts if draft["task"] == task_id]

    def create_draft(self, task_id: int, result: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._drawer.called("create", self._token)
        if task_id in self._drawer.missing:
            raise LabelStudioError("Label Studio answered 500.", retry=True, http_status=500)
        made = self._drawer.add(self._drawer.emails[self._token], task_id, result)
        self._drawer.broke("create:after")
        return copy.deepcopy(made)

    def update_draft(self, draft_id: int, result: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._drawer.called("update", self._token)
        draft = next(each for each in self._drawer.drafts if each["id"] == draft_id)
        self._drawer.edit(draft, result=copy.deepcopy(list(result)))
        self._drawer.broke("update:after")
        return copy.deepcopy(draft)

    def delete_draft(self, draft_id: int) -> None:
        self._drawer.called("delete", self._token)
        self._drawer.drafts = [draft for draft in self._drawer.drafts if draft["id"] != draft_id]
        self._drawer.broke("delete:after")
