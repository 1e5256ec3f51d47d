"""The document on a project's gaps: the matrix as it is filled, and the next labels worth asking for.

Made by a job, kept beside the other statistics under the kind `gaps`, read by pages and the API. `codec` of the
statistics turns it into JSON and back. What is unknown is None.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from backend.ports import Store
from backend.services.statistics.codec import decode
from backend.services.statistics.documents import Header

log = logging.getLogger(__name__)

KIND = "gaps"
GIVEN, PREDICTED, MISSING = "g", "p", "."  # a cell of the matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One annotator's row of the matrix; given + predicted + missing are all tasks."""

    annotator: str
    name: str
    given: int
    predicted: int
    missing: int
    cells: str  # one letter for each of `GapFigures.units`: GIVEN, PREDICTED or MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A label worth asking for."""

    task: int
    unit: str
    annotator: str
    name: str
    gain: float  # what the policy expects of it, in its own unit; higher comes first
    cost: float | None  # of the annotator's next label
    sentence: str  # why


@dataclass(frozen=True, slots=True, kw_only=True)
class GapFigures:
    """One control."""

    units: tuple[str, ...]  # columns of the matrix; evenly spaced over the tasks where there are many
    rows: tuple[MatrixRow, ...]
    asks: tuple[Ask, ...]  # best first
    policy: str  # "uncertainty", "disagreement" ...
    done: int  # tasks whose consensus no further vote would change
    saved: int  # votes that need not be asked for, since their tasks are done
    tasks: int = 0  # all there are
    judged: int = 0  # those that `asks`, `done` and `saved` speak of; fewer where there are very many tasks
    waiting: int = 0  # tasks whose gaps are not predicted: content that is not encoded yet, or no version and no vote


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """By control."""

    header: Header
    controls: Mapping[str, GapFigures]


def read_gaps(store: Store, project: str) -> Gaps | None:
    """The newest document; None before the first, and for one that an older release wrote in another shape."""
    stored = store.statistics.body(project, KIND)
    if stored is None:
        return None
    try:
        return decode(Gaps, stored[1])
    except (ValueError, TypeError, KeyError):
        log.warning("the gaps of project %s were written by another release; they wait for the next ones", project)
        return None
