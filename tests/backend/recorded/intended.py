"""Differences from `recorded.json` that are meant: where, and why.

A place is a path through the file, as "projects/number/matrix/*/3": parts may be shell patterns, and everything below a
place is meant too. Once the file is recorded anew (`record`), the list is empty again.
"""

from __future__ import annotations

_LEARNED = "controls that are learned do not stand among those that are not; what is said of them is a note"

INTENDED: dict[str, str] = {
    "projects/ranker/statistics/overview/unmodelled": _LEARNED,
    "projects/per region/statistics/overview/unmodelled": _LEARNED,
    "projects/*/statistics/overview/notes": _LEARNED,
}
