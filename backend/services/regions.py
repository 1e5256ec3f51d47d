"""The regions that a project's annotators judged, read from raw annotations: whose they are, and what they show.

A region is known by its place (`task/place` is the unit of votes on it). It *came with* its task where it was imported
with an annotation or stands in a prediction that is not ours: annotators were shown it anyway. Regions that somebody
drew and that we delivered carry `OURS` in their id and never count as such, whoever takes them over.

Invariant: one query for any number of tasks, and none where no control is answered for each region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backend.labeling import LabelConfig
from backend.labeling.region_content import Drawn, drawn_in, read_region
from backend.ports import Store
from backend.records import Task

OURS = "polyvox-"  # begins the id of a region that somebody drew and that we delivered


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One region of one task."""

    drawn: Drawn
    by: frozenset[str]  # annotators in whose annotations it is
    came: bool  # with the task

    def shown_to(self, annotator: str | None, *, shared: bool) -> bool:
        """Whether a prediction for this annotator (None: the consensus, for all) may carry it. `shared`: also what two
        others or more agree on."""
        return self.came or annotator in self.by or (shared and len(self.by) > 1)


Regions = dict[str, Region]  # place -> region


def known_regions(store: Store, project: str, config: LabelConfig, tasks: Iterable[int]) -> dict[int, Regions]:
    """Task -> its regions, of those that have any."""
    found: dict[int, Regions] = {}
    for annotation in store.tasks.annotations(project, list(tasks)) if config.regional else ():
        for place, region in regions_in(config, annotation.result, annotation.annotator, annotation.imported).items():
            add(found.setdefault(annotation.task_id, {}), place, region)
    return found


def regions_in(
    config: LabelConfig, result: Iterable[Mapping[str, Any]], by: str | None = None, came: bool = False
) -> Regions:
    """The regions of a `result` that `by` made, or that came with the task."""
    return {
        place: Region(
            drawn=drawn, by=frozenset() if by is None else frozenset({by}),
            came=(came or drawn.taken_over) and not _ours(drawn.entries),
        )
        for place, drawn in drawn_in(config, result).items()
    }


def add(regions: Regions, place: str, region: Region) -> None:
    """Take a region in; what is known of its place already stays known."""
    old = regions.get(place)
    regions[place] = region if old is None else replace(
        old if old.drawn.entries else region, by=old.by | region.by, came=old.came or region.came)


def region_contents(
    config: LabelConfig, tasks: Sequence[Task], regions: Mapping[int, Regions]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """(unit -> content, sentence -> units that cannot be read for this reason)."""
    contents: dict[str, str] = {}
    problems: dict[str, list[str]] = {}
    for task in tasks:
        for place, region in regions.get(task.id, {}).items():
            unit = f"{task.id}/{place}"
            read = read_region(config, task.data, region.drawn, task=task.id)
            if read.problem:
                problems.setdefault(read.problem, []).append(unit)
            else:
                contents[unit] = read.content
    return contents, problems


def _ours(entries: Sequence[Mapping[str, Any]]) -> bool:
    return any(str(entry.get("id", "")).startswith(OURS) for entry in entries)
