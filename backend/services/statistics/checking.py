"""Is the confidence of the published version true? On held-out tasks, with some of their votes hidden from it."""

from __future__ import annotations

import numpy as np

from backend.labeling.content import text_of
from backend.services.features import Tokens
from backend.services.gaps.answers import CHUNK, Board, FromVersion
from model.data.splits import is_heldout
from model.ensemble.check import checked
from model.ensemble.hidden import DENSE, HiddenCheck


def check_version(board: Board, source: FromVersion, heldout_percent: float) -> dict[str, HiddenCheck]:
    """Control -> what the version says of held-out tasks with many votes, some of them hidden, and what they are.

    `heldout_percent` is that of now; where the version was trained with fewer, those count.
    """
    recorded = source.loaded.version.figures.get("heldout_percent")
    percent = min(heldout_percent, float(recorded)) if isinstance(recorded, int | float) else heldout_percent
    count = np.bincount(board.votes.unit, minlength=len(board.votes.units))  # fewer are never checked
    units = [unit for unit, votes in zip(board.votes.units, count.tolist(), strict=True)
             if votes >= DENSE and unit.isdigit() and is_heldout(board.project.key, unit, percent)]
    read = _read(board, source, units)
    rows = np.array([unit in read for unit in board.votes.units], np.bool_)
    votes = board.votes.select(rows[board.votes.unit])
    found = {name: checked(source.loaded.ladder, name, votes, lambda names: [read[each][0] for each in names],
                           lambda names: [read[each][1] for each in names]) for name in source.spaces}
    return {name: check for name, check in found.items() if check is not None}


def _read(board: Board, source: FromVersion, units: list[str]) -> dict[str, tuple[Tokens, str]]:
    """Task -> tokens and text, of those that are encoded."""
    found = {}
    for begin in range(0, len(units), CHUNK):
        tasks = board.store.tasks.get(board.project.key, [int(unit) for unit in units[begin : begin + CHUNK]])
        contents = source.contents(tasks)
        found.update({
            str(task.id): (array, text_of(content))
            for task, content, array in zip(tasks, contents, source.tokens(contents), strict=True) if array is not None
        })
    return found
