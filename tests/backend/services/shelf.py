"""Label Studio as far as predictions go, in memory: what a delivery can see and change, and where it can break.

It behaves as facts say of the real one: imports add without looking for doubles, an unknown version cannot be selected,
and deleting any version resets the selection when a backend's title is selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from backend.errors import LabelStudioError


class Crash(Exception):
    """The process dies here."""


class PredictionShelf:
    """`breaks` maps a method name to what it raises; "import_predictions:after" breaks after the work was done,
    and "import_predictions:late" leaves the work to be done before that of the next import."""

    def __init__(self, *, maximum_annotations: int = 3) -> None:
        self.predictions: list[dict[str, Any]] = []
        self.selected = "Polyvox"  # the title of the backend: "live"
        self.calls: list[str] = []
        self.breaks: dict[str, BaseException] = {}
        self.maximum_annotations = maximum_annotations
        self.delete_resets = False
        self._late: list[dict[str, Any]] = []
        self.gone: set[int] = set()  # tasks that were deleted

    def of(self, version: str) -> dict[int, dict[str, Any]]:
        """task -> prediction; a double is an error."""
        found = [one for one in self.predictions if one["model_version"] == version]
        assert len({one["task"] for one in found}) == len(found), f"doubles of {version}"
        return {one["task"]: one for one in found}

    def newest_own(self, annotator: str) -> dict[int, dict[str, Any]]:
        """task -> what the middleware would show this annotator."""
        return {one["task"]: one for one in self.predictions
                if one["model_version"].startswith(f"annotator:{annotator}@")}

    def project(self, project_id: int) -> dict[str, Any]:
        self._called("project")
        return {"id": project_id, "maximum_annotations": self.maximum_annotations}

    def tasks_by_id(self, project_id: int, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        self._called("tasks_by_id")
        return {task: {"id": task} for task in task_ids if task not in self.gone}

    def prediction_versions(self, project_id: int) -> dict[str, int]:
        self._called("prediction_versions")
        return dict(Counter(one["model_version"] for one in self.predictions))

    def predicted_tasks(self, project_id: int, version: str) -> set[int]:
        self._called("predicted_tasks")
        return {one["task"] for one in self.predictions if one["model_version"] == version}

    def waits_for(self, thread: int | None) -> None:
        return None

    def import_predictions(self, project_id: int, predictions: Sequence[Mapping[str, Any]]) -> int:
        self._called("import_predictions")
        self.predictions.extend(self._late)
        self._late = [dict(one) for one in predictions] if "import_predictions:late" in self.breaks else []
        self._break("import_predictions:late")
        self.predictions.extend(dict(one) for one in predictions)
        self._break("import_predictions:after")
        return len(predictions)

    def selected_version(self, project_id: int) -> str:
        self._called("selected_version")
        return self.selected

    def select_version(self, project_id: int, version: str) -> None:
        self._called("select_version")
        if not any(one["model_version"] == version for one in self.predictions):
            raise LabelStudioError("This version does not exist.", retry=False, http_status=400)
        self.selected = version
        self._break("select_version:after")

    def delete_version(self, project_id: int, version: str) -> None:
        self._called("delete_version")
        self.predictions = [one for one in self.predictions if one["model_version"] != version]
        if self.delete_resets or self.selected == version:
            self.selected = ""
        self._break("delete_version:after")

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self._break(name)

    def _break(self, name: str) -> None:
        if name in self.breaks:
            raise self.breaks.pop(name)
