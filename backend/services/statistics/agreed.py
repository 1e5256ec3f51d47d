"""The consensus of every unit with votes, as it is shown everywhere: what the published version delivers, else what
votes alone say.

A version answers for tasks whose content is encoded; for the others, for regions, and before the first version, the
consensus comes from votes alone (`model.ensemble.first_votes`), calibrated likewise. It is the same computation that
`/predict`, delivery, `fill` and `annotate` use, and the same rule what a label and its confidence are
(`served.Offers`), so no two places can differ.

Invariants: one batched forward over tasks whose votes, content, version or label config are new since the last run in
this process;
a fixed number of queries.
Shape legend: U units of a control, C classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.ports import Progress
from backend.records import Task
from backend.services.gaps.answers import CHUNK, Board, FromVersion, FromVotes, from_votes
from backend.services.served import Offers
from backend.services.statistics.checking import check_version
from backend.services.statistics.documents import ALONE
from backend.services.statistics.shown import Answers, Consensuses, Known, Memory
from model.data.spaces import Space, Value
from model.data.splits import task_of
from model.ensemble.first_votes import FirstVotes

Floats = NDArray[np.float64]


def agreed(
    board: Board, memory: Memory, *, echo_weight: float, heldout_percent: float, progress: Progress
) -> Consensuses:
    """The consensus of all units with votes; `heldout_percent` of the tasks were never trained on.

    Raises ModelError where a version cannot read its features.
    """
    found: dict[str, dict[str, tuple[Value, float]]] = {name: {} for name in board.spaces}
    if isinstance(board.source, FromVersion):
        for task, answers in _by_version(board, board.source, memory, progress):
            for name, answer in answers.items():
                found.setdefault(name, {})[str(task)] = answer
    source = board.source if isinstance(board.source, FromVotes) else None
    left = _left(board, found)
    if source is None and any(left.values()):
        source = from_votes(board.votes, board.spaces, echo_weight)
    if source is not None:
        _by_votes(board, source.first, source.spaces, left, found, progress)
    if isinstance(board.source, FromVersion):
        return Consensuses(answers=found, said_by=board.version or ALONE,
                           checks=check_version(board, board.source, heldout_percent))
    return Consensuses(answers=found, said_by=ALONE, checks={} if source is None else source.first.checks)


def _by_version(
    board: Board, source: FromVersion, memory: Memory, progress: Progress
) -> Iterator[tuple[int, Answers]]:
    """(task, answers) of tasks with votes that the version can answer for."""
    known = memory.of(board.project.key, repr((board.version, board.project.label_config)))  # it says what is offered
    offers = Offers(source.spaces, board.config)
    ids = np.unique(board.task)
    for begin in range(0, len(ids), CHUNK):
        progress(0.2 + 0.3 * begin / len(ids), f"consensus of {begin} of {len(ids)} tasks")
        part = ids[begin : begin + CHUNK]
        tasks = board.store.tasks.get(board.project.key, part.tolist())
        digests = _digests(board, part, tasks)
        new = [task for task in tasks if known.answers.get(task.id, ("", {}))[0] != digests[task.id]]
        if new:
            _ask(board, source, offers, new, digests, known)
        yield from ((task.id, known.answers[task.id][1]) for task in tasks if task.id in known.answers)
    known.answers = {task: known.answers[task] for task in ids.tolist() if task in known.answers}


def _ask(
    board: Board, source: FromVersion, offers: Offers, tasks: Sequence[Task], digests: Mapping[int, str], known: Known,
) -> None:
    """Answers of these tasks; those whose content is not encoded are forgotten."""
    answered = source.answer(tasks, (), board.votes_on(np.array([task.id for task in tasks], np.int64)))
    rows = np.flatnonzero(np.logical_and.reduce([each.known for each in answered.values()]) if answered else [])
    said = offers.answers({name: each.consensus[rows] for name, each in answered.items()},
                          [tasks[row].data for row in rows.tolist()], range(len(rows)))
    for task in tasks:
        known.answers.pop(task.id, None)
    for row, answers in zip(rows.tolist(), said, strict=True):
        known.answers[tasks[row].id] = (digests[tasks[row].id], answers)


def _digests(board: Board, ids: NDArray[np.int64], tasks: Sequence[Task]) -> dict[int, str]:
    """Task -> what its answer rests on beside the version: its votes and its content."""
    votes = board.votes_on(ids)
    of_task: dict[int, list[str]] = {task.id: [repr(sorted(task.data.items(), key=str))] for task in tasks}
    texts = {code: votes.values[code].to_json() for code in np.unique(votes.value).tolist()}
    task = {code: int(task_of(votes.units[code])) for code in np.unique(votes.unit).tolist()}
    columns: list[list[Any]] = [column.tolist() for column in (
        votes.unit, votes.annotator, votes.control, votes.value, votes.time, votes.provenance)]
    for unit, annotator, control, value, at, provenance in zip(*columns, strict=True):
        if task[unit] in of_task:
            of_task[task[unit]].append(repr((
                votes.units[unit], votes.annotators[annotator], votes.controls[control], texts[value], at, provenance)))
    return {each: hashlib.sha256("\n".join([*said[:1], *sorted(said[1:])]).encode("utf-8", "surrogatepass")).hexdigest()
            for each, said in of_task.items()}


def _left(board: Board, found: Mapping[str, Mapping[str, tuple[Value, float]]]) -> dict[str, list[str]]:
    """Control -> units with votes that nothing answered for yet, in order of their tasks."""
    left = {}
    for name in board.spaces:
        mine = board.votes.of_control(name)
        units = {mine.units[code] for code in np.unique(mine.unit).tolist()}
        left[name] = sorted(units - found.get(name, {}).keys(), key=lambda unit: (int(task_of(unit)), unit))
    return left


def _by_votes(
    board: Board, first: FirstVotes, spaces: Mapping[str, Space], left: Mapping[str, Sequence[str]],
    found: dict[str, dict[str, tuple[Value, float]]], progress: Progress,
) -> None:
    """Enter what votes alone say of units."""
    for name, units in left.items():
        if name not in spaces:
            continue
        offers = Offers({name: spaces[name]}, board.config, regional=name in board.config.regional)
        for begin in range(0, len(units), CHUNK):
            progress(0.4, f"consensus of {begin} of {len(units)} tasks from votes alone")
            part = units[begin : begin + CHUNK]
            ids = np.unique([int(task_of(unit)) for unit in part])
            data = {task.id: task.data for task in board.store.tasks.get(board.project.key, ids.tolist())}
            p = first.predict(part, (), board.votes_on(ids))[name].consensus
            said = offers.answers({name: p}, [data.get(int(task_of(unit)), {}) for unit in part], range(len(part)))
            found[name].update({unit: each[name] for unit, each in zip(part, said, strict=True) if name in each})
