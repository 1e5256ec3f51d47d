"""What the benchmarks stand on: a data folder with a project of recorded votes, encoded texts and a trained version.

Twenty annotators (four variants of each of the demo's five personas) label the sample that ships with the project. The
network is the one that Polyvox serves by default; nothing here needs Label Studio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.bootstrap import Services, build_services
from backend.labeling import parse_config, read_task
from backend.settings import Settings
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, Message, load

KEY = "1.1700000000"
ANNOTATORS = 20


def label(who: int, message: Message) -> str:
    """What annotator `who` (from 1) says."""
    return PERSONAS[(who - 1) % len(PERSONAS)].label(message, seed=who)


def task_json(number: int, message: Message, *, people: int = ANNOTATORS, share: float = 0.4) -> dict[str, Any]:
    """A Label Studio task with annotations; each annotator has labelled a `share` of the tasks."""
    annotations = [
        {"id": number * 100 + who, "completed_by": who, "was_cancelled": False, "ground_truth": False, "lead_time": 4.0,
         "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
         "result": [{"id": "r", "from_name": CONTROL, "to_name": OBJECT, "type": "choices", "origin": "manual",
                     "value": {"choices": [label(who, message)]}}]}
        for who in range(1, people + 1) if (number * 7919 + who * 104729) % 1000 < 1000 * share
    ]
    return {"id": number, "data": {"text": message.text}, "annotations": annotations,
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}


def fill(services: Services, key: str, tasks: Sequence[dict[str, Any]]) -> None:
    """Put tasks with their votes into the store, as ingest does."""
    config = parse_config(LABEL_CONFIG)
    number = int(key.split(".")[0])
    services.store.projects.ensure(key, title="Benchmark", label_config=LABEL_CONFIG)
    services.store.tasks.take_over(key, [
        read_task(config, task, project_id=number, control_arm_percent=0, shown_since=None, known_annotators={})
        for task in tasks
    ])


@contextmanager
def trained(folder: Path, *, people: int = ANNOTATORS, **settings: Any) -> Iterator[Services]:
    """Services over a data folder with a published version for `people` annotators; trained at the first use of it."""
    services = build_services(Settings(
        data_dir=folder, annotators_per_task=people, control_arm_percent=0.0, train_threads=1, **settings
    ))
    try:
        if services.registry.current(KEY) is None:
            messages = load()
            # The last fifth of the messages is labelled by nobody: those are asked for.
            open_from = len(messages) * 4 // 5
            fill(services, KEY, [
                task_json(number, message, people=people, share=0.4 if number <= open_from else 0.0)
                for number, message in enumerate(messages, start=1)
            ])
            services.training.run(KEY, lambda done, note: None)
            services.features.texts([message.text for message in messages])
        if services.registry.published(KEY) is None:
            raise SystemExit("the gate did not publish the version that the benchmarks need")
        yield services
    finally:
        services.close()


def open_task(number: int) -> dict[str, Any]:
    """One of the tasks that nobody has labelled, as Label Studio sends it to /predict."""
    messages = load()
    first = len(messages) * 4 // 5
    index = first + number % (len(messages) - first)
    return {**task_json(index + 1, messages[index], share=0.0), "predictions": [], "project": 1}
