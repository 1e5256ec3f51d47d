"""The first words of tasks, so that a person recognises what a row is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from backend.errors import LabelConfigError
from backend.labeling import parse_config
from backend.masking import masked
from backend.ports import Store
from backend.records import Project
from backend.report.words import shortened

LONGEST = 140  # characters
Texts = Callable[[Sequence[int]], Mapping[int, str]]


def texts_of(store: Store, project: Project) -> Texts:
    """What reads the texts of some tasks at once (one query); tasks that are gone or show no text are missing."""

    def read(tasks: Sequence[int]) -> Mapping[int, str]:
        wanted = sorted(set(tasks))
        if not wanted or not project.label_config:
            return {}
        try:
            config = parse_config(project.label_config)
        except LabelConfigError:  # the status page says so; tasks are still known by their numbers
            return {}
        known = store.tasks.get(project.key, wanted)
        found = {task.id: shortened(masked(config.text(task.data)), LONGEST) for task in known}
        return {task: text for task, text in found.items() if text}

    return read
