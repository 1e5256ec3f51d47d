"""Regions of a live project are compared by the job, also where nobody gave a vote, and anew when somebody drew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backend.labeling import parse_config
from backend.records import Annotation, Task, TaskSnapshot
from backend.services.statistics import regions as regions_module
from backend.services.statistics.documents import Regions
from backend.services.statistics.material import draws
from tests.backend.services.statistics.crowds import KEY, START, Project, crowd

CONFIG = """<View><Image name="i" value="$i"/>
<RectangleLabels name="box" toName="i"><Label value="Car"/></RectangleLabels>
<PolygonLabels name="shape" toName="i"><Label value="Car"/></PolygonLabels></View>"""


def box(x: float, *, control: str = "box", **more: Any) -> dict[str, Any]:
    value = {"x": x, "y": 10.0, "width": 20.0, "height": 20.0, "rectanglelabels": ["Car"], **more}
    return {"type": "rectanglelabels", "from_name": control, "to_name": "i", "value": value}


def annotation(number: int, task: int, who: str, result: Sequence[Any], *, minute: int = 0, skipped: bool = False
               ) -> Annotation:
    at = START + timedelta(minutes=minute)
    return Annotation(id=number, task_id=task, annotator=who, result=list(result), was_cancelled=skipped,
                      ground_truth=False, created_at=at, updated_at=at, lead_time_s=None, imported=False,
                      parent_prediction=None)


def give(project: Project, *annotations: Annotation) -> None:
    of_task: dict[int, list[Annotation]] = {}
    for each in annotations:
        of_task.setdefault(each.task_id, []).append(each)
    project.store.tasks.take_over(KEY, [
        TaskSnapshot(task=Task(id=task, data={"i": "x.png"}, updated_at=START), annotations=mine, votes=())
        for task, mine in of_task.items()])


def found(project: Project) -> Regions:
    assert project.run()["computed"]
    document = project.statistics.regions(KEY)
    assert document is not None
    return document


def test_boxes_are_compared_without_any_vote(tmp_path: Path) -> None:
    project = Project(tmp_path, config=CONFIG)
    give(project, annotation(1, 1, "3", [box(10.0)]), annotation(2, 1, "4", [box(12.0)]),  # IoU 18 / 22
         annotation(3, 2, "3", [box(10.0), box(60.0)]), annotation(4, 2, "4", [box(10.0)]),
         annotation(5, 3, "3", [box(10.0)]), annotation(6, 3, "5", [box(10.0, width=None)]),
         annotation(7, 4, "3", [box(10.0)]), annotation(8, 4, "4", [], skipped=True))
    document = found(project)
    boxes, shapes = document.controls["box"], document.controls["shape"]
    assert (boxes.tag, boxes.tasks, boxes.regions) == ("RectangleLabels", 3, 6)
    assert boxes.f1.value == pytest.approx((1.0 + 2 / 3 + 0.0) / 3) and boxes.exact == pytest.approx((2 / 3) / 3)
    assert boxes.f1.low is not None and 0.0 <= boxes.f1.low < 0.5
    assert boxes.iou == pytest.approx((18 / 22 + 1.0) / 2)
    assert [(pair.one, pair.other, pair.tasks) for pair in boxes.pairs] == [("3", "5", 1), ("3", "4", 2)]
    assert boxes.pairs[0].iou is None and document.unreadable == 1 and document.left_out == 0
    assert (shapes.tasks, shapes.f1.value, shapes.pairs) == (0, None, ())
    assert set(document.annotators) == {"3", "4", "5"}
    overview = project.statistics.overview(KEY)
    assert overview is not None and "regions that annotators drew are compared below" in overview.problem


def test_drawing_anew_and_deleting_are_seen(tmp_path: Path) -> None:
    project = Project(tmp_path, config=CONFIG)
    both = annotation(1, 1, "3", [box(10.0)]), annotation(2, 1, "4", [box(50.0)])
    give(project, *both)
    assert found(project).controls["box"].f1.value == 0.0
    assert not project.run()["computed"]
    again = annotation(3, 1, "4", [box(10.0)], minute=5)  # the newest of an annotator counts
    give(project, *both, again)
    assert found(project).controls["box"].exact == 1.0
    give(project, *both)
    assert found(project).controls["box"].f1.value == 0.0


def test_of_many_tasks_a_share_is_compared_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions_module, "MOST_TASKS", 2)
    project = Project(tmp_path, config=CONFIG)
    give(project, *(annotation(10 * task + who, task, str(who), [box(10.0)]) for task in range(5) for who in (3, 4)))
    document = found(project)
    assert (document.controls["box"].tasks, document.left_out) == (2, 3)


def test_where_nobody_draws_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    project.give(crowd(1, tasks=5)[0])
    monkeypatch.setattr(project.store.statistics, "annotations_made", None)  # raises where it is called
    assert project.run()["computed"] and project.statistics.regions(KEY) is None


def test_regions_are_compared_also_where_their_control_is_learned() -> None:
    (choices,) = parse_config('<View><Text name="t" value="$t"/><Choices name="c" toName="t"><Choice value="Car"/>'
                              '</Choices></View>').controls
    learned = replace(choices, name="box", tag="RectangleLabels")
    config = replace(parse_config(CONFIG), controls=(learned,), unmodelled=())
    assert draws(config)
    assert config.drawing == {"box": "RectangleLabels"}
    assert not draws(replace(config, controls=(choices,))) and not draws(None)
