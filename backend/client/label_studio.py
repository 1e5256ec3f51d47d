"""The Label Studio API as far as Polyvox uses it; one method per thing one wants to know or do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from backend.client.tasks import TaskReader
from backend.client.transport import SLOW_TIMEOUT_S, Transport
from backend.errors import LabelStudioError
from backend.settings import Settings


class LabelStudioClient:
    """`ports.LabelStudio` over HTTP. Makes no request when built; every method raises LabelStudioError."""

    def __init__(self, settings: Settings, *, backoff_s: float = 0.5) -> None:
        self._http = Transport(settings.label_studio_url, settings.label_studio_api_key, backoff_s=backoff_s)
        self._tasks = TaskReader(self._http)

    def waits_for(self, thread: int | None) -> tuple[str, float] | None:
        """See `ports.LabelStudio`."""
        return self._http.waits_for(thread)

    def authorization(self) -> str:
        """The value of the Authorization header that Label Studio's files need as well as its API."""
        return self._http.authorization()

    def project(self, project_id: int) -> dict[str, Any]:
        """The project as Label Studio gives it."""
        answer = self._http.json("GET", f"/api/projects/{project_id}/")
        if not isinstance(answer, dict):
            raise LabelStudioError("Label Studio answered with something that is not a project.", retry=False)
        return answer

    def tasks_by_id(self, project_id: int, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """See `ports.LabelStudio`."""
        return self._tasks.by_id(project_id, task_ids)

    def changed_tasks(
        self, project_id: int, since: datetime | None, *, page_size: int = 100
    ) -> Iterator[list[dict[str, Any]]]:
        """See `ports.LabelStudio`."""
        return self._tasks.changed(project_id, since, page_size=page_size)

    def task_ids(self, project_id: int) -> Iterator[list[int]]:
        """See `ports.LabelStudio`."""
        return self._tasks.ids(project_id)

    def users(self) -> dict[str, str]:
        """annotator id -> e-mail, or user name where there is none."""
        return {str(user["id"]): _text(user.get("email")) or _text(user.get("username")) or str(user["id"])
                for user in self._objects("/api/users/")}

    def import_predictions(self, project_id: int, predictions: Sequence[Mapping[str, Any]]) -> int:
        """Bulk import. One task that is gone makes Label Studio refuse it, so such tasks are then sorted out and left.
        With a flag on, Label Studio has stored batches before that: those are not sent again."""
        rows = [dict(prediction) for prediction in predictions]
        if not rows:
            return 0
        try:
            return self._import(project_id, rows)
        except LabelStudioError as error:
            if error.http_status != 400:
                raise
            here = self._tasks.existing(project_id, [row["task"] for row in rows])
            known = [row for row in rows if row["task"] in here]
            if len(known) == len(rows):
                raise
        stored = self.prediction_versions(project_id)
        there = {version: self.predicted_tasks(project_id, version)
                 for version in sorted({str(row.get("model_version")) for row in known}) if stored.get(version)}
        left = [row for row in known if row["task"] not in there.get(str(row.get("model_version")), ())]
        return len(known) - len(left) + (self._import(project_id, left) if left else 0)

    def prediction_versions(self, project_id: int) -> dict[str, int]:
        """See `ports.LabelStudio`."""
        answer = self._http.json("GET", f"/api/projects/{project_id}/model-versions/") or {}
        if not isinstance(answer, dict) or any(type(number) is not int for number in answer.values()):
            raise LabelStudioError("Label Studio answered with something that is no list of versions.", retry=False)
        return answer

    def predicted_tasks(self, project_id: int, version: str) -> set[int]:
        """See `ports.LabelStudio`."""
        return self._tasks.predicted(project_id, version)

    def select_version(self, project_id: int, version: str) -> None:
        """Label Studio answers 400 to a version of which it has no prediction."""
        self._http.json("PATCH", f"/api/projects/{project_id}/", body={"model_version": version})

    def selected_version(self, project_id: int) -> str:
        """The version that Label Studio shows; "" without one."""
        return str(self.project(project_id).get("model_version") or "")

    def delete_version(self, project_id: int, version: str) -> None:
        """Delete all predictions of a version. Label Studio then forgets the selected version in cases where another
        one is selected (a live backend); it is selected again."""
        before = self.selected_version(project_id)
        path = f"/api/projects/{project_id}/model-versions/"
        self._http.json("DELETE", path, body={"model_version": version}, timeout_s=SLOW_TIMEOUT_S)
        if before not in ("", version) and self.selected_version(project_id) != before:
            self.select_version(project_id, before)

    def webhooks(self, project_id: int) -> list[dict[str, Any]]:
        """All webhooks that hear of the project, whoever made them."""
        return [{name: KINDS.get(name, _as_it_is)(value) for name, value in hook.items()}
                for hook in self._objects("/api/webhooks/", project=project_id)]

    def ml_backends(self, project_id: int) -> list[dict[str, Any]]:
        """The ML backends that are connected to the project."""
        return [{name: KINDS.get(name, _as_it_is)(value) for name, value in model.items()}
                for model in self._objects("/api/ml/", project=project_id)]

    def register_webhook(self, project_id: int, url: str, headers: Mapping[str, str]) -> None:
        """Make Label Studio tell `url` of every event. One that is there already (Label Studio makes it, without
        headers, when a backend is added) gets the headers; running this again changes nothing."""
        body = {
            "url": url,
            "headers": dict(headers),
            "send_payload": True,
            "send_for_all_actions": True,
            "is_active": True,
        }
        mine = [hook for hook in self.webhooks(project_id) if _same_address(str(hook.get("url")), url)]
        if not mine:
            self._http.json("POST", "/api/webhooks/", body=body | {"project": project_id})
            return
        if any(mine[0].get(name) != value for name, value in body.items()):
            self._http.json("PATCH", f"/api/webhooks/{mine[0]['id']}/", body=body)

    def views(self, project_id: int) -> list[dict[str, Any]]:
        """See `ports.LabelStudio`."""
        return self._objects("/api/dm/views/", project=project_id)

    def save_view(self, project_id: int, view_id: int | None, data: Mapping[str, Any]) -> None:
        """See `ports.LabelStudio`."""
        body = {"project": project_id, "data": dict(data)}
        if view_id is None:
            self._http.json("POST", "/api/dm/views/", body=body)
        else:
            self._http.json("PATCH", f"/api/dm/views/{view_id}/", body=body)

    def delete_view(self, view_id: int) -> None:
        """See `ports.LabelStudio`."""
        try:
            self._http.json("DELETE", f"/api/dm/views/{view_id}/")
        except LabelStudioError as error:
            if error.http_status != 404:
                raise

    def _import(self, project_id: int, rows: list[dict[str, Any]]) -> int:
        path = f"/api/projects/{project_id}/import/predictions"
        answer = self._http.json("POST", path, body=rows, timeout_s=SLOW_TIMEOUT_S)
        created = answer.get("created") if isinstance(answer, dict) else None
        if type(created) is not int:
            raise LabelStudioError("Label Studio did not say how many predictions it stored.", retry=True)
        return created

    def _objects(self, path: str, **params: Any) -> list[dict[str, Any]]:
        """What Label Studio lists under a path; each has a number for its id. Raises LabelStudioError."""
        answer = self._http.json("GET", path, params=params or None) or []
        if not isinstance(answer, list) or not all(isinstance(each, dict) and type(each.get("id")) is int
                                                   for each in answer):
            raise LabelStudioError(f"Label Studio answered GET {path} with something that is not its list.",
                                   retry=False)
        return answer


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _headers(value: object) -> dict[str, str]:
    return {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _as_it_is(value: object) -> object:
    return value


# Fields that are looked into, as what they are promised to be; of anything else nothing is left.
KINDS: dict[str, Callable[[object], object]] = {"url": _text, "headers": _headers, "actions": _texts}


def _same_address(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")
