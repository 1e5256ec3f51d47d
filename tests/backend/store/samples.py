"""Small records for tests of the store."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.records import Annotation, StoredVote, Task, TaskSnapshot
from model.data.spaces import Value
from model.data.votes import Provenance

KEY = "7.1764288000"
NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def vote(task_id: int, annotator: str, label: str, **more: Any) -> StoredVote:
    """A vote on a whole task; its annotation id is made of task and annotator unless given."""
    fields: dict[str, Any] = {
        "unit": str(task_id),
        "task_id": task_id,
        "annotation_id": task_id * 1000 + int(annotator),
        "annotator": annotator,
        "control": "label",
        "value": Value.of_class(label),
        "updated_at": NOON,
        "lead_time_s": 2.5,
        "provenance": Provenance.MANUAL,
        "shown": False,
        "control_arm": False,
    }
    return StoredVote(**fields | more)


def snapshot(
    task_id: int, votes: Sequence[StoredVote] = (), *, at: datetime = NOON, data: dict[str, Any] | None = None
) -> TaskSnapshot:
    """A task with one annotation per annotation id of its votes."""
    annotations = {
        each.annotation_id: Annotation(
            id=each.annotation_id,
            task_id=task_id,
            annotator=each.annotator,
            result=[{"value": {"choices": [str(each.value.data)]}}],
            was_cancelled=False,
            ground_truth=False,
            created_at=NOON,
            updated_at=each.updated_at,
            lead_time_s=each.lead_time_s,
            imported=False,
            parent_prediction=None,
        )
        for each in votes
    }
    task = Task(id=task_id, data=data or {"text": f"text {task_id}"}, updated_at=at)
    return TaskSnapshot(task=task, annotations=list(annotations.values()), votes=list(votes))


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)
