"""The columns of the table of pairs of annotators who drew regions."""

from __future__ import annotations

from typing import Any

from backend.report.table import Column
from backend.services.statistics.codec import plain
from backend.services.statistics.documents import RegionFigures, RegionPair

FIGURES = ("tag", "regions", "tasks", "f1", "exact", "iou")


def figures_of(found: RegionFigures) -> dict[str, Any]:
    """What all pairs of a control come to, for programs."""
    about = plain(found)
    return {name: about[name] for name in FIGURES}


REGION_PAIRS: tuple[Column[RegionPair], ...] = (
    Column(name="annotator", title="Annotator", help="Label Studio's user id, or a number where names are masked",
           kind="text", sorts=False, read=lambda pair, names: names.slug(pair.one)),
    Column(name="other", title="Other annotator", help="the same of the other one", kind="text", sorts=False,
           read=lambda pair, names: names.slug(pair.other)),
    Column(name="tasks", title="Tasks", help="that both annotated and at least one of them drew something on",
           kind="whole", read=lambda pair, names: pair.tasks),
    Column(name="f1", title="F1", help="share of regions that the other drew too: the same labels, and an IoU of a "
           "half or more", kind="percent", read=lambda pair, names: pair.f1, low_first=True),
    Column(name="exact", title="F1 of equal ones", help="the same of regions that lie on each other (IoU 0.999)",
           kind="percent", read=lambda pair, names: pair.exact, low_first=True),
    Column(name="iou", title="IoU", help="intersection over union of the matched regions, mean",
           kind="decimal", read=lambda pair, names: pair.iou, low_first=True),
)
