"""The figures on gaps of one project, from its board: matrix, labels to ask for, tasks that are done.

Memory is bounded whatever the project is: at most `PANEL` annotators are asked, at most `CELLS` probabilities are kept
(tasks are then taken evenly over all of them), and the drawn matrix has about `DRAWN` cells. Counts are exact.

Shape legend: T tasks of the project, U judged ones, A annotators who may be asked, P annotators with votes, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.ports import Progress
from backend.services.gaps.answers import Board
from backend.services.gaps.asking import Panel, Table, Wishes, ask, done
from backend.services.gaps.documents import GIVEN, MISSING, PREDICTED, GapFigures, MatrixRow
from model.data.observed_votes import observed_votes
from model.data.spaces import Space

Flags = NDArray[np.bool_]
PANEL = 50  # annotators who may be asked, the most active ones
CELLS = 6_000_000  # probabilities that are kept of one control, 24 MB
MOST_TASKS = 20_000  # that are judged; the others would take minutes
WORK = 4_000_000  # probabilities of all whom the source has learned, about a minute
COLUMNS = 200  # of the drawn matrix
DRAWN = 60_000  # cells of it


def gap_figures(
    board: Board, panel: Panel, wishes: Wishes, names: Mapping[str, str], *, progress: Progress,
) -> dict[str, GapFigures]:
    """Control -> figures. Raises AcquisitionError for a policy that does not exist, ModelError for foreign features."""
    ids = board.store.tasks.ids(board.project.key)
    spaces = {name: space for name, space in board.spaces.items() if space.classes}
    if board.source is not None:
        spaces |= board.source.spaces  # the classes that were learned
    if not spaces:
        return {}
    learned = len(board.source.people) if board.source is not None else 0
    judged = evenly(ids, _most(spaces, len(panel.annotators), learned))
    tables, known = _tables(board, spaces, judged, panel, progress)
    if len(judged) < len(ids):
        progress(0.7, "looking which tasks are encoded")
        known = board.known(ids)
    found = {}
    for at, (name, table) in enumerate(tables.items()):
        progress(0.75 + 0.2 * at / len(tables), f"choosing what to ask about {name}")
        ready = known.get(name, np.zeros(len(ids), np.bool_))
        units, rows = _matrix(board, name, ids, ready, names)
        ended, saved = done(table)
        found[name] = GapFigures(
            units=units, rows=rows, asks=tuple(ask(table, panel, wishes)), policy=wishes.policy, done=ended,
            saved=saved, tasks=len(ids), judged=len(judged), waiting=int(len(ids) - ready.sum()),
        )
    return found


def evenly(ids: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many, evenly over all."""
    if len(ids) <= most:
        return ids
    return ids[np.unique(np.linspace(0, len(ids) - 1, most).round().astype(np.int64))]


def _most(spaces: Mapping[str, Space], asked: int, learned: int) -> int:
    """Tasks that may be judged."""
    width = sum(len(space.classes) for space in spaces.values())
    return max(1, min(MOST_TASKS, CELLS // max(1, width * asked), WORK // max(1, width * learned)))


def _tables(
    board: Board, spaces: Mapping[str, Space], ids: NDArray[np.int64], panel: Panel, progress: Progress,
) -> tuple[dict[str, Table], dict[str, Flags]]:
    """Everything about the judged tasks, and which of them are filled, over `ids`."""
    u, a = len(ids), len(panel.annotators)
    place = {each: at for at, each in enumerate(panel.annotators)}
    served = {name: np.zeros((u, a, len(space.classes)), np.float32) for name, space in spaces.items()}
    consensus = {name: np.full((u, len(space.classes)), np.nan) for name, space in spaces.items()}
    known = {name: np.zeros(u, np.bool_) for name in spaces}
    seen = 0
    for chunk in board.chunks(ids, panel.annotators):
        progress(0.05 + 0.6 * seen / u, f"predicted gaps of {seen} of {u} tasks")
        seen += len(chunk.tasks)
        rows = np.searchsorted(ids, [task.id for task in chunk.tasks])
        for name, answer in chunk.controls.items():
            served[name][rows], consensus[name][rows] = answer.served, answer.consensus
            known[name][rows] = answer.known
    tables, votes = {}, board.votes_on(ids)
    units = [str(each) for each in ids.tolist()]
    for name, space in spaces.items():
        given = observed_votes(votes, name, space, units, place)
        tables[name] = Table(space=space, task=ids, served=served[name], consensus=consensus[name],
                             y=given.y[:, :a], has=_has(board, name, ids, panel.annotators),
                             votes=given.has.sum(1).astype(np.int64), counts=given.y.sum(1).astype(np.int64))
    return tables, known


def _has(board: Board, control: str, ids: NDArray[np.int64], annotators: Sequence[str]) -> Flags:
    """(len(ids), len(annotators)) who used the control on which task, also with a label that is none of its today."""
    found = np.zeros((len(ids), len(annotators)), np.bool_)
    if control not in board.votes.controls or not found.size:
        return found
    column = {each: at for at, each in enumerate(annotators)}
    at = np.array([column.get(each, -1) for each in board.votes.annotators], np.int64)[board.votes.annotator]
    row = np.minimum(np.searchsorted(ids, board.task), len(ids) - 1)
    mine = (board.votes.control == board.votes.controls.index(control)) & (at >= 0) & (ids[row] == board.task)
    found[row[mine], at[mine]] = True
    return found


def _matrix(
    board: Board, control: str, ids: NDArray[np.int64], ready: Flags, names: Mapping[str, str],
) -> tuple[tuple[str, ...], tuple[MatrixRow, ...]]:
    """(drawn tasks, a row of every annotator with votes, most labels first)."""
    votes = board.votes
    people = [votes.annotators[code] for code in np.unique(votes.annotator)]
    shown = evenly(ids, max(10, min(COLUMNS, DRAWN // max(1, len(people)))))
    learned = set(board.source.people) if board.source is not None else set()
    filled = ready[np.searchsorted(ids, shown)] if len(shown) else np.zeros(0, np.bool_)
    drawn = _has(board, control, shown, people)  # (shown, P)
    given, on_ready = _counts(board, control, ids, ready, people)
    rows = []
    for at, who in enumerate(people):
        predicted = int(ready.sum() - on_ready[at]) if who in learned else 0
        empty = np.where(filled & (who in learned), PREDICTED, MISSING)
        rows.append(MatrixRow(
            annotator=who, name=names.get(who, who), given=int(given[at]), predicted=predicted,
            missing=len(ids) - int(given[at]) - predicted, cells="".join(np.where(drawn[:, at], GIVEN, empty)),
        ))
    order = sorted(rows, key=lambda row: (-row.given, row.annotator))
    return tuple(str(each) for each in shown.tolist()), tuple(order)


def _counts(
    board: Board, control: str, ids: NDArray[np.int64], ready: Flags, people: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tasks that each of P annotators labelled: all, and those that are ready. Deleted tasks do not count."""
    none = np.zeros(len(people), np.int64)
    if control not in board.votes.controls or not len(ids):
        return none, none
    place = {each: at for at, each in enumerate(people)}
    who = np.array([place.get(each, -1) for each in board.votes.annotators], np.int64)[board.votes.annotator]
    row = np.minimum(np.searchsorted(ids, board.task), len(ids) - 1)
    mine = (board.votes.control == board.votes.controls.index(control)) & (ids[row] == board.task)
    pairs = np.unique(row[mine] * len(people) + who[mine])
    given = np.bincount(pairs % len(people), minlength=len(people))
    on_ready = np.bincount(pairs[ready[pairs // len(people)]] % len(people), minlength=len(people))
    return given.astype(np.int64), on_ready.astype(np.int64)
