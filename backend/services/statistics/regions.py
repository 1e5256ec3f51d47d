"""Regions of a live project compared: F1 and IoU by control and by pair of annotators, see `model.regions`.

An annotator counts on a task with their newest annotation that was not skipped; who drew nothing there stands with no
region. Regions taken over from a prediction count like drawn ones. Of many tasks a fixed share is compared, chosen by
their ids, since outlines are dear to compare.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from backend.labeling.regions import Drawn, read_regions
from backend.records import DrawnAnnotation
from backend.services.statistics.documents import LISTED, Figure, Header, RegionFigures, RegionPair, Regions
from backend.services.statistics.material import Material
from model.regions import regions_agreement

MOST_TASKS = 1000
DRAWS = 200  # of the bootstrap
Units = Mapping[str, Mapping[str, Drawn]]  # task -> annotator -> what they drew


def regions(material: Material, annotations: Iterable[DrawnAnnotation], header: Header) -> Regions | None:
    """None where no control of the project draws regions; `annotations` are read only where one does."""
    controls = {} if material.config is None else material.config.drawing
    if not controls:
        return None
    results: dict[str, dict[str, Any]] = {}
    people: set[str] = set()
    for each in annotations:  # in order, so that the newest stays
        results.setdefault(str(each.task_id), {})[each.annotator] = each.result
        people.add(each.annotator)
    shared = [task for task, mine in results.items() if len(mine) > 1]
    chosen = sorted(shared, key=_drawn_lot)[:MOST_TASKS]
    drawn = {task: {who: read_regions(result) for who, result in results[task].items()} for task in chosen}
    return Regions(
        header=header, controls={name: _figures(drawn, name, tag) for name, tag in controls.items()},
        annotators={who: material.name(who) for who in sorted(people)},
        unreadable=sum(each.unreadable for mine in drawn.values() for each in mine.values()),
        left_out=len(shared) - len(chosen),
    )


def _figures(drawn: Units, control: str, tag: str) -> RegionFigures:
    of_task = {task: {who: each.of_control.get(control, ()) for who, each in mine.items()}
               for task, mine in drawn.items()}
    found = regions_agreement(of_task, draws=DRAWS)
    return RegionFigures(
        tag=tag, regions=sum(len(each) for mine in of_task.values() for each in mine.values()), tasks=found.units,
        f1=Figure(value=_known(found.f1), low=_known(found.low), high=_known(found.high)), exact=_known(found.exact),
        iou=_known(found.iou), pairs=tuple(
            RegionPair(one=pair.one, other=pair.other, tasks=pair.units, f1=pair.f1, exact=pair.exact,
                       iou=_known(pair.iou)) for pair in found.pairs[:LISTED]),
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _drawn_lot(task: str) -> str:
    return hashlib.sha256(task.encode()).hexdigest()
