"""Regions of annotations: real ones are read, turned boxes become pixels, what says no place is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.labeling.regions import read_regions
from model.regions import iou

REAL = Path(__file__).parents[2] / "fixtures" / "label-studio"


def region(kind: str, value: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"from_name": "r", "to_name": "o", "type": kind, "value": value, **more}


@pytest.mark.parametrize(("name", "kind"), [("export_json_ner.json", "labels"),
                                            ("export_json_bbox.json", "rectanglelabels")])
def test_real_regions_are_read(name: str, kind: str) -> None:
    results = [each["result"] for task in json.loads((REAL / name).read_text()) for each in task["annotations"]]
    wanted = sum(item["type"] == kind for result in results for item in result)
    read = [read_regions(result) for result in results]
    assert sum(len(own) for each in read for own in each.of_control.values()) == wanted > 0
    assert not any(each.unreadable for each in read)


def test_boxes_are_pixels_where_the_size_is_known_and_turn_about_their_corner() -> None:
    value = {"x": 10, "y": 20, "width": 20, "height": 10, "rotation": 90, "rectanglelabels": ["Car"]}
    size = {"original_width": 200, "original_height": 400}
    (turned,) = read_regions([region("rectanglelabels", value, **size)]).of_control["r"]
    # from (20, 80), 40 pixels wide and 40 high; turned clockwise it lies to the left of its corner
    corners = np.array([(20, 80), (20, 120), (-20, 120), (-20, 80)])
    assert np.array(turned.outline) == pytest.approx(corners)
    upright = {**value, "x": -10, "rotation": 0}
    (other,) = read_regions([region("rectanglelabels", upright, **size)]).of_control["r"]
    assert iou(turned, other) == pytest.approx(1.0) and turned.labels == frozenset({"Car"})


def test_polygons_spans_and_the_part_they_lie_on() -> None:
    points = {"points": [[0, 0], [10, 0], [10, 10]], "polygonlabels": ["A"]}
    spans = [region("labels", {"start": 1.5, "end": 2, "labels": ["A"], "channel": at}) for at in (0, 1)]
    read = read_regions([region("polygonlabels", points), *spans]).of_control["r"]
    assert read[0].outline == ((0, 0), (10, 0), (10, 10)) and read[1].outline == ((1.5, 2),)
    assert len({each.where for each in read}) == 3


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("labels", {}), ("labels", {"start": 3, "end": 1}), ("labels", {"start": "0", "end": 2}), ("labels", None),
        ("labels", {"start": float("nan"), "end": 2}), ("rectanglelabels", {"x": 1, "y": 1, "width": -1, "height": 2}),
        ("rectanglelabels", {"x": 1, "y": 1, "width": 1, "height": float("inf")}),
        ("polygonlabels", {"points": [[0, 0], [1, 1]]}), ("polygonlabels", {"points": [[0, 0], [1, 1], ["a", 2]]}),
        ("polygonlabels", {"points": "abc"}), ("polygonlabels", {"points": [[0, 0], [1, 1], 5]}),
    ],
)
def test_what_says_no_place_is_counted(kind: str, value: Any) -> None:
    read = read_regions([region(kind, value)])
    assert read.of_control == {} and read.unreadable == 1


@pytest.mark.parametrize("item", [{}, {"type": ["labels"]}, {"type": "choices"}, {"type": "labels", "from_name": 3}])
def test_other_things_are_no_regions(item: dict[str, Any]) -> None:
    read = read_regions([item])
    assert read.of_control == {} and read.unreadable == 0
