"""A small raw task as Label Studio sends it, and what is read from it."""

from __future__ import annotations

from datetime import UTC, datetime

from backend.labeling import parse_config, read_task
from tests.backend.labeling.configs import SENTIMENT

CONFIG = parse_config(SENTIMENT)
DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)


def annotation(label="Positive", **changes):
    region = {"id": "r", "from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    return {
        "id": 9, "completed_by": 5, "result": [region | {"origin": "manual"}], "was_cancelled": False,
        "ground_truth": False, "created_at": "2026-05-01T11:00:00.5Z", "updated_at": "2026-05-01T12:00:00Z",
        "lead_time": 3.5, "import_id": None, "parent_prediction": None,
    } | changes


def read(*annotations, percent=0, shown_since=None, known=None, task=None, **more):
    raw = {"id": 41, "data": {"text": "hi"}, "updated_at": "2026-05-01T12:00:01Z", "annotations": list(annotations)}
    return read_task(
        CONFIG, raw | (task or {}), project_id=1, control_arm_percent=percent, shown_since=shown_since,
        known_annotators=known or {}, **more,
    )


def votes_of(*annotations, **more):
    return list(read(*annotations, **more).votes)
