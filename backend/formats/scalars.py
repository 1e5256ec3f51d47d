"""JSON scalars <-> ids and labels: what counts as an id, a label, a missing label, in every JSON format alike."""

from __future__ import annotations

import math

from backend.labeling.written import class_text, finite, seconds
from model.data.spaces import Value

LARGEST_WEIGHT = 3e38  # votes keep weights as float32


def as_id(item: object) -> str | None:
    """An id as text: 17, 17.0 and "17" are one id. None for what is none (empty text, null, lists, NaN, integers beyond
    every float)."""
    if isinstance(item, str):
        return item or None
    return None if isinstance(item, bool) or finite(item) is None else class_text(item)


def is_missing(item: object) -> bool:
    """Whether somebody wrote down that there is no label: null, empty text, NaN and what else is no finite number."""
    return item is None or item == "" or (isinstance(item, float) and not math.isfinite(item))


def as_value(item: object) -> Value | None:
    """A label: text, number or boolean is a class, a list of such is a set of classes. None for anything else."""
    if isinstance(item, list):
        names = [_class_name(each) for each in item]
        return Value.of_classes([name for name in names if name is not None]) if None not in names else None
    name = _class_name(item)
    return None if name is None else Value.of_class(name)


def as_seconds(item: object) -> float | None:
    """Seconds since the epoch of a number (milliseconds and less by their size) or an ISO 8601 text (UTC where no zone
    is given); None for anything else."""
    return seconds(item)


def as_weight(item: object) -> float | None:
    """A weight: a finite number that is not negative and that votes can keep; None for anything else."""
    if isinstance(item, int | float) and not isinstance(item, bool) and 0.0 <= item <= LARGEST_WEIGHT:
        return float(item)
    return None


def _class_name(item: object) -> str | None:
    return str(item).lower() if isinstance(item, bool) else as_id(item)
