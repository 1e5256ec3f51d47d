"""Makes stored tasks, annotations and votes equal to what was read from Label Studio, writing only what differs.

A vote is found again by (annotation, unit, control). Another value, annotator or provenance ends the stored revision
and begins a new one: that is a change, counted, and the old revision stays as history. A later `updated_at` with the
same answer only corrects the row: nobody labelled anything new, so nothing is counted and no training is provoked.
`shown` and `control_arm` are judged when a vote comes in and stay as long as answer and `updated_at` do: the settings
they depend on may be others by the time the task is read again, and the vote was given under the old ones. Of several
live votes of one (unit, annotator, control) - somebody may annotate a task twice - the latest by (`updated_at`,
annotation id) is current.

Three SELECTs per batch of tasks, and one statement for each kind of write; never one per row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert, select, update

from backend import records
from backend.store.engine import Database, to_us
from backend.store.schema import as_stored, raw_annotations, tasks, votes

_ANSWER = ("annotator", "kind", "value", "provenance")  # what makes a new revision
_JUDGED = ("shown", "control_arm")  # kept while neither the answer nor its time changes
_CIRCUMSTANCES = ("task_id", "updated_at", "lead_time_s", "shown", "control_arm", "is_current")  # corrected in place
VoteKey = tuple[int, str, str]  # annotation id, unit, control
Stored = dict[str, Any]


class TakeOver:
    """One `take_over` call: a transaction and the project it writes."""

    def __init__(self, database: Database, connection: Connection, project_id: int) -> None:
        self._db = database
        self._connection = connection
        self._project_id = project_id
        self._now = database.now_us()

    def batch(self, snapshots: Sequence[records.TaskSnapshot]) -> int:
        """Write one batch; returns how many votes were stored, changed or removed."""
        ids = [snapshot.task.id for snapshot in snapshots]
        self._take_tasks(ids, snapshots)
        self._take_annotations(ids, snapshots)
        return self._take_votes(ids, snapshots)

    def _take_tasks(self, ids: Sequence[int], snapshots: Sequence[records.TaskSnapshot]) -> None:
        stored = {row["task_id"]: row for row in self._stored(tasks, ids)}
        rows = [self._task_row(snapshot.task) for snapshot in snapshots]
        self._db.upsert(self._connection, tasks, [row for row in rows if stored.get(row["task_id"]) != row])

    def _take_annotations(self, ids: Sequence[int], snapshots: Sequence[records.TaskSnapshot]) -> None:
        stored = {row["annotation_id"]: row for row in self._stored(raw_annotations, ids)}
        wanted = {
            annotation.id: self._annotation_row(annotation)
            for snapshot in snapshots
            for annotation in snapshot.annotations
        }
        fresh = [row for annotation_id, row in wanted.items() if stored.get(annotation_id) != row]
        self._db.upsert(self._connection, raw_annotations, fresh)
        gone = [key for key, row in stored.items() if key not in wanted and row["deleted_at"] is None]
        if gone:
            self._connection.execute(
                update(raw_annotations)
                .where(raw_annotations.c.project_id == self._project_id, raw_annotations.c.annotation_id.in_(gone))
                .values(deleted_at=self._now)
            )

    def _take_votes(self, ids: Sequence[int], snapshots: Sequence[records.TaskSnapshot]) -> int:
        stored = {_key(row): row for row in self._stored(votes, ids, votes.c.ended_at.is_(None))}
        wanted = self._vote_rows(snapshots)
        for key, row in wanted.items():
            if key in stored and not _differ(stored[key], row, (*_ANSWER, "updated_at")):
                row |= {name: stored[key][name] for name in _JUDGED}
        ended = [row["id"] for key, row in stored.items() if key not in wanted or _differ(row, wanted[key], _ANSWER)]
        fresh = [row for key, row in wanted.items() if key not in stored or _differ(stored[key], row, _ANSWER)]
        corrected = [
            {"row_id": stored[key]["id"]} | {f"new_{name}": row[name] for name in _CIRCUMSTANCES}
            for key, row in wanted.items()
            if key in stored and not _differ(stored[key], row, _ANSWER) and _differ(stored[key], row, _CIRCUMSTANCES)
        ]
        if ended:
            over = update(votes).where(votes.c.id.in_(ended))
            self._connection.execute(over.values(ended_at=self._now, is_current=False))
        if corrected:
            correction = update(votes).where(votes.c.id == bindparam("row_id"))
            self._connection.execute(
                correction.values({name: bindparam(f"new_{name}") for name in _CIRCUMSTANCES}), corrected
            )
        if fresh:
            self._connection.execute(insert(votes), fresh)
        removed = sum(key not in wanted for key in stored)
        return len(fresh) + removed

    def _stored(self, table: Table, ids: Sequence[int], *conditions: Any) -> list[Stored]:
        statement = select(table).where(table.c.project_id == self._project_id, table.c.task_id.in_(ids), *conditions)
        return [dict(row) for row in self._connection.execute(statement).mappings()]

    def _vote_rows(self, snapshots: Sequence[records.TaskSnapshot]) -> dict[VoteKey, Stored]:
        rows: dict[VoteKey, Stored] = {}
        for snapshot in snapshots:
            for vote in snapshot.votes:
                row = self._vote_row(vote)
                rows[_key(row)] = row
        latest: dict[tuple[str, str, str], Stored] = {}
        for row in rows.values():
            voter = (row["unit"], row["annotator"], row["control"])
            best = latest.get(voter)
            if best is None or (row["updated_at"], row["annotation_id"]) > (best["updated_at"], best["annotation_id"]):
                latest[voter] = row
        for row in latest.values():
            row["is_current"] = True
        return rows

    def _task_row(self, task: records.Task) -> Stored:
        return {
            "project_id": self._project_id,
            "task_id": task.id,
            "data": json.dumps(dict(task.data), sort_keys=True),
            "updated_at": to_us(task.updated_at),
            "deleted_at": None,
        }

    def _annotation_row(self, annotation: records.Annotation) -> Stored:
        return {
            "project_id": self._project_id,
            "annotation_id": annotation.id,
            "task_id": annotation.task_id,
            "annotator": as_stored(annotation.annotator),
            "result": json.dumps(list(annotation.result)),
            "was_cancelled": annotation.was_cancelled,
            "ground_truth": annotation.ground_truth,
            "created_at": to_us(annotation.created_at),
            "updated_at": to_us(annotation.updated_at),
            "lead_time_s": annotation.lead_time_s,
            "imported": annotation.imported,
            "parent_prediction": annotation.parent_prediction,
            "deleted_at": None,
        }

    def _vote_row(self, vote: records.StoredVote) -> Stored:
        return {
            "project_id": self._project_id,
            "task_id": vote.task_id,
            "unit": as_stored(vote.unit),
            "annotation_id": vote.annotation_id,
            "annotator": as_stored(vote.annotator),
            "control": as_stored(vote.control),
            "kind": vote.value.kind.value,
            "value": json.dumps(vote.value.data, separators=(",", ":")),  # ASCII: any label can be stored
            "updated_at": to_us(vote.updated_at),
            "lead_time_s": vote.lead_time_s,
            "provenance": int(vote.provenance),
            "shown": vote.shown,
            "control_arm": vote.control_arm,
            "is_current": False,
            "stored_at": self._now,
            "ended_at": None,
        }


def _key(row: Mapping[str, Any]) -> VoteKey:
    return row["annotation_id"], row["unit"], row["control"]


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], columns: Sequence[str]) -> bool:
    return any(one[name] != other[name] for name in columns)
