"""Label Studio as one annotator: their drafts, by their own token.

Drafts belong to whoever makes them; no administrator can make one for somebody else. Errors name the annotator's token,
not the service's, and never quote either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.client.transport import Transport
from backend.errors import LabelStudioError
from backend.settings import Settings

Result = Sequence[Mapping[str, Any]]
REFUSED = "Label Studio refuses the annotator's token ({}): it was revoked, or is of a kind that is switched off."


class DeskClient:
    """`ports.Desk` over HTTP. Makes no request when built."""

    def __init__(self, settings: Settings, token: str, *, backoff_s: float = 0.5) -> None:
        self._http = Transport(settings.label_studio_url, token, backoff_s=backoff_s)

    def who(self) -> tuple[str, str]:
        """See `ports.Desk`."""
        answer = self._call("GET", "/api/current-user/whoami")
        if not isinstance(answer, dict) or "id" not in answer:
            raise LabelStudioError("Label Studio did not say whose token this is.", retry=False)
        return str(answer["id"]), str(answer.get("email") or "")

    def drafts(self, task_id: int) -> list[dict[str, Any]]:
        """See `ports.Desk`."""
        answer = self._call("GET", f"/api/tasks/{task_id}/drafts")
        return [draft for draft in answer if isinstance(draft, dict)] if isinstance(answer, list) else []

    def create_draft(self, task_id: int, result: Result) -> dict[str, Any]:
        """See `ports.Desk`."""
        return self._draft("POST", f"/api/tasks/{task_id}/drafts", {"result": list(result), "lead_time": 0})

    def annotate(self, task_id: int, result: Result) -> None:
        """See `ports.Desk`."""
        self._call("POST", f"/api/tasks/{task_id}/annotations/", {"result": list(result)})

    def update_draft(self, draft_id: int, result: Result) -> dict[str, Any]:
        """See `ports.Desk`."""
        return self._draft("PATCH", f"/api/drafts/{draft_id}/", {"result": list(result)})

    def delete_draft(self, draft_id: int) -> None:
        """See `ports.Desk`."""
        try:
            self._call("DELETE", f"/api/drafts/{draft_id}/")
        except LabelStudioError as error:
            if error.http_status != 404:
                raise

    def _draft(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._call(method, path, body)
        if not isinstance(answer, dict) or not isinstance(answer.get("id"), int):
            raise LabelStudioError("Label Studio answered with something that is not a draft.", retry=False)
        return answer

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            return self._http.json(method, path, body=body)
        except LabelStudioError as error:
            if error.http_status not in (401, 403):
                raise
            message = REFUSED.format(error.http_status)
            raise LabelStudioError(message, retry=False, http_status=error.http_status) from error
