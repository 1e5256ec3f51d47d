"""A Data Manager tab for each annotator, with the tasks that they are asked for next; off unless it is switched on.

A tab of ours carries a mark in its data and begins with `PREFIX`; what was renamed, or lost its mark because somebody
saved it, is theirs and is left alone. Label Studio has no filter by a list of ids, so a tab is an "or" of single ones.

Invariants: only tabs of ours are changed or deleted; one that is as it should be is not written; a crash leaves at most
tabs that the next run finds and goes on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backend.ports import LabelStudio, Store
from backend.records import Project
from backend.services.gaps.documents import GapFigures

KIND = "gap_tabs"  # the document that says that there are tabs, so that nothing is asked of Label Studio without
PREFIX = "Next for "
MARK = "polyvox"  # key in a tab's data; its value is the annotator
TASKS = 25  # in one tab
MOST = 40  # tabs of one project


def refresh(
    store: Store, label_studio: LabelStudio, project: Project, controls: Mapping[str, GapFigures], *, wanted: bool,
) -> dict[str, Any]:
    """Make tabs what they should be: none where they are not `wanted`. Returns counts. Raises LabelStudioError."""
    if not wanted and store.statistics.version(project.key, KIND) is None:
        return {}
    lists = next_tasks(controls) if wanted else {}
    if wanted:  # before the first one is there
        store.statistics.replace(project.key, "1", {(KIND, ""): "{}"}, kinds=[KIND])
    mine: dict[str, tuple[int, Mapping[str, Any]]] = {}
    gone: list[int] = []
    for view in label_studio.views(project.label_studio_id):
        data = view.get("data") or {}
        if not _ours(data):
            continue
        who = str(data[MARK])
        if who in lists and who not in mine:
            mine[who] = (int(view["id"]), data)
        else:
            gone.append(int(view["id"]))
    written = 0
    for who, (name, tasks) in lists.items():
        view_id, data = mine.get(who, (None, {}))
        if view_id is None or _tasks_of(data) != tasks:
            label_studio.save_view(project.label_studio_id, view_id, tab(who, name, tasks, data))
            written += 1
    for view_id in gone:
        label_studio.delete_view(view_id)
    if not wanted:
        store.statistics.replace(project.key, "", {}, kinds=[KIND])
    return {"tabs": len(lists), "tabs_written": written, "tabs_deleted": len(gone)}


def next_tasks(controls: Mapping[str, GapFigures]) -> dict[str, tuple[str, list[int]]]:
    """Annotator -> (name, tasks to do next); best first over all controls in turn, in the order of the first ask."""
    found: dict[str, tuple[str, list[int]]] = {}
    for figures in controls.values():
        for each in figures.asks:
            if each.annotator not in found and len(found) == MOST:
                continue
            _, tasks = found.setdefault(each.annotator, (each.name, []))
            if each.task not in tasks and len(tasks) < TASKS:
                tasks.append(each.task)
    return found


def tab(annotator: str, name: str, tasks: Sequence[int], before: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a tab; columns and the like stay as they were."""
    only = [{"filter": "filter:tasks:id", "operator": "equal", "type": "Number", "value": task} for task in tasks]
    return {**before, "title": PREFIX + name, MARK: annotator, "filters": {"conjunction": "or", "items": only}}


def _ours(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get(MARK), str) and str(data.get("title", "")).startswith(PREFIX)


def _tasks_of(data: Mapping[str, Any]) -> list[Any]:
    filters = data.get("filters")
    items: Iterable[Any] = filters.get("items", []) if isinstance(filters, Mapping) else []
    return [item.get("value") for item in items if isinstance(item, Mapping)]
