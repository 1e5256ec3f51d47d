"""Other files of the kinds that `test_cases` has one of each."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.backend.commands.crowd import Shell
from tests.backend.commands.test_cases import CASES, CONTROLS, agreement, config, value

TIMES = [  # of the newer and the older annotation, the newer with the higher id
    ("2024-01-01T10:00:00Z", "2023-01-01T10:00:00Z"), (1700000000000, 1600000000000), ("1700000000", "1600000000"),
    ("garbage", "2024-01-01T10:00:00Z"), ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"), (None, None),
]


def annotation(number: int, who: object, label: object, time: object = None) -> dict[str, Any]:
    region = {"id": "c", "from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": [label]}}
    return {"id": number, "completed_by": who, "result": [region], "was_cancelled": False, "lead_time": 1,
            "created_at": time, "updated_at": time}


def flat(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"text": f"text {task['id']}", "id": task["id"], "c": each["result"][0]["value"]["choices"][0],
         "annotator": each["completed_by"], "annotation_id": each["id"], "created_at": each["created_at"],
         "updated_at": each["updated_at"], "lead_time": 1}
        for task in tasks for each in task["annotations"]
    ]


def as_csv(path: Path, rows: list[dict[str, Any]], delimiter: str = ",", spelled: Any = json.dumps) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, sorted({key for row in rows for key in row}), delimiter=delimiter)
        table.writeheader()
        for row in rows:
            table.writerow({key: spelled(each) if isinstance(each, list | dict) else each for key, each in row.items()})
    return path


@pytest.mark.parametrize("form", ["json", "min", "csv"])
def test_the_newer_annotation_counts_in_every_export(shell: Shell, form: str) -> None:
    tasks = [{"id": at, "data": {"text": "x"}, "annotations": [
        annotation(100 * at + 1, 1, "new", new), annotation(100 * at, 1, "old", old),
        annotation(100 * at + 2, 2, "new"),
    ]} for at, (new, old) in enumerate(TIMES, 1)]
    path = shell.write("t.json", json.dumps(tasks if form == "json" else flat(tasks)))
    if form == "csv":
        path = as_csv(shell.folder / "t.csv", flat(tasks))
    rows = agreement(shell, path)
    assert value(rows, "percent agreement") == 1.0 and value(rows, "votes") == 12 and list(rows["classes"]) == ["new"]


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("told", [True, False], ids=["config", "bare"])
@pytest.mark.parametrize(("name", "delimiter", "spelled"), [
    ("m.csv", ",", json.dumps), ("m.tsv", "\t", json.dumps), ("p.csv", ",", str)])
def test_csv_and_tsv_are_read_as_the_json_export(
    shell: Shell, control: str, told: bool, name: str, delimiter: str, spelled: Any
) -> None:
    folder = CASES / "json_min_all_controls"
    path = as_csv(shell.folder / name, json.loads((folder / "min.json").read_text()), delimiter, spelled)
    more = (*(config("json_min_all_controls") if told else ()), "--control", control)
    assert agreement(shell, path, *more) == agreement(shell, folder / "full.json", *more)


def test_words_need_a_stated_order(shell: Shell) -> None:
    words = [("Low", "Low", "Medium"), ("High", "High", "Medium"), ("Low", "Medium", "Low"), ("High", "Low", "High")]
    text = "task,annotator,label\n" + "".join(
        f"{task},{who},{label}\n" for task, row in enumerate(words) for who, label in zip("abc", row, strict=True))
    path = shell.write("w.csv", text)
    for option in (("--level", "ordinal"), ("--weights", "linear")):
        assert "--order High,Low,Medium" in shell("agreement", path, *option, expect=1)
    assert "lacks 1 classes of label: High" in shell("agreement", path, "--order", "Low,Medium", expect=1)
    numbers = shell.write("n.csv", text.replace("Low", "-1.5").replace("Medium", "0").replace("High", "10.0"))
    ordered = value(agreement(shell, path, "--order", "Low,Medium,High"), "Krippendorff alpha (ordinal)")
    assert ordered == value(agreement(shell, numbers, "--level", "ordinal"), "Krippendorff alpha (ordinal)")
    backwards = agreement(shell, path, "--order", '["High","Medium","Low"]')
    assert value(backwards, "Krippendorff alpha (ordinal)") == pytest.approx(ordered)


@pytest.mark.parametrize("weight", ["inf", "-inf", "nan", "-1", "1e308"])
@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_weights_that_are_none_are_named(shell: Shell, weight: str, form: str) -> None:
    path = shell.folder / f"w.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"task": [1, 2], "annotator": ["a", "a"], "label": ["x", "y"],
                                 "Weight": [1.0, float(weight)]}), path)
    else:
        mark = "," if form == "csv" else "\t"
        path.write_text("\n".join(mark.join(row) for row in (
            ("task", "annotator", "label", "Weight"), ("1", "a", "x", "1"), ("2", "a", "y", weight))) + "\n")
    said = shell("aggregate", path, expect=1)
    assert "its Weight must be finite and not negative" in said and ("row 2" in said or "line 3" in said)


@pytest.mark.parametrize("command", ["agreement", "aggregate", "identify"])
@pytest.mark.parametrize(("name", "text", "says"), [
    ("e.csv", "task,annotator,label\n", "no rows with an annotator"),
    ("n.csv", "task,annotator,label\n1,a,NaN\n1,b,1e999\n", "2 rows with an annotator, and none .*2 NaN or infinite"),
    ("l.csv", "task,annotator,label\n1,a,\n", "1 row with an annotator, and none .*1 without a label"),
    ("e.json", '[{"id": 1, "data": {}, "annotations": []}]', "has no annotations"),
    ("t.json", json.dumps([{"id": 1, "annotations": [{"id": 1, "completed_by": 1, "result": [
        {"from_name": "x", "to_name": "t", "type": "textarea", "value": {"text": ["hi"]}}]}]}]),
     "1 annotation, and none could be read as a vote: 1 with x"),
    ("m.json", json.dumps([{"text": "x", "id": 1, "r": [{"rating": float("nan")}], "annotator": 1,
                            "annotation_id": 1}]), "1 annotation, and none"),
])
def test_no_votes_are_told_with_exit_status_2(shell: Shell, command: str, name: str, text: str, says: str) -> None:
    import re

    assert re.search(says, shell(command, shell.write(name, text), expect=2))


def test_classes_that_look_alike_are_one_with_a_warning(shell: Shell) -> None:
    pairs: list[tuple[object, object]] = [("é", "e\u0301"), ("New York", "New\u00a0York"), ("Yes", "Yes "),
                                          ("\u200fYes", "Yes"), (1, "1.0"), (1.0, "1")]
    tasks = [{"id": at, "data": {}, "annotations": [annotation(10 * at, 1, one), annotation(10 * at + 1, 2, other)]}
             for at, (one, other) in enumerate(pairs, 1)]
    rows = agreement(shell, shell.write("a.json", json.dumps(tasks)))
    assert value(rows, "percent agreement") == 1.0 and set(rows["classes"]) == {"é", "New York", "Yes", "1"} - {"é"} | {
        name for name in rows["classes"] if name in ("é", "e\u0301")}
    assert shell.err.count("look alike and are read as one") == 4 and "<U+00A0>" in shell.err


def test_a_control_named_like_a_column_of_the_export(shell: Shell) -> None:
    xml = shell.write("c.xml", '<View><Text name="t" value="$text"/><Choices name="annotator" toName="t">'
                               '<Choice value="a"/><Choice value="b"/></Choices></View>')
    rows = [{"text": "x", "id": 1, "annotator": 1, "annotation_id": 1}]
    said = shell("agreement", shell.write("m.json", json.dumps(rows)), "--label-config", xml, expect=1)
    assert "annotator has the name of a column that Label Studio writes itself" in said and "JSON export" in said
