"""CSV and TSV: header names, missing cells, and malformed files that name their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backend.formats import FormatError, open_dataset, open_votes
from tests.backend.formats.samples import rows


def write(tmp_path: Path, text: str | bytes, name: str = "votes.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("head", [
    "task,annotator,label", "Item,WORKER,Answer", "unit,rater_id,response", "x,label,worker,item"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_header_names_and_delimiters(tmp_path: Path, head: str, delimiter: str) -> None:
    names = head.split(",")
    cells = {"x": "?"} | dict.fromkeys(names, "") | {
        name: "l" if name.lower() in ("label", "answer", "response") else
        "u" if name.lower() in ("task", "item", "unit") else "a" for name in names if name != "x"}
    text = delimiter.join(names) + "\n" + delimiter.join(cells[name] for name in names) + "\n"
    assert rows(open_votes(write(tmp_path, text))) == [("u", "a", "label", "class", '"l"')]


def test_ids_stay_text_and_a_byte_order_mark_and_quoted_lines_do_no_harm(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbftask,annotator,label\r\n007,a@b.c,"two\r\nlines, ""quoted"""\r\n7,a@b.c,NA\r\n'
    votes = open_votes(write(tmp_path, text))
    assert votes.units == ("007", "7")
    assert {value.data for value in votes.values} == {'two\r\nlines, "quoted"', "NA"}


def test_a_task_without_a_label_stays_a_task(tmp_path: Path) -> None:
    votes = open_votes(write(tmp_path, "task,annotator,label\n1,a,x\n2,a,\n3,,\n"))
    assert votes.units == ("1", "2", "3") and len(votes) == 1


def test_times_weights_and_lead_times(tmp_path: Path) -> None:
    text = ("task,annotator,label,updated_at,weight,lead_time\n"
            "1,a,x,1970-01-01T00:01:00Z,0.5,3\n2,a,x,1970-01-01T01:00:00+01:00,,\n3,a,x,,2,4.5\n")
    dataset = open_dataset(write(tmp_path, text))
    assert dataset.votes.time.tolist() == [60.0, 0.0, 0.0]
    assert dataset.votes.weight.tolist() == [0.5, 1.0, 2.0]
    assert dataset.lead_time_s is not None
    np.testing.assert_equal(dataset.lead_time_s, [3.0, np.nan, 4.5])


def test_many_batches_are_one_table(tmp_path: Path) -> None:
    """More than one Arrow block, each with a dictionary of its own."""
    n = 300_000
    lines = [f"task-number-{i % 5000},annotator-{i % 97},label-{i % 3}" for i in range(n)]
    votes = open_votes(write(tmp_path, "task,annotator,label\n" + "\n".join(lines)))
    assert (len(votes), len(votes.units), len(votes.annotators), len(votes.values)) == (n, 5000, 97, 3)
    at = n - 7
    assert votes.units[votes.unit[at]] == f"task-number-{at % 5000}"
    assert votes.values[votes.value[at]].data == f"label-{at % 3}"


HEAD = "task,annotator,label"
QUOTED = f'{HEAD}\n1,a,"x\ny"\n'  # the first row takes two lines


@pytest.mark.parametrize(("text", "says"), [
    (f"{HEAD}\n1,a,x\n2,a\n", "line 3: it has 2 cells, the header has 3"),
    (f"{QUOTED}2,a,x,y\n", "line 4: it has 4 cells"),
    (f"{HEAD}\n1,a,x\n,a,x\n", "line 3: it has no task"),
    (f"{QUOTED}2,,x\n", "line 4: it has a label but no annotator"),
    (f"{HEAD},time\n1,a,x,5\n2,a,x,noon\n", "line 3: its time is no time in seconds"),
    (f"{HEAD},weight\n1,a,x,1\n2,a,x,-1\n", "line 3: its weight must be"),
    (f"{HEAD},weight\n1,a,x,much\n", "line 2: its weight is no number"),
    (f"{HEAD},gold\n1,a,x,x\n2,a,x,y\n1,b,x,y\n", "line [24]: its task has two different gold labels"),
    (f"{HEAD},kind\n1,a,x,class\n1,b,2,number\n2,a,x,number\n", "line 4: its label is not what its kind says"),
    (f"{HEAD},control\n1,a,x,m\n1,a,x,n\n2,a,x,\n", "line 4: it does not say for which control"),
    (f'{HEAD}\n1,a,x\n2,a,"x\n3,b,y\n', "line 3: a quoted cell does not end"),
    (b"task,annotator,label\n1,a,x\n2,a,\xff\n", "line 3: it is not UTF-8"),
    ("task,who,label\n1,a,x\n", r"no column for the annotator \(annotator, worker.*; its columns are task, who, label"),
    ("a,b\n1,2\n", "task .* and no column for the annotator"),
    ("", "is empty"),
    ("\n\n", "is empty"),
])
def test_a_malformed_file_names_the_line(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        open_votes(write(tmp_path, text))


def test_a_stray_quote_inside_a_cell_is_no_mistake(tmp_path: Path) -> None:
    votes = open_votes(write(tmp_path, f'{HEAD}\n1,a,5" disk\n2,a,x\n'))
    assert {value.data for value in votes.values} == {'5" disk', "x"}


def test_labels_are_never_quoted_in_errors(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        open_votes(write(tmp_path, f"{HEAD}\n1,a,x\nsecret words\n"))
    assert "secret" not in str(caught.value)


def test_a_broken_parquet_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not a complete Parquet file"):
        open_votes(write(tmp_path, b"PAR1 and no more"))
