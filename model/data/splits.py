"""Splits by a stable hash of the task, so that a unit stays on its side for ever, in every process and version.

All units of one task (its regions) fall on the same side. The part of a unit id before the first "/" is its task.
"""

from __future__ import annotations

import hashlib

_STEPS = 10_000  # resolution of a percentage: 0.01


def is_heldout(project: str, unit: str, percent: float) -> bool:
    """Whether the unit is held out: scored, never trained on. `percent` in 0..100 is the expected share."""
    return _draw(f"heldout:{project}:{task_of(unit)}", _STEPS) < round(percent * _STEPS / 100)


def fold_of(unit: str, folds: int) -> int:
    """The inner validation fold, 0..folds-1, of a training unit; independent of `is_heldout`."""
    return _draw(f"fold:{task_of(unit)}", folds)


def task_of(unit: str) -> str:
    """The task part of a unit id."""
    return unit.partition("/")[0]


def _draw(text: str, below: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % below
