"""`aggregate`: the file it writes, the line it ends with, and every kind of answer."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from backend.commands.methods import METHODS, PEERANNOT_NAMES, make_method
from backend.errors import ClientError
from model.crowd import AGGREGATORS
from tests.backend.commands.crowd import LAST_LINE, Shell


def last(text: str) -> dict[str, str]:
    line = text.rstrip("\n").split("\n")[-1]
    assert LAST_LINE.fullmatch(line), line
    return dict(part.split("=", 1) for part in line.split(" "))


def test_writes_labels_with_confidences_and_sums_up(shell: Shell, simulated: Path) -> None:
    out = shell.folder / "labels.csv"
    shown = shell("aggregate", simulated, "--method", "dawid-skene", "--out", out)
    summary = last(shown)
    assert (summary["method"], summary["tasks"], summary["annotators"], summary["votes"]) == (
        "dawid-skene", "200", "12", "2400")
    assert summary["converged"] == "true" and int(summary["iterations"]) > 1
    lines = out.read_text().splitlines()
    assert lines[0] == "task,label,confidence" and len(lines) == 201
    rows = list(csv.DictReader(lines))
    assert [row["task"] for row in rows] == [str(i) for i in range(200)]  # numbers by value
    assert all(0.3 < float(row["confidence"]) <= 1 for row in rows)
    share = float(shown.split("accuracy against gold ")[1].split(" ")[0])
    assert share > 0.95 and "200 tasks have gold" in shown


@pytest.mark.parametrize("suffix", ["tsv", "parquet", "json"])
def test_other_outputs_hold_the_same(shell: Shell, simulated: Path, suffix: str) -> None:
    shell("aggregate", simulated, "--out", shell.folder / "a.csv")
    shell("aggregate", simulated, "--out", shell.folder / f"a.{suffix}")
    expected = [(row["task"], row["label"]) for row in csv.DictReader((shell.folder / "a.csv").open())]
    if suffix == "json":
        found = [(row["task"], row["label"]) for row in json.loads((shell.folder / "a.json").read_text())]
    elif suffix == "tsv":
        table = csv.DictReader((shell.folder / "a.tsv").open(), delimiter="\t")
        found = [(row["task"], row["label"]) for row in table]
    else:
        import pyarrow.parquet as pq

        found = [(row["task"], row["label"]) for row in pq.read_table(shell.folder / "a.parquet").to_pylist()]
    assert found == expected


def test_without_out_the_first_tasks_are_shown(shell: Shell, simulated: Path) -> None:
    shown = shell("aggregate", simulated, "-s", "MV")
    assert "180 more tasks" in shown and last(shown)["method"] == "majority"


def test_a_task_without_votes_stays_without_label_and_markup_is_text(shell: Shell) -> None:
    path = shell.write("v.csv", "task,annotator,label\n[red]1,a@b.c,[bold]x\n2,,\n")
    shown = shell("aggregate", path, "--out", shell.folder / "l.csv")
    assert last(shown)["tasks"] == "2"
    assert (shell.folder / "l.csv").read_text().splitlines()[1:] == ["2,,", "[red]1,[bold]x,1"]
    assert "[bold]x" in shell("aggregate", path)


def test_abstaining_methods_leave_tasks_open(shell: Shell) -> None:
    path = shell.write("v.csv", "task,annotator,label\n1,a,x\n1,b,x\n2,a,x\n2,b,y\n")
    shell("aggregate", path, "-s", "TwoThird", "--out", shell.folder / "l.csv")
    assert (shell.folder / "l.csv").read_text().splitlines()[1:] == ["1,x,1", "2,,"]


def test_gold_may_teach_the_method(shell: Shell, simulated: Path) -> None:
    shell("aggregate", simulated, "--use-gold", "--out", shell.folder / "l.json")
    assert "accuracy" not in shell.out
    assert {row["confidence"] for row in json.loads((shell.folder / "l.json").read_text())} == {1.0}


def test_sets_and_numbers(shell: Shell) -> None:
    sets = shell.write("annotations.jsonl", "".join(
        json.dumps({"task": i % 4, "annotator": f"a{i % 3}", "label": ["x", "y"] if i % 4 else ["z"]}) + "\n"
        for i in range(12)))
    shown = shell("aggregate", sets, "--out", shell.folder / "l.json")
    assert last(shown)["method"] == "multi-label-dawid-skene"
    assert {row["label"] for row in json.loads((shell.folder / "l.json").read_text())} == {'["x", "y"]', '["z"]'}
    numbers = shell.write("n.csv", "task,annotator,label,kind\n" + "".join(
        f"{i % 5},a{i % 4},{i % 5 + 0.5},number\n" for i in range(20)))
    shown = shell("aggregate", numbers, "--out", shell.folder / "n.csv.out.csv")
    assert last(shown)["method"] == "robust-numbers"
    table = list(csv.DictReader((shell.folder / "n.csv.out.csv").open()))
    assert [float(row["label"]) for row in table] == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5], abs=0.01)
    assert all(0 < float(row["sd"]) < 0.1 for row in table)
    assert "robust-numbers" in shell("aggregate", numbers, "-s", "glad", expect=1)


def test_probabilities_of_a_model(shell: Shell) -> None:
    votes = shell.write("v.csv", "task,annotator,label\n" + "".join(
        f"{i},a{j},{'x' if i % 2 else 'y'}\n" for i in range(6) for j in range(3)))
    assert "--probabilities" in shell("aggregate", votes, "-s", "crowdlab", expect=1)
    model = shell.write("p.csv", "task,y,x\n" + "".join(f"{i},{0.9 - 0.8 * (i % 2)},{0.1 + 0.8 * (i % 2)}\n"
                                                        for i in reversed(range(6))))
    shown = shell("aggregate", votes, "-s", "crowdlab", "--probabilities", model, "--out", shell.folder / "l.csv")
    assert last(shown)["method"] == "crowdlab"
    labels = [row["label"] for row in csv.DictReader((shell.folder / "l.csv").open())]
    assert labels == ["y", "x"] * 3
    half = shell.write("h.csv", "task,y,x\n1,0.5,0.5\n")
    assert "no row for 5 of the tasks" in shell("aggregate", votes, "-s", "crowdlab", "--probabilities", half, expect=1)
    assert "no column x; it has task, y" in shell(
        "aggregate", votes, "-s", "crowdlab", "--probabilities", shell.write("b.csv", "task,y\n1,1\n"), expect=1)


@pytest.mark.parametrize(("argv", "says"), [
    (["nowhere"], "There is no file or folder nowhere."),
    (["v.csv", "-s", "best"], "No aggregator is called 'best'; there are crowdlab, dawid-skene"),
    (["v.csv", "--set", "depth=3"], "dawid-skene has no setting depth; it has smoothing"),
    (["v.csv", "--set", "max_iter=many"], "max_iter takes a value of type int"),
    (["v.csv", "--set", "assignment=wild"], "assignment takes soft or hard or hybrid"),
    (["v.csv", "-s", "kos"], "Kos is for two classes; this control has 3."),
    (["v.csv", "--control", "mood"], "There is no control mood; there is label."),
    (["v.csv", "--out", "labels.xls"], "--out takes a name that ends in .csv, .tsv, .parquet, .json."),
    (["v.csv", "--format", "parquet"], "v.csv is not a complete Parquet file."),
    (["v.csv", "--format", "peerannot"], "v.csv, line 1: an object was expected."),
    (["bad.csv"], "bad.csv, line 3: it has 2 cells, the header has 3."),
])
def test_mistakes_are_sentences(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, argv: list[str], says: str
) -> None:
    shell.write("v.csv", "task,annotator,label\n1,a,x\n1,b,y\n2,a,z\n")
    shell.write("bad.csv", "task,annotator,label\n1,a,x\n1,b\n")
    monkeypatch.chdir(shell.folder)
    error = shell("aggregate", *argv, expect=1)
    assert error.startswith("polyvox: ") and says in error and error.count("\n") == 1


def test_method_names_are_those_of_the_registry() -> None:
    assert set(METHODS) == set(AGGREGATORS) and set(PEERANNOT_NAMES.values()) <= set(AGGREGATORS)
    for name in ("MV", "NaiveSoft", "DS", "GLAD", "DSWC[L=5]", "WDS", "IWMV", "Wawa", "TwoThird", "PlantNet"):
        make_method(name)
    assert make_method("DSWC[L=7]").n_clusters == 7  # type: ignore[attr-defined]
    assert make_method("dswc", ["n_clusters=none"]).n_clusters is None  # type: ignore[attr-defined]
    with pytest.raises(ClientError):
        make_method("DSWC[L=x]")
