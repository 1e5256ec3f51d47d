"""Raw Label Studio tasks -> snapshots: the task, its annotations as they are, and the votes read from them.

What gives no vote: a skipped annotation (`was_cancelled`), an empty result, a draft, a prediction, a predicted label
that was written as an annotation (`annotate`), a control that is not modelled. `ground_truth` is kept with the
annotation and means nothing here: it is the default on imports.
A label that is no longer in the config still becomes a vote, for the history; no space of today contains it.

Raises ClientError where there is no task to speak of; an annotation that cannot be told from others is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.errors import ClientError
from backend.labeling.config import LabelConfig
from backend.labeling.control_arm import in_control_arm, task_in_control_arm
from backend.labeling.provenance import (
    is_echo,
    is_filled,
    is_imported,
    provenance_of,
    provenance_on_region,
    shown_prediction,
)
from backend.labeling.written import moment, person
from backend.records import Annotation, StoredVote, Task, TaskSnapshot

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Annotations are stamped by Label Studio's clock, deliveries by ours. Where the two cannot tell what was first, a vote
# counts as given after the pre-annotation: leaving out a few honest votes does no harm, scoring an anchored one does.
CLOCKS_DIFFER = timedelta(seconds=120)


def read_task(
    config: LabelConfig,
    task_json: Mapping[str, Any],
    *,
    project_id: int,
    control_arm_percent: float,
    shown_since: datetime | None,
    known_annotators: Mapping[int, str],
    whole_task_arm: bool = False,
) -> TaskSnapshot:
    """Everything that is read from one task.

    `shown_since` is when the first pre-annotation of ours was delivered for it, None when none was. `known_annotators`
    says who made an annotation (by its id) whose account is gone. `whole_task_arm`: the control arm withholds whole
    tasks, because Label Studio cannot tell annotators apart.
    """
    task = _task(task_json)
    annotations = list(_annotations(task, task_json.get("annotations"), known_annotators))

    def in_arm(annotator: str) -> bool:
        if whole_task_arm:
            return task_in_control_arm(project_id, task.id, control_arm_percent)
        return in_control_arm(project_id, task.id, annotator, control_arm_percent)

    votes = [
        vote
        for annotation in annotations
        for vote in _votes(config, task, annotation, in_arm=in_arm(annotation.annotator), shown_since=shown_since)
    ]
    return TaskSnapshot(task=task, annotations=annotations, votes=votes)


def _task(raw: Mapping[str, Any]) -> Task:
    identifier = _int(raw.get("id")) if isinstance(raw, Mapping) else None
    if identifier is None:
        raise ClientError("A task without an id cannot be read.")
    data = raw.get("data")
    return Task(
        id=identifier,
        data=data if isinstance(data, Mapping) else {},
        updated_at=moment(raw.get("updated_at")) or moment(raw.get("created_at")) or _EPOCH,
    )


def _annotations(task: Task, raw: Any, known: Mapping[int, str]) -> Iterator[Annotation]:
    for item in raw if isinstance(raw, list) else []:
        identifier = _int(item.get("id")) if isinstance(item, Mapping) else None
        if identifier is None:
            continue
        stated = moment(item.get("created_at")) or moment(item.get("updated_at"))
        created = stated or task.updated_at
        made_from = item.get("parent_prediction")  # its id, or in full
        yield Annotation(
            id=identifier,
            task_id=task.id,
            annotator=person(item.get("completed_by")) or known.get(identifier) or f"deleted:{identifier}",
            result=_regions(item.get("result")),
            was_cancelled=item.get("was_cancelled") is True,
            ground_truth=item.get("ground_truth") is True,
            created_at=created,
            updated_at=moment(item.get("updated_at")) or created,
            lead_time_s=_seconds(item.get("lead_time")),
            imported=is_imported(item),
            parent_prediction=_int(made_from.get("id") if isinstance(made_from, Mapping) else made_from),
            predicted=shown_prediction(item),
            timed=stated is not None,
        )


def _votes(
    config: LabelConfig, task: Task, annotation: Annotation, *, in_arm: bool, shown_since: datetime | None
) -> Iterator[StoredVote]:
    if annotation.was_cancelled or is_filled(annotation.result):
        return
    delivered = shown_since is not None and annotation.updated_at >= shown_since - CLOCKS_DIFFER
    judged = [(control, *part) for control in config.controls for part in control.parts(annotation.result)]
    for control, place, regions in judged:
        value = control.decode(regions, task.data)
        if value is None:
            continue
        provenance = (provenance_on_region(regions, annotation, shown=shown_since is not None) if place
                      else provenance_of(regions, annotation))
        echo = is_echo(provenance)
        yield StoredVote(
            unit=f"{task.id}/{place}" if place else str(task.id),
            task_id=task.id,
            annotation_id=annotation.id,
            annotator=annotation.annotator,
            control=control.name,
            value=value,
            updated_at=annotation.updated_at,
            lead_time_s=annotation.lead_time_s,
            provenance=provenance,
            shown=echo or (delivered and not in_arm),
            # Whoever took a pre-annotation over saw one, whatever was withheld: such a vote must not score.
            control_arm=in_arm and not echo,
        )


def _regions(result: Any) -> Sequence[Mapping[str, Any]]:
    return [region for region in result if isinstance(region, Mapping)] if isinstance(result, list) else []


def _int(value: Any) -> int | None:
    """An id; None for what no database can hold as one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _seconds(value: Any) -> float | None:
    """A duration; None for what is none (NaN and negative ones too)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    return None
