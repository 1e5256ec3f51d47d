"""Reading tasks through the Data Manager's list endpoint, by key and never by page number.

Page numbers skip tasks when others are annotated or deleted while one reads, and a page past the end is a 404. So each
request asks for the first page *after* the last key: (updated_at) for changes, (id) for sweeps. Label Studio orders by
one column only, so tasks with the same `updated_at` stand in any order: the last such group of a full page is held back
and read again whole; a group that fills a page is read by id.

A page may be shorter than what was asked for and not be the last one (a server or a proxy may cap pages): a walk ends
where the answer's `total`, the tasks that fit the filter, is reached. One whose filter is ignored would never end, and
is refused. So is a list in which something is no task (no id, no time, no list of annotations): whoever took the rest
for all there is would remove the others with their votes.

`include` names the fields of tasks and, with the same list, of their annotations: without predictions, drafts and the
columns of the Data Manager a page is read four times as fast and is a ninth of the size (measured on 1.23.2).
`resolve_uri=false` leaves `data` as stored; signed links would change with every reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from backend.client.transport import Transport
from backend.errors import LabelStudioError

RawTask = dict[str, Any]
TASK_FIELDS = ("id", "data", "created_at", "updated_at", "annotations")
ANNOTATION_FIELDS = (
    "task", "project", "result", "completed_by", "updated_by", "was_cancelled", "ground_truth", "lead_time",
    "draft_created_at", "import_id", "parent_prediction", "parent_annotation", "last_action", "bulk_created",
)  # fmt: skip
_INCLUDE = ",".join((*TASK_FIELDS, *ANNOTATION_FIELDS))
_ID_PAGE = 5000
MOMENT = timedelta(microseconds=1)  # the parts that Label Studio keeps
FIRST, LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
_IGNORED = "Label Studio lists tasks that were not asked for; its filters seem to be ignored."
_BY_ID = 100  # tasks asked for at once; their ids travel in the address


class TaskReader:
    """Task queries of one Label Studio."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def by_id(self, project_id: int, task_ids: Sequence[int]) -> dict[int, RawTask]:
        """The tasks with these ids that (still) are in the project."""
        wanted = sorted(set(task_ids))
        found: dict[int, RawTask] = {}
        for start in range(0, len(wanted), _BY_ID):
            part = wanted[start : start + _BY_ID]
            while part:
                query = {"selectedItems": {"all": False, "included": part}}
                tasks, total = self._list(project_id, query, _BY_ID, _INCLUDE)
                listed = {task["id"]: task for task in tasks}
                if not listed.keys() <= set(part):
                    raise LabelStudioError(_IGNORED, retry=True)
                found |= listed
                part = [each for each in part if each not in found] if total > len(listed) else []
        return found

    def changed(self, project_id: int, since: datetime | None, *, page_size: int) -> Iterator[list[RawTask]]:
        """Pages of tasks with `updated_at >= since`, ordered by (updated_at, id)."""
        filters = [] if since is None else [_filter("updated_at", "greater_or_equal", "Datetime", since)]
        while True:
            query = {"filters": _all_of(filters), "ordering": ["tasks:updated_at"]}
            page, total = self._list(project_id, query, page_size, _INCLUDE)
            _require_rising([*([since] if since else []), *(_time(task["updated_at"]) for task in page)])
            if total <= len(page):
                if page:
                    yield sorted(page, key=_order)
                return
            last = page[-1]["updated_at"]
            complete = [task for task in page if task["updated_at"] != last]
            if complete:
                yield sorted(complete, key=_order)
                since = _time(last)
                filters = [_filter("updated_at", "greater_or_equal", "Datetime", since)]
            else:
                same = _filter("updated_at", "equal", "Datetime", _time(last))
                yield from self._by_rising_id(project_id, [same], page_size, _INCLUDE)
                since = _time(last) + MOMENT
                filters = [_filter("updated_at", "greater_or_equal", "Datetime", since)]

    def ids(self, project_id: int) -> Iterator[list[int]]:
        """Ids of all tasks, rising, in pages."""
        for page in self._by_rising_id(project_id, [], _ID_PAGE, "id"):
            yield [task["id"] for task in page]

    def predicted(self, project_id: int, version: str) -> set[int]:
        """Ids of tasks with a prediction of exactly this version; the filter also finds versions that contain it."""
        column = "predictions_model_versions"
        contains = _filter(column, "contains", "List", [version])
        found: set[int] = set()
        for page in self._by_rising_id(project_id, [contains], _ID_PAGE, f"id,{column}"):
            for task in page:
                versions = task.get(column)
                if version in (versions if isinstance(versions, list) else str(versions).split(",")):
                    found.add(task["id"])
        return found

    def existing(self, project_id: int, task_ids: Sequence[int]) -> set[int]:
        """Those of the ids that are tasks of the project."""
        wanted = set(task_ids)
        return {task_id for page in self.ids(project_id) for task_id in page if task_id in wanted}

    def _by_rising_id(
        self, project_id: int, filters: list[dict[str, Any]], page_size: int, include: str
    ) -> Iterator[list[RawTask]]:
        after = 0
        while True:
            later = _filter("id", "greater", "Number", after)
            query = {"filters": _all_of([*filters, later]), "ordering": ["tasks:id"]}
            page, total = self._list(project_id, query, page_size, include)
            _require_rising([after + 1, *(task["id"] for task in page)])
            if page:
                yield page
            if total <= len(page):
                return
            after = page[-1]["id"]

    def _list(
        self, project_id: int, query: dict[str, Any], page_size: int, include: str
    ) -> tuple[list[RawTask], int]:
        """The first tasks that fit, and how many do in all. Raises LabelStudioError, also when none come of some."""
        params = {
            "project": project_id,
            "fields": "all",
            "include": include,
            "resolve_uri": "false",
            "page_size": page_size,
            "query": json.dumps(query),
        }
        answer = self._transport.json("GET", "/api/tasks", params=params, timeout_s=180.0)
        tasks = answer.get("tasks") if isinstance(answer, dict) else None
        if not isinstance(tasks, list):
            raise LabelStudioError("Label Studio answered GET /api/tasks without a list of tasks.", retry=False)
        total = answer.get("total")
        if type(total) is not int or total < 0:
            raise LabelStudioError("Label Studio answered GET /api/tasks without the number of tasks.", retry=False)
        odd = sum(not _is_task(each, whole=include is _INCLUDE) for each in tasks)
        if odd:
            message = f"Label Studio lists {odd} of {len(tasks)} tasks without an id, a time or a list of annotations."
            raise LabelStudioError(message, retry=False)
        if total > 0 and not tasks:
            raise LabelStudioError(f"Label Studio lists none of {total} tasks.", retry=True)
        return tasks, total


def _filter(column: str, operator: str, kind: str, value: datetime | float | list[str]) -> dict[str, Any]:
    text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value
    return {"filter": f"filter:tasks:{column}", "operator": operator, "type": kind, "value": text}


def _all_of(filters: list[dict[str, Any]]) -> dict[str, Any]:
    return {"conjunction": "and", "items": filters}


def _is_task(raw: object, *, whole: bool) -> bool:
    """Whether it has an id that a database can hold; a `whole` one also a time and annotations, be it none."""
    if not isinstance(raw, dict) or type(raw.get("id")) is not int or not 0 < raw["id"] < 2**63:
        return False
    if not whole:
        return True
    try:  # a day each way is left, for overlaps and for zones
        return isinstance(raw.get("annotations"), list) and FIRST < _time(raw["updated_at"]) < LAST
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


def _require_rising(keys: Sequence[Any]) -> None:
    """Raises LabelStudioError for a list that is not in the order that was asked for, or begins before its filter: a
    walk that goes on from its last row would skip tasks, or never end."""
    if any(later < earlier for earlier, later in pairwise(keys)):
        raise LabelStudioError(_IGNORED, retry=True)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _order(task: RawTask) -> tuple[datetime, int]:
    return _time(task["updated_at"]), task["id"]
