"""Small crowds in a real store, with faults and slips planted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from backend.ports import Store
from backend.records import Annotation, StoredVote, Task, TaskSnapshot
from backend.services.statistics import Statistics
from backend.settings import Settings
from backend.store import open_store
from model.data.spaces import Value
from model.data.votes import Provenance
from model.quality.evidence import Evidence

KEY = "7.1764288000"
CLASSES = ("A", "B", "C")
START = datetime(2026, 11, 1, tzinfo=UTC)
CONFIG = """<View><Text name="text" value="$text"/><Choices name="label" toName="text"><Choice value="A"/>
<Choice value="B"/><Choice value="C"/></Choices><Choices name="topics" toName="text" choice="multiple">
<Choice value="x"/><Choice value="y"/></Choices><TextArea name="note" toName="text"/></View>"""


def vote(
    task: int, who: str, value: Value, at: int, control: str = "label", lead: float = 4.0, **more: Any
) -> StoredVote:
    fields: dict[str, Any] = {
        "unit": str(task), "task_id": task, "annotation_id": task * 10_000 + int(who), "annotator": who,
        "control": control, "value": value, "updated_at": START + timedelta(minutes=at), "lead_time_s": lead,
        "provenance": Provenance.MANUAL, "shown": False, "control_arm": False,
    }
    return StoredVote(**{**fields, **more})


def snapshots(votes: Sequence[StoredVote], tasks: Sequence[int] = ()) -> Iterator[TaskSnapshot]:
    by_task: dict[int, list[StoredVote]] = {task: [] for task in tasks}
    for each in votes:
        by_task.setdefault(each.task_id, []).append(each)
    for task, given in sorted(by_task.items()):
        annotations = {one.annotation_id: Annotation(
            id=one.annotation_id, task_id=task, annotator=one.annotator, result=[], was_cancelled=False,
            ground_truth=False, created_at=one.updated_at, updated_at=one.updated_at, lead_time_s=one.lead_time_s,
            imported=False, parent_prediction=None,
        ) for one in given}
        record = Task(id=task, data={"text": f"text {task}"}, updated_at=START)
        yield TaskSnapshot(task=record, annotations=list(annotations.values()), votes=tuple(given))


class Project:
    """A project "7" over a SQLite file, and its statistics."""

    def __init__(self, folder: Path, *, config: str = CONFIG, evidence: Evidence | None = None) -> None:
        self.settings = Settings(data_dir=folder)
        self.store: Store = open_store(self.settings.database_url)
        self.store.projects.ensure(KEY, title="Seven", label_config=config)
        registry: Any = SimpleNamespace(evidence=lambda version: evidence, published=lambda project: None)
        self.statistics = Statistics(
            store=self.store, registry=registry, settings=self.settings, clock=lambda: START + timedelta(days=9),
            features=cast(Any, None),
        )

    def give(self, votes: Sequence[StoredVote], tasks: Sequence[int] = ()) -> None:
        self.store.tasks.take_over(KEY, list(snapshots(votes, tasks)))

    def run(self) -> dict[str, Any]:
        return self.statistics.run(KEY, lambda done, note: None)


def crowd(
    seed: int, *, tasks: int = 120, sound: int = 5, slips: int = 0, swapped: bool = False
) -> tuple[list[StoredVote], set[tuple[int, str]]]:
    """Votes of sound annotators 1, 2, ..., of a spammer (21), somebody who names each class by the next one, or if
    `swapped` the first by the last and the other way round (22) and a constant answerer (23); and which
    votes are planted slips of sound annotators."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, tasks)
    planted: set[tuple[int, str]] = set()
    while len(planted) < slips:
        planted.add((int(rng.integers(tasks)), str(int(rng.integers(1, sound + 1)))))
    votes = []
    for task in range(tasks):
        for who in [str(index) for index in range(1, sound + 1)] + ["21", "22", "23"]:
            code = int(truth[task]) if rng.random() < 0.9 else int(rng.integers(3))
            if (task, who) in planted:
                code = (int(truth[task]) + 1 + int(rng.integers(2))) % 3
            code = {"21": int(rng.integers(3)), "22": 2 - code if swapped else (code + 1) % 3, "23": 0}.get(who, code)
            votes.append(vote(task, who, Value.of_class(CLASSES[code]), len(votes), lead=float(rng.uniform(3, 6))))
    return votes, planted
