"""Services that have published a version for the project of the recorded requests; everything real but the encoder
and the size of the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.bootstrap import Services, build_services
from backend.records import Annotation, StoredVote, Task, TaskSnapshot
from backend.services.training import Training
from backend.settings import Settings
from model.data.spaces import Value
from model.data.votes import Provenance
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.workshop import LEARNING
from tests.backend.web.conftest import NOW, recorded

KEY = "1.1795817992"  # of most recorded requests
CONFIG: str = recorded("setup_request.json")["body"]["schema"]  # Positive, Negative, Neutral
ANNOTATORS = ("5", "6", "7")
FIRST_TASK = 1000  # above the ids in the recordings
WORDS = {"Positive": "love great phone", "Negative": "terrible battery", "Neutral": "arrived on tuesday"}


def trained_services(folder: Path, *, tasks: int = 45, **settings: Any) -> Services:
    """The caller closes them. `settings` overwrite those of the test."""
    chosen = Settings(**{"data_dir": folder, "control_arm_percent": 0.0, "predict_deadline_s": 20.0, **settings})
    services = build_services(chosen, encoder=WordHashEncoder())
    services.store.projects.ensure(KEY, title="Text choices", label_config=CONFIG)
    services.store.tasks.take_over(KEY, list(_snapshots(tasks)))
    training = Training(store=services.store, features=services.features, registry=services.registry,
                        settings=services.settings, clock=services.clock, ladder=LEARNING)
    training.run(KEY, lambda fraction, note: None)
    return services


def _snapshots(count: int) -> Iterator[TaskSnapshot]:
    """Annotator 5 says what it is, 6 likes everything, 7 labels every second task."""
    for number in range(count):
        task_id, label = FIRST_TASK + number, list(WORDS)[number % 3]
        given = {"5": label, "6": "Positive"} | ({"7": label} if number % 2 else {})
        annotations = [_annotation(task_id, who) for who in given]
        votes = [_vote(task_id, who, choice) for who, choice in given.items()]
        task = Task(id=task_id, data={"text": f"{WORDS[label]} {number}"}, updated_at=NOW)
        yield TaskSnapshot(task=task, annotations=annotations, votes=votes)


def _annotation(task_id: int, annotator: str) -> Annotation:
    return Annotation(
        id=task_id * 10 + int(annotator), task_id=task_id, annotator=annotator, result=[], was_cancelled=False,
        ground_truth=False, created_at=NOW, updated_at=NOW, lead_time_s=2.0, imported=False, parent_prediction=None)


def _vote(task_id: int, annotator: str, label: str) -> StoredVote:
    return StoredVote(
        unit=str(task_id), task_id=task_id, annotation_id=task_id * 10 + int(annotator), annotator=annotator,
        control="label", value=Value.of_class(label), updated_at=NOW, lead_time_s=2.0, provenance=Provenance.MANUAL,
        shown=False, control_arm=False)
