"""Differences from `recorded.json` that are meant: where, and why.

A place is a path through the file, from the project's name on, as "number/matrix/*/3": parts may be shell patterns, and
everything below a place is meant too. Once the file is recorded anew (`record`), the list is empty again.
"""

from __future__ import annotations

_LEARNED = "controls that are learned do not stand among those that are not; what is said of them is a note"
_ONE_CONFIDENCE = "a number is as sure as its own bin, wherever it is told; before, the likeliest bin spoke for it"

INTENDED: dict[str, str] = {
    "ranker/statistics/overview/unmodelled": _LEARNED,
    "per region/statistics/overview/unmodelled": _LEARNED,
    "*/statistics/overview/notes": _LEARNED,
    "number/predict/*/*/0": _ONE_CONFIDENCE,
    "number/predict/*/*/1/2": _ONE_CONFIDENCE,
    "number/delivered/*/*/0": _ONE_CONFIDENCE,
    "number/delivered/*/*/1/2": _ONE_CONFIDENCE,
    "number/matrix/price/*/1": _ONE_CONFIDENCE,
    "number/statistics/consensus/controls/price/confidence": _ONE_CONFIDENCE,
    "number/statistics/overview/controls/0/consensus": _ONE_CONFIDENCE,
}
