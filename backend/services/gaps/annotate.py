"""Consensus labels written into Label Studio as annotations of a service account.

Done when somebody asks for it, never by a job. Only where the consensus is sure enough, never on a task that the
account has annotated, and never by an account that labels in the project: what is written must not pass for anybody's
vote.
Each region says in its `meta` where it comes from (`labeling.provenance.as_filled`); Polyvox reads no vote from such an
annotation. Label Studio has no bulk call for annotations of tasks that exist, so this is one request a task.

Invariant: what the account has already is asked of Label Studio before each chunk, so that a run which was cut off can
be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.errors import ClientError
from backend.labeling.provenance import as_filled
from backend.ports import Desk, LabelStudio, Progress
from backend.prediction_names import consensus_version
from backend.services.gaps.answers import Board, Chunk
from backend.services.served import Offers

Result = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotated:
    """What a run did."""

    account: str  # e-mail
    written: int
    there: int  # tasks that the account had annotated before
    unsure: int  # tasks whose consensus is below the wanted confidence, or unknown


def annotate(
    board: Board, desk: Desk, label_studio: LabelStudio, *, at_least: float, progress: Progress,
) -> Annotated:
    """Write the consensus of every task that is at least so sure.

    Raises ClientError where nothing can be predicted or the account labels here, LabelStudioError where Label Studio
    fails; what was written stays.
    """
    if board.source is None:
        raise ClientError("There is nothing to predict a consensus from yet: nobody has labelled.")
    account, email = desk.who()
    if account in board.votes.annotators:
        raise ClientError(
            f"Account {account} labels in this project, so what it writes would pass for its own labels. Use the "
            "token of an account that nobody labels with."
        )
    ids = board.store.tasks.ids(board.project.key)
    written = there = done = 0
    for chunk in board.chunks(ids, ()):
        sure = dict(_sure(board, chunk, at_least))
        raw = label_studio.tasks_by_id(board.project.label_studio_id, list(sure)) if sure else {}
        for task, result in sure.items():
            if task not in raw or _has(raw[task], account):
                there += task in raw
                continue
            desk.annotate(task, result)
            written += 1
        done += len(chunk.tasks)
        progress(done / max(1, len(ids)), f"{done} of {len(ids)} tasks")
    return Annotated(account=email, written=written, there=there, unsure=done - written - there)


def _sure(board: Board, chunk: Chunk, at_least: float) -> Iterator[tuple[int, Result]]:
    """(task, result) of those whose consensus is sure enough."""
    if not chunk.controls:
        return
    known = np.logical_and.reduce([each.known for each in chunk.controls.values()])
    rows = np.flatnonzero(known)
    name = consensus_version(board.version)
    made = Offers({control: each.space for control, each in chunk.controls.items()}, board.config).predictions(
        {control: each.consensus[rows] for control, each in chunk.controls.items()},
        [chunk.tasks[row].data for row in rows.tolist()], range(len(rows)), [name] * len(rows),
    )
    for row, prediction in zip(rows.tolist(), made, strict=True):
        if prediction is not None and prediction["score"] >= at_least:
            yield chunk.tasks[row].id, as_filled(prediction["result"], name)


def _has(task: Mapping[str, Any], account: str) -> bool:
    return any(str(each.get("completed_by")) == account for each in task.get("annotations") or [])
