"""A Data Manager tab for each annotator, with the tasks that they are asked for next; off unless it is switched on.

A tab of ours carries a mark in its data and begins with `PREFIX`; what was renamed, or lost its mark because somebody
saved it, is theirs and is left alone. Label Studio has no filter by a list of ids, so a tab is an "or" of single ones.

A document of our own says that there are tabs; its version is that of the figures on gaps that they were made of, so
tabs are due where the two differ.

Invariants: only tabs of ours are changed or deleted; one that is as it should be is not written; a crash leaves at most
tabs that the next run finds and goes on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backend.ports import LabelStudio, Store
from backend.records import Project
from backend.services.gaps.documents import GapFigures, Gaps

KIND = "gap_tabs"  # the document that says that there are tabs, so that nothing is asked of Label Studio without
PREFIX = "Next for "
MARK = "polyvox"  # key in a tab's data; its value is the annotator
TASKS = 25  # in one tab
MOST = 40  # tabs of one project
_NONE_YET = ""  # version of the document while the first tabs are being made


def due(store: Store, project: str, version: str, *, wanted: bool) -> bool:
    """Whether tabs are still to be made of the figures of this version, or to be removed. Asks Label Studio nothing."""
    made_of = store.statistics.version(project, KIND)
    return made_of != version and (wanted or made_of is not None)


def settle(store: Store, project: str, version: str) -> None:
    """Tabs are not due until there are other figures."""
    store.statistics.replace(project, version, {(KIND, ""): "{}"}, kinds=[KIND])


def refresh(
    store: Store, label_studio: LabelStudio, project: Project, document: Gaps, *, wanted: bool,
) -> dict[str, Any]:
    """Make tabs what they should be: none where they are not `wanted`. Returns counts. Raises LabelStudioError."""
    if store.statistics.version(project.key, KIND) is None:
        if not wanted:
            return {}
        settle(store, project.key, _NONE_YET)  # before the first one is there
    lists = next_tasks(document.controls) if wanted else {}
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
        should = tab(who, name, tasks, data)
        if view_id is None or _made(data) != _made(should):
            label_studio.save_view(project.label_studio_id, view_id, should)
            written += 1
    for view_id in gone:
        label_studio.delete_view(view_id)
    if wanted:
        settle(store, project.key, document.header.version)
    else:
        store.statistics.replace(project.key, document.header.version, {}, kinds=[KIND])
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


def _made(data: Mapping[str, Any]) -> tuple[Any, Any, list[Any]]:
    """(title, conjunction, tasks): what is ours in a tab; Label Studio adds to the rest."""
    found = data.get("filters")
    filters: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    items: Iterable[Any] = filters.get("items", [])
    tasks = [item.get("value") for item in items if isinstance(item, Mapping)]
    return data.get("title"), filters.get("conjunction"), tasks
