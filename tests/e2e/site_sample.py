"""The sample project with the votes of simulated annotators and figures as the job process computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backend.bootstrap import Services, build_services
from backend.labeling import parse_config, read_task
from backend.settings import Settings
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, TITLE, Message, load
from tests.backend.encoders import WordHashEncoder
from tests.backend.web.site_documents import KEY, NUMBER

NAMES = ("ada", "boris", "chen", "dora", "emil", "fay", "gus", "hana")  # the personas, and three more in their manner


def sample_services(folder: Path, *, train: bool) -> Services:
    """The caller closes them. With `train`, a version is trained before the statistics are made (half a minute)."""
    services = build_services(
        Settings(data_dir=folder, label_studio_url="http://localhost:8080", train_threads=1), encoder=WordHashEncoder())
    config = parse_config(LABEL_CONFIG)
    services.store.projects.ensure(KEY, title=TITLE, label_config=LABEL_CONFIG)
    services.store.tasks.take_over(KEY, [
        read_task(config, _task(number, message), project_id=NUMBER, control_arm_percent=10.0, shown_since=None,
                  known_annotators={})
        for number, message in enumerate(load(), 1)
    ])
    names = {str(who): f"{name}@example.com" for who, name in enumerate(NAMES, 1)}
    services.store.votes.set_names(KEY, names)
    if train:
        services.training.run(KEY, lambda fraction, note: None)
    services.statistics.run(KEY, lambda fraction, note: None)
    services.gaps.run(KEY, lambda fraction, note: None)
    return services


def _task(number: int, message: Message) -> dict[str, Any]:
    """A task as Label Studio gives it; each annotator labelled about half of them, over four weeks."""
    when = f"2026-11-{1 + number * 26 // 320:02d}T{number % 24:02d}:00:00Z"
    annotations = [
        {"id": number * 100 + who, "completed_by": who, "was_cancelled": False, "ground_truth": False,
         "lead_time": 2.0 + (number * 31 + who * 17) % 90 / 10, "created_at": when, "updated_at": when,
         "result": [{"id": "r", "from_name": CONTROL, "to_name": OBJECT, "type": "choices", "origin": "manual",
                     "value": {"choices": [PERSONAS[(who - 1) % len(PERSONAS)].label(message, seed=who)]}}]}
        for who in range(1, len(NAMES) + 1) if (number * 7919 + who * 104729) % 1000 < 450
    ]
    return {"id": number, "data": {"text": message.text}, "annotations": annotations, "created_at": when,
            "updated_at": when}
