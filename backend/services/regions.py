"""The regions that a project's annotators judged, read from raw annotations: whose they are, and what they show.

A region is known by its place (`task/place` is the unit of votes on it). It *came with* its task where it was imported
with an annotation or stands in a prediction that is not ours: annotators were shown it anyway. Regions that somebody
drew and that we delivered carry `OURS` in their id and never count as such, whoever takes them over.

Invariants: what came with a task and what each annotator made of it are kept apart, so that a label that one of them
changed or drew is shown to nobody else; one query for any number of tasks, and none where no control is answered for
each region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling import LabelConfig
from backend.labeling.provenance import is_taken_over
from backend.labeling.region_content import Drawn, drawn_in, read_region
from backend.ports import Store
from backend.records import Annotation, Task

OURS = "polyvox-"  # begins the id of a region that somebody drew and that we delivered
Result = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One region of one task; somebody drew it, or it came with the task."""

    place: str
    came_as: Drawn | None  # with the task
    by: Mapping[str, Drawn]  # annotator -> as they have it, in the order of annotations
    asked: Drawn | None = None  # as whoever asks for predictions just drew it; never came with the task

    @property
    def drawn(self) -> Drawn:
        """The region as somebody has it: its place and what it shows are the same for all."""
        known = (self.came_as, *self.by.values(), self.asked)
        return next(drawn for drawn in known if drawn is not None)

    def drawn_for(self, annotator: str | None, *, shared: bool) -> Drawn | None:
        """As a prediction for this annotator (None: the consensus, for all) may show it; None: not at all. `shared`:
        also what two others or more agree on."""
        own = None if annotator is None else self.by.get(annotator)
        agreed = next(iter(self.by.values())) if shared and len(self.by) > 1 else None
        return self.came_as or own or self.asked or agreed


Regions = dict[str, Region]  # place -> region


def known_regions(store: Store, project: str, config: LabelConfig, tasks: Iterable[int]) -> dict[int, Regions]:
    """Task -> its regions, of those that have any."""
    found: dict[int, Regions] = {}
    for annotation in store.tasks.annotations(project, list(tasks)) if config.regional else ():
        add(found.setdefault(annotation.task_id, {}), _annotated(config, annotation))
    return {task: regions for task, regions in found.items() if regions}


def offered_regions(config: LabelConfig, result: Result) -> Regions:
    """The regions of a prediction that came with its task."""
    return {place: Region(place=place, came_as=drawn, by={})
            for place, drawn in drawn_in(config, [entry for entry in result if not _ours(entry)]).items()}


def asked_regions(config: LabelConfig, result: Result) -> Regions:
    """The regions that whoever asks for predictions has before them."""
    return {place: Region(place=place, came_as=None, by={}, asked=drawn)
            for place, drawn in drawn_in(config, result).items()}


def add(regions: Regions, more: Regions) -> None:
    """Take regions in; what is known of a place already stays known."""
    for place, new in more.items():
        old = regions.get(place)
        regions[place] = new if old is None else Region(
            place=place, came_as=_first(old.came_as, new.came_as), asked=_first(old.asked, new.asked),
            by={**old.by, **{who: _first(old.by.get(who), drawn) or drawn for who, drawn in new.by.items()}})


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


def _annotated(config: LabelConfig, annotation: Annotation) -> Regions:
    """The regions of an annotation. Of one that was not imported, those came with the task that nobody changed."""
    came = drawn_in(config, [entry for entry in annotation.result
                             if not _ours(entry) and (annotation.imported or is_taken_over(entry))])
    return {
        place: Region(place=place, by={annotation.annotator: drawn},
                      came_as=came.get(place) if annotation.imported or _has_shape(came.get(place)) else None)
        for place, drawn in drawn_in(config, annotation.result).items()
    }


def _first(old: Drawn | None, new: Drawn | None) -> Drawn | None:
    """The first that has a shape, else the first."""
    return new if old is None or (not _has_shape(old) and _has_shape(new)) else old


def _has_shape(drawn: Drawn | None) -> bool:
    return drawn is not None and bool(drawn.entries)


def _ours(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("id", "")).startswith(OURS)
