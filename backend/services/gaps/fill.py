"""The filled matrix of a control: every vote that was given, and a prediction for every gap, told apart.

Only classes that the labeling configuration has now are predicted; an annotator's gaps are filled only where the source
has learned this annotator. Cells that nothing is known of are left out.

Shape legend: U tasks of a chunk, A annotators, C classes, R rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.errors import ClientError
from backend.services.gaps.answers import Answer, Board, Chunk
from backend.services.served import Offers
from backend.services.statistics.subject import label_text
from model.data.spaces import Space
from model.errors import ModelError

Floats = NDArray[np.float64]
GIVEN, PREDICTED = "given", "predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledCell:
    """One task and annotator."""

    annotator: str
    label: str
    probability: float | None  # of a predicted label, calibrated; None for a given one
    source: str  # GIVEN or PREDICTED


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledTask:
    """One task; its cells in the order of annotators."""

    task: int
    cells: tuple[FilledCell, ...]
    consensus: str | None  # what the majority of the whole panel would say; None where nothing is known
    confidence: float | None


def control_of(board: Board, name: str) -> str:
    """The control that is meant, the first one for "". Raises ClientError."""
    names = list(board.spaces)
    if not names:
        raise ClientError("This project has no control that Polyvox models.")
    if name and name not in names:
        raise ClientError(f"There is no modelled control of this name; there are {', '.join(names)}.")
    return name or names[0]


def people_of(board: Board) -> list[str]:
    """Everybody with a vote, in the order of their ids."""
    votes = board.votes
    found = [votes.annotators[code] for code in np.unique(votes.annotator)]
    return sorted(found, key=lambda who: (not who.isdigit(), int(who) if who.isdigit() else 0, who))


def filled(board: Board, control: str, annotators: Sequence[str], *, only_gaps: bool = False) -> Iterator[FilledTask]:
    """Every task, ids ascending; with `only_gaps` without the given labels. Raises ClientError."""
    learned = np.array([who in set(board.source.people if board.source else ()) for who in annotators], np.bool_)
    try:
        for chunk in board.chunks(board.store.tasks.ids(board.project.key), annotators):
            yield from _of_chunk(board, control, annotators, chunk, learned, only_gaps)
    except ModelError as error:
        raise ClientError(f"The gaps cannot be filled: {error}.") from error


def labels_of(space: Space, p: Floats, now: Sequence[str]) -> tuple[list[str], Floats]:
    """(labels as people read them, probability of each) of rows (R, C); `now`: the classes that there are today."""
    offered = np.array([name in set(now) for name in space.classes], np.bool_)
    if not offered.any():
        offered = np.ones(len(space.classes), np.bool_)
    values, sure = space.decide(p, np.broadcast_to(offered, p.shape))
    text = {value: label_text(value) for value in set(values) if value is not None}
    return [text[value] for value in values if value is not None], sure


def _of_chunk(
    board: Board, control: str, annotators: Sequence[str], chunk: Chunk, learned: NDArray[np.bool_], only_gaps: bool,
) -> Iterator[FilledTask]:
    answer = chunk.controls.get(control)
    ids = np.array([task.id for task in chunk.tasks], np.int64)
    given = _given(board, control, ids)
    label, sure = _predicted(board, control, answer, annotators)
    agreed = _agreed(board, control, answer, chunk)
    for row, task in enumerate(ids.tolist()):
        cells = []
        for column, who in enumerate(annotators):
            said = given.get((task, who))
            if said is not None:
                if not only_gaps:
                    cells.append(FilledCell(annotator=who, label=said, probability=None, source=GIVEN))
            elif answer is not None and answer.known[row] and learned[column]:
                at = row * len(annotators) + column
                cells.append(FilledCell(annotator=who, label=label[at], probability=float(sure[at]), source=PREDICTED))
        label_of_all, confidence = agreed.get(row, (None, None))
        yield FilledTask(task=task, cells=tuple(cells), consensus=label_of_all, confidence=confidence)


def _predicted(
    board: Board, control: str, answer: Answer | None, annotators: Sequence[str]
) -> tuple[list[str], Floats]:
    """(label, probability) of each cell, U * A of them."""
    if answer is None:
        return [], np.zeros(0)
    now = board.spaces[control].classes if control in board.spaces else ()
    cells = np.nan_to_num(answer.served.reshape(-1, len(answer.space.classes)))
    return labels_of(answer.space, cells, now)


def _agreed(board: Board, control: str, answer: Answer | None, chunk: Chunk) -> dict[int, tuple[str, float]]:
    """Row -> consensus and how sure it is, where anything is known, by the rule of what is delivered."""
    if answer is None:
        return {}
    rows = np.flatnonzero(answer.known).tolist()
    said = Offers({control: answer.space}, board.config).answers(
        {control: answer.consensus[rows]}, [chunk.tasks[row].data for row in rows], range(len(rows)))
    return {row: (label_text(each[control][0]), each[control][1])
            for row, each in zip(rows, said, strict=True) if control in each}


def _given(board: Board, control: str, ids: NDArray[np.int64]) -> dict[tuple[int, str], str]:
    """(task, annotator) -> their latest label."""
    votes = board.votes_on(ids).of_control(control)
    rows = np.argsort(votes.time, kind="stable").tolist()
    texts = {code: label_text(votes.values[code]) for code in np.unique(votes.value).tolist()}
    task = {code: int(votes.units[code].partition("/")[0]) for code in np.unique(votes.unit).tolist()}
    unit, who, value = votes.unit.tolist(), votes.annotator.tolist(), votes.value.tolist()
    return {(task[unit[row]], votes.annotators[who[row]]): texts[value[row]] for row in rows}
