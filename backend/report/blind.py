"""A blind rating project: the tasks that two camps are divided on, for people who do not know who said what.

Label Studio imports the file as it is. It holds the content of the tasks and nothing of what was said about them:
no annotation, no prediction, no name. The order is shuffled by a hash, so that it tells nothing either; the original
task is kept in `meta`, which no annotator sees, so that the new labels can be laid beside the old ones.
"""

from __future__ import annotations

import hashlib
from typing import Any

from backend.ports import Store
from backend.records import Project
from backend.services.statistics.documents import Tasks


def blind_tasks(store: Store, project: Project, document: Tasks, *, control: str, most: int) -> list[dict[str, Any]]:
    """At most `most` tasks, the most divided ones of a control, in an order that tells nothing."""
    lists = document.controls.get(control)
    chosen = list(dict.fromkeys(each.row.task for each in lists.divided))[:most] if lists else []
    tasks = store.tasks.get(project.key, chosen)
    tasks.sort(key=lambda task: hashlib.sha256(f"{project.key}/{task.id}".encode()).hexdigest())
    return [{"data": dict(task.data), "meta": {"polyvox": {"project": project.key, "task": task.id}}} for task in tasks]
