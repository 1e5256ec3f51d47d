"""Which of some tasks a version can be asked about, with the tokens that it reads; for work without a deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from backend.labeling import LabelConfig
from backend.labeling.content import text_of
from backend.records import Task
from backend.registry import Loaded
from backend.services.features import Features
from backend.services.served import ReadyTask, Tokens


def nothing_read() -> Tokens:
    """The tokens of any task for a version without a network."""
    return np.zeros((0, 0), np.float16)


def ready_tasks(
    features: Features, loaded: Loaded, config: LabelConfig, tasks: Sequence[Task],
    annotators: Mapping[int, Sequence[str]],
) -> list[ReadyTask]:
    """The tasks that show something, in order, encoded where they are not cached; all of them where nothing is read.

    `annotators` of a task are those who want a prediction of their own.
    """
    if not loaded.ladder.reads:
        return [ReadyTask(id=task.id, data=task.data, tokens=nothing_read(), annotators=annotators.get(task.id, ()))
                for task in tasks]
    contents = {task.id: config.content(task.data, task=task.id) for task in tasks}
    shown = [task for task in tasks if contents[task.id]]
    tokens = features.texts([contents[task.id] for task in shown])
    return [ReadyTask(id=task.id, data=task.data, tokens=array, annotators=annotators.get(task.id, ()),
                      text=text_of(contents[task.id]))
            for task, array in zip(shown, tokens, strict=True)]
