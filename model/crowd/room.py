"""Whether tables of annotators times classes times classes fit into memory: asked before any is made.

Such a table grows with the square of the classes, whatever the number of votes: 3,000 annotators and 300 classes make
2.2 GB of one, and a method holds several. Methods that can do without say less of annotators then (no confusion
matrices); the others refuse with a sentence that names the size.
"""

from __future__ import annotations

from model.errors import ModelError

MOST_CELLS = 1 << 26  # of one table of float64: half a gigabyte


def confusions_fit(annotators: int, classes: int) -> bool:
    """Whether (A, C, C) tables may be made."""
    return annotators * classes * classes <= MOST_CELLS


def require_confusions(what: str, annotators: int, classes: int) -> None:
    """Raises ModelError, with the size, unless (A, C, C) tables may be made."""
    if not confusions_fit(annotators, classes):
        raise ModelError(
            f"{what} needs tables of {annotators:,} annotators x {classes:,} x {classes:,} classes, "
            f"{_size(annotators * classes * classes)} each; at most {_size(MOST_CELLS)} are taken. Fewer classes help"
        )


def require_votes_times_classes(what: str, keys: int, classes: int) -> None:
    """The same for (K, C) tables of the K different answers that annotators gave."""
    if keys * classes > MOST_CELLS:
        raise ModelError(
            f"{what} needs tables of {keys:,} annotators' answers x {classes:,} classes, {_size(keys * classes)} each; "
            f"at most {_size(MOST_CELLS)} are taken. Fewer classes help"
        )


def _size(cells: int) -> str:
    return f"{cells * 8 / 1e9:.1f} GB"
