"""Charts: well-formed, told to screen readers, without inline style, and harmless whatever a label holds."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from backend.report import charts
from backend.report.charts import Line, Part, Point
from backend.report.pages import heat

EVIL = "<script>alert(1)</script>\"'&"
CHARTS = {
    "bar": charts.bar(0.5, 0.4, 0.6), "empty bar": charts.bar(None), "shift": charts.shift(0.2, 0.4, most=0.4),
    "no shift": charts.shift(0.0, 0.0, most=0.0), "cells": charts.cells("gg..pp"),
    "stacked": charts.stacked([Part(EVIL, 3, "given"), Part("b", 0, "missing")], title=EVIL),
    "nothing stacked": charts.stacked([], title="x"),
    "columns": charts.columns([0, 3, 1], ["", EVIL, "2"], title=EVIL, axis=EVIL, tall=90),
    "no columns": charts.columns([], [], title="x", axis="y"),
    "lines": charts.lines([Line(EVIL, [0.1, None, 0.9], "accent")], [EVIL, "b", "c"], title=EVIL),
    "one step": charts.lines([Line("a", [0.5], "accent")], ["a"], title="x", shares=False),
    "no lines": charts.lines([], [], title="x"),
    "map": charts.scatter([Point(0.5, -1.0, EVIL, "strong"), Point(0.0, 0.0, "b")], title=EVIL, text=EVIL),
    "empty map": charts.scatter([], title="x", text="y"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_well_formed_and_told(name):
    root = ElementTree.fromstring(str(CHARTS[name]))
    assert root.tag == "svg" and root.get("width") == "100%" and int(root.get("height")) > 0
    told = root.get("role") == "img" and root.get("aria-label") and root.find("title") is not None
    assert told or root.get("aria-hidden") == "true"
    for each in root.iter():
        assert each.tag != "script" and not {"style", "onclick"} & set(each.attrib)
        for attribute in ("x", "cx", "x1", "x2", "width"):
            share = each.get(attribute, "0%")
            assert not share.endswith("%") or 0 <= float(share[:-1]) <= 100


def test_a_histogram_says_its_numbers():
    assert "1: 12, 2: 30" in charts.columns([12, 30], ["1", "2"], title="Tasks", axis="Annotators: tasks")


def test_bars_are_as_long_as_their_share():
    bar = ElementTree.fromstring(str(charts.bar(0.25)))
    assert [rect.get("width") for rect in bar.findall("rect")] == ["100%", "25%"]


def test_a_name_without_room_beside_its_dot_stands_above_or_below_it():
    points = [Point(-0.9, 0.0, "simulated.emil@example.com"), Point(-0.5, 0.02, "simulated.dora@example.com"),
              Point(1.0, 1.0, "c")]
    root = ElementTree.fromstring(str(charts.scatter(points, title="x", text="y")))
    assert {text.text for text in root.findall("text")} == {"simulated.emil", "simulated.dora", "c"}


def test_no_name_lies_upon_the_dot_of_another():
    points = [Point(-0.05, 0.0, "Nora Normal"), Point(0.0, 0.0, "Niko Normal"), Point(0.05, -0.02, "Nadia Normal"),
              Point(1.0, 1.0, "far")]
    root = ElementTree.fromstring(str(charts.scatter(points, title="x", text="y")))
    dots = [(float(dot.get("cx")[:-1]) / 100, float(dot.get("cy"))) for dot in root.findall("circle")]
    assert len(root.findall("text")) == 4
    for text in root.findall("text"):
        at, width, level = float(text.get("x")[:-1]) / 100, len(text.text) * 0.019, float(text.get("y")) - 4
        low, high = (at + 0.011, at + width) if "left" in text.get("class") else (at - width, at - 0.011)
        assert not [dot for dot in dots if low < dot[0] < high and abs(dot[1] - level) < 8], text.text


def test_names_on_the_map_do_not_lie_upon_each_other():
    points = [Point(0.0, 0.001 * place, f"annotator{place}@example.org") for place in range(20)]
    root = ElementTree.fromstring(str(charts.scatter(points, title="x", text="y")))
    assert len(root.findall("circle")) == 20
    for side in ("left", "right"):
        rows = sorted(float(text.get("y")) for text in root.findall("text") if text.get("class") == f"name {side}")
        assert rows and all(after - before > 15 for before, after in pairwise(rows))


def test_runs_of_the_matrix_are_drawn_as_one():
    root = ElementTree.fromstring(str(charts.cells("ggg..pp")))
    assert [rect.get("class") for rect in root.findall("rect")] == ["track", "given", "predicted"]


def test_heat_is_the_share_within_a_row():
    assert heat([[1.0, 3.0], [0.0, 0.0]]) == [[2, 8], [0, 0]]
