"""Pieces of a filled matrix."""

from __future__ import annotations

import json

from backend.report import filled


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
