"""`agreement`: figures that can be checked by hand."""

from __future__ import annotations

import json

import pytest

from tests.backend.commands.crowd import Shell

FOUR = "task,annotator,label\n" + "".join(
    f"{task},{who},{label}\n" for who, labels in (("a", "1212"), ("b", "1211"), ("c", "12 2"))
    for task, label in enumerate(labels) if label != " ")


def test_figures_by_hand(shell: Shell) -> None:
    path = shell.write("v.csv", FOUR)
    shown = shell("agreement", path, "--out", shell.folder / "a.json")
    found = json.loads((shell.folder / "a.json").read_text())
    figures = {row["measure"]: row for row in found["overall"]}
    assert figures["percent agreement"]["value"] == pytest.approx(8 / 10)  # pairs: 3 + 3 + 1 + 1 of 10
    assert figures["percent agreement"]["low"] <= 0.8 <= figures["percent agreement"]["high"]
    assert figures["Fleiss kappa"]["low"] is None
    pair = next(row for row in found["pairs"] if (row["annotator"], row["other"]) == ("a", "b"))
    assert pair["common"] == 4 and pair["percent"] == 0.75 and pair["kappa"] == pytest.approx(0.5)
    assert [row["class"] for row in found["classes"]] == ["1", "2"]
    assert "Krippendorff alpha (nominal)" in shown and "Pairs of annotators, least agreeing first (3)" in shown


def test_levels_and_weights(shell: Shell) -> None:
    path = shell.write("v.csv", FOUR)
    assert "alpha (ordinal)" in shell("agreement", path, "--level", "ordinal", "--weights", "linear")
    assert "alpha (interval)" in shell("agreement", path, "--level", "interval")
    words = shell.write("w.csv", FOUR.replace(",1\n", ",x\n"))
    assert "classes that are numbers" in shell("agreement", words, "--level", "interval", expect=1)


def test_pairs_as_a_table_and_data_without_votes(shell: Shell) -> None:
    shell("agreement", shell.write("v.csv", FOUR), "--out", shell.folder / "p.csv")
    assert (shell.folder / "p.csv").read_text().startswith("annotator,other,common,percent,kappa\na,b,4,0.75,")
    assert "no rows with an annotator" in shell("agreement", shell.write("e.csv", "task,annotator,label\n"), expect=2)
    shell("agreement", shell.write("o.csv", "task,annotator,label\n1,a,x\n2,b,y\n"))


def _annotation(who: int, *spans: tuple[int, int], skipped: bool = False) -> dict[str, object]:
    result = [{"from_name": "ner", "to_name": "t", "type": "labels", "value": {"start": a, "end": b, "labels": ["P"]}}
              for a, b in spans]
    return {"id": 100 * who + len(spans), "completed_by": who, "was_cancelled": skipped, "result": result,
            "created_at": f"2026-11-28T00:00:0{len(spans)}Z"}


def test_regions_of_an_export(shell: Shell) -> None:
    tasks = [
        # the second annotator's newest annotation counts, the third skipped
        {"id": 1, "data": {}, "annotations": [_annotation(1, (0, 4), (8, 12)), _annotation(2), _annotation(2, (0, 4)),
                                              _annotation(3, (0, 4), skipped=True)]},
        {"id": 2, "data": {}, "annotations": [_annotation(1, (0, 4)), _annotation(2, (9, 5))]},
    ]
    path = shell.write("export.json", json.dumps(tasks))
    shown = shell("agreement", path, "--regions", "--out", shell.folder / "r.json")
    found = json.loads((shell.folder / "r.json").read_text())
    (overall,), (pair,) = found["overall"], found["pairs"]
    assert overall["control"] == "ner" and overall["tasks"] == 2 and overall["F1"] == pytest.approx((2 / 3 + 0) / 2)
    assert (pair["annotator"], pair["other"], pair["common"], pair["IoU"]) == ("1", "2", 2, 1.0)
    assert "Agreement on regions" in shown and "Regions that say no place: 1" in shell.err + shown
    shell("agreement", path, "--regions", "--out", shell.folder / "r.csv")
    assert (shell.folder / "r.csv").read_text().startswith("control,annotator,other,common,F1,exact F1,IoU\nner,1,2,2,")
    assert "has regions of Labels, RectangleLabels, PolygonLabels with the control x" in shell(
        "agreement", path, "--regions", "--control", "x", expect=1)
    assert "which is one file" in shell("agreement", shell.folder, "--regions", expect=1)
    assert "a task was expected" in shell("agreement", shell.write("e.json", "[3]"), "--regions", expect=1)
