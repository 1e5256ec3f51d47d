"""`identify`: planted faults are named, pruning says its rule and what it did, files hold all rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.backend.commands.crowd import Shell


def test_planted_faults_are_named(shell: Shell, simulated: Path) -> None:
    shown = shell("identify", simulated, "--top", "3", "--out", shell.folder / "i.json")
    assert "Annotators, lowest kappa first (12)" in shown and "Tasks, most surprising votes first (200)" in shown
    found = json.loads((shell.folder / "i.json").read_text())
    people = {row["annotator"]: row for row in found["annotators"]}
    assert people["10"]["fault"] == "inverter" and people["9"]["fault"] == "constant"
    assert people["8"]["fault"] is None and "a rule of their own" in people["8"]["says"]
    assert "faults: constant" not in shown and "9 (constant: one answer nearly always)" in shown
    assert [name for name in map(str, range(8)) if people[name]["fault"]] == []
    assert people["0"]["gold_accuracy"] > 0.7 > people["8"]["gold_accuracy"]
    assert people["0"]["spammer_score"] > people["8"]["spammer_score"]
    assert {"low", "high", "kappa", "trace", "glad_ability", "group"} <= set(people["0"])
    assert len(found["tasks"]) == 200
    assert {"entropy", "smoothed_entropy", "posterior_entropy", "surprise", "glad_difficulty", "gold"} <= set(
        found["tasks"][0])


def test_a_terminal_of_a_hundred_columns_holds_the_tables(
    shell: Shell, simulated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = shell("identify", simulated, "--top", "3")
    assert "annotator  votes  common_tasks  accuracy" in shown and "…" not in shown
    assert "columns in all: --out FILE writes them." in shown


def test_drift_and_speed_need_their_columns(shell: Shell, simulated: Path) -> None:
    shell("convert", simulated, shell.folder / "v.csv")
    lines = (shell.folder / "v.csv").read_text().splitlines()
    names = lines[0].split(",")
    drifter = {row[names.index("task")]: i for i, row in enumerate(csv.reader(lines[1:]))}
    assert len(drifter) == 200
    timed = [f"{lines[0]},time,lead_time"] + [
        f"{line},{i},{1 if line.split(',')[names.index('annotator')] == '3' else 8}"
        for i, line in enumerate(lines[1:], start=1)]
    path = shell.write("timed.csv", "\n".join(timed) + "\n")
    shell("identify", path, "--out", shell.folder / "i.json")
    people = {row["annotator"]: row for row in json.loads((shell.folder / "i.json").read_text())["annotators"]}
    assert people["3"]["median_s"] == 1.0 and people["3"]["relative_speed"] < 0.3
    assert 0 <= people["0"]["drift_p"] <= 1
    shell("identify", simulated, "--out", shell.folder / "j.json")
    assert "drift_p" not in json.loads((shell.folder / "j.json").read_text())["annotators"][0]


def test_repeats_show_consistency(shell: Shell) -> None:
    path = shell.write("v.csv", "task,annotator,label,time\n" + "".join(
        f"{i % 10},a{i % 3},{'x' if (i * 7) % 4 else 'y'},{i}\n" for i in range(90)))
    shell("identify", path, "--out", shell.folder / "i.json")
    row = json.loads((shell.folder / "i.json").read_text())["annotators"][0]
    assert 0 < row["self_consistency"] < 1


def test_prune_states_its_rule_and_shows_before_and_after(shell: Shell, simulated: Path) -> None:
    shown = shell("identify", simulated, "--prune", "--out", shell.folder / "i.json")
    assert "prune rule: kappa against the others: score below 0.1, with at least 10 votes" in shown
    pruned = json.loads((shell.folder / "i.json").read_text())["prune"]
    assert {"8", "9", "10"} <= set(pruned["dropped"]) and not set(pruned["dropped"]) & set("01234567")
    assert pruned["after"]["krippendorff_alpha"] > pruned["before"]["krippendorff_alpha"] + 0.1
    assert pruned["after"]["accuracy"] >= 0.95
    assert "krippendorff_alpha" in shown and "accuracy" in shown
    shell("identify", simulated, "--prune", "--share", "0.25", "--out", shell.folder / "i.json")
    assert len(json.loads((shell.folder / "i.json").read_text())["prune"]["dropped"]) == 3
    assert "needs" not in shell("identify", simulated, "--prune", "--below", "-2")


def test_tables_go_to_two_files(shell: Shell, simulated: Path) -> None:
    shell("identify", simulated, "--out", shell.folder / "i.csv")
    assert len((shell.folder / "i-annotators.csv").read_text().splitlines()) == 13
    assert len((shell.folder / "i-tasks.csv").read_text().splitlines()) == 201


def test_margins_from_a_training(shell: Shell, simulated: Path) -> None:
    truth = np.load(simulated / "ground_truth.npy")
    logits = np.eye(3)[truth][None] * np.array([1.0, 3.0])[:, None, None]
    logits[:, 7] = 0.0  # one task the classifier never learned
    np.savez(shell.folder / "run.npz", logits=logits[:, ::-1], tasks=np.arange(200)[::-1], classes=np.arange(3))
    shell("identify", simulated, "--logits", shell.folder / "run.npz", "--out", shell.folder / "i.json")
    tasks = json.loads((shell.folder / "i.json").read_text())["tasks"]
    worst = min(tasks, key=lambda row: abs(row["aum"]))
    assert worst["task"] == "7" and worst["aum"] == 0.0
    assert all("waum" in row for row in tasks)
    np.savez(shell.folder / "bad.npz", logits=logits, tasks=np.arange(200))
    assert "lacks classes" in shell("identify", simulated, "--logits", shell.folder / "bad.npz", expect=1)
    np.savez(shell.folder / "few.npz", logits=logits[:, :9], tasks=np.arange(9), classes=np.arange(3))
    assert "no logits for the task" in shell("identify", simulated, "--logits", shell.folder / "few.npz", expect=1)


@pytest.mark.parametrize(("options", "says"), [
    (["--below", "1"], "belong to --prune"), (["--prune", "--below", "1", "--share", "0.1"], "either"),
    (["--prune", "--share", "7"], "share"), (["-s", "majority"], "evidence"),
])
def test_mistakes_are_sentences(shell: Shell, options: list[str], says: str) -> None:
    path = shell.write("v.csv", "task,annotator,label\n1,a,x\n1,b,y\n")
    assert says in shell("identify", path, *options, expect=1)
    empty = shell.write("e.csv", "task,annotator,label\n")
    assert "there are no votes" in shell("identify", empty, expect=2)
