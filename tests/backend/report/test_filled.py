"""Pieces of a filled matrix."""

from __future__ import annotations

import json

from backend.report import filled
from backend.report.names import Names
from backend.services.gaps.fill import FilledCell, FilledTask


def test_pieces_are_small_however_wide_the_rows_are(monkeypatch):
    monkeypatch.setattr(filled, "_CELLS", 12)
    for columns, rows in ((["a"], 12), (list("abcd"), 3), ([f"c{at}" for at in range(40)], 1)):
        records = [dict.fromkeys(columns, at) for at in range(25)]
        pieces = list(filled.delimited(columns, records))
        assert len(pieces) == 1 + -(-25 // rows) and "".join(pieces).count("\r\n") == 26
        pieces = list(filled.as_json({}, columns, records))
        assert len(pieces) == 2 + -(-25 // rows) and json.loads("".join(pieces))["rows"] == records


def test_complete_comes_last():
    made = json.loads("".join(filled.as_json({"project": 1}, ["task"], [{"task": 1}])))
    assert list(made)[-1] == "complete" and made["complete"] is True


def test_wide_columns_carry_names_and_ids_only_where_names_are_not_enough():
    people = ["3", "4", "5", "6"]
    names = Names({"3": "ada", "4": "bo", "5": "bo", "6": "consensus"}, mask=False)
    columns = filled.wide_columns(people, names)
    assert [name for name in columns if name.endswith(" label")] == [
        "ada label", "bo (4) label", "bo (5) label", "consensus (6) label"]
    cell = FilledCell(annotator="4", label="A", probability=0.75, source="predicted")
    task = FilledTask(task=9, cells=(cell,), consensus="A", confidence=0.9)
    (row,) = filled.wide_records([task], people, names, version="r1")
    assert list(row) == columns and row["bo (4) label"] == "A" and row["ada label"] is None
    masked = filled.wide_columns(people, Names(dict.fromkeys(people, "bo"), mask=True))
    assert "Annotator 2 label" in masked and not any("bo" in name for name in masked)
