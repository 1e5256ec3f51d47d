"""Agreement on regions that annotators drew, by control and by pair of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.services.statistics.documents.header import Figure, Header


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPair:
    """Two annotators on the tasks that both annotated and at least one of them drew something on."""

    one: str
    other: str
    tasks: int
    f1: float  # of regions with the same labels and an IoU of a half or more
    exact: float  # the same from an IoU of 0.999 on
    iou: float | None  # mean of the matched regions; None where none are


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFigures:
    """One control; figures are means over tasks of the mean over pairs."""

    tag: str
    regions: int  # drawn on the tasks that were compared
    tasks: int  # with two annotators or more, of whom one drew something
    f1: Figure  # interval from a bootstrap over tasks
    exact: float | None
    iou: float | None
    pairs: tuple[RegionPair, ...]  # least agreeing first, `LISTED` at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """Only there where the labeling configuration has a control that draws regions which can be compared."""

    header: Header
    controls: Mapping[str, RegionFigures]
    annotators: Mapping[str, str]  # id -> name; who annotated, with votes or without
    unreadable: int  # regions without a place, which are left out
    left_out: int  # tasks with two annotators or more beyond the most that are compared
