"""`simulate` with the options of the paper, and `convert` between every pair of formats."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from backend.commands.simulate import STRATEGIES
from backend.formats import WHAT, open_dataset
from model.crowd.simulate import STRATEGIES as KNOWN
from tests.backend.commands.crowd import Shell
from tests.backend.formats.samples import rows

PAPER = (
    "--n-worker=10 --n-task=100 --n-classes=5 --strategy hammer-spammer --feedback=5 --seed=0",
    "--n-worker=30 --n-task=200 --n-classes=5 --strategy independent-confusion --feedback=10 --seed 0",
    "--n-worker=30 --n-task=200 --n-classes=5 --strategy independent-confusion --imbalance-votes --seed 0",
    "--n-worker=30 --n-task=200 --n-classes=5 --strategy student-teacher --ratio 0.8 --feedback=10 --seed 0",
    "--n-worker=100 --n-task=200 --n-classes=5 --strategy discrete-difficulty --ratio 0.35 --ratio-diff 1 "
    "--feedback 10",
)


@pytest.mark.parametrize("command", PAPER)
def test_the_commands_of_the_paper(shell: Shell, command: str) -> None:
    folder = shell.folder / "simus"
    shell("simulate", *command.split(), "--folder", folder)
    metadata = json.loads((folder / "metadata.json").read_text())
    answers = json.loads((folder / "answers.json").read_text())
    truth = np.load(folder / "ground_truth.npy")
    assert list(answers) == [str(i) for i in range(len(truth))]
    assert metadata["n_task"] == len(truth) and metadata["n_classes"] == 5 and metadata["seed"] == 0
    assert np.load(folder / "matrices.npy").shape == (metadata["n_workers"], 5, 5)
    assert len(metadata["roles"]) == metadata["n_workers"]
    if "--feedback" in command:
        assert {len(given) for given in answers.values()} == {metadata["feedback"]}
    assert open_dataset(folder).gold["label"] == {str(i): str(label) for i, label in enumerate(truth)}
    if "student" in command:
        pairs = np.load(folder / "student_teacher_association.npy")
        assert pairs.shape == (24, 2) and pairs[:, 1].max() < 6


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_and_the_same_seed(shell: Shell, strategy: str) -> None:
    for name in ("a", "b"):
        shell("simulate", "-s", strategy, "--n-task", "20", "-fb", "3", "--seed", "9", "--out", shell.folder / name)
    assert (shell.folder / "a/answers.json").read_text() == (shell.folder / "b/answers.json").read_text()


def test_strategies_are_those_of_the_model() -> None:
    assert list(STRATEGIES) == list(KNOWN)


def test_other_formats_and_own_matrices(shell: Shell) -> None:
    np.save(shell.folder / "m.npy", np.eye(3)[None, [1, 2, 0]].repeat(4, axis=0))
    shell("simulate", "-s", "independent-confusion", "--n-worker", "4", "-K", "3", "--matrix-file",
          shell.folder / "m.npy", "--to", "csv", "--out", shell.folder / "v.csv", "--skew", "1", "--missing", "0.2")
    assert "accuracy against gold 0.0000" in shell("aggregate", shell.folder / "v.csv", "-s", "MV")


@pytest.mark.parametrize(("options", "says"), [
    (["--ratio", "2"], "Ratio must lie between 0 and 1."), (["-wl", "1"], "cannot label 200 tasks"),
    (["--class-shares", "a,b"], "numbers with commas"), (["--seed", "-1"], "must not be negative"),
    (["--matrix-file", "junk"], "not a NumPy array"),
])
def test_impossible_wishes_are_sentences(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    shell.write("junk", "junk")
    monkeypatch.chdir(shell.folder)
    assert says in shell("simulate", *options, expect=1)
    assert not (shell.folder / "simulation").exists()


def test_convert_between_every_pair_of_formats(shell: Shell) -> None:
    start = shell.write("v.csv", "task,annotator,label\n17,305,é\n17,a@b.c,b\n9001,305,b\n")
    expected = rows(open_dataset(start).votes)
    for name in WHAT:
        shell("convert", start, shell.folder / f"from-{name}", "--to", name)
    for name, other in itertools.permutations(WHAT, 2):
        target = shell.folder / "target" / f"{name}-{other}"
        shown = shell("convert", shell.folder / f"from-{name}", target, "--to", other)
        assert shown == f"format={other} tasks=2 annotators=2 votes=3\n"
        assert rows(open_dataset(target).votes) == expected


def test_convert_guesses_tables_and_asks_for_the_rest(shell: Shell) -> None:
    start = shell.write("v.csv", "task,annotator,label\n1,a,x\n")
    for suffix in ("tsv", "parquet", "csv"):
        assert f"format={suffix} " in shell("convert", start, shell.folder / f"w.{suffix}")
    assert "Say with --to what w.json shall be" in shell("convert", start, shell.folder / "w.json", expect=1)
    shell("convert", start, start)  # onto itself
    assert start.read_text() == "task,annotator,label\n1,a,x\n"


def test_convert_points_controls_where_the_config_says(shell: Shell) -> None:
    start = shell.write("v.csv", "task,annotator,label,control\n1,5,good,mood\n")
    config = shell.write("c.xml", '<View><Text name="body" value="$text"/><Choices name="mood" toName="body">'
                         '<Choice value="good"/><Choice value="bad"/></Choices></View>')
    shell("convert", start, shell.folder / "x.json", "--to", "label-studio", "--label-config", config)
    region = json.loads((shell.folder / "x.json").read_text())[0]["annotations"][0]["result"][0]
    assert (region["from_name"], region["to_name"]) == ("mood", "body")
    shell("convert", shell.folder / "x.json", shell.folder / "y.csv", "--label-config", config)
    assert rows(open_dataset(shell.folder / "y.csv").votes) == rows(open_dataset(start).votes)
    broken = shell.write("b.xml", "<View>")
    shell("convert", start, shell.folder / "z.json", "--to", "label-studio", "--label-config", broken, expect=1)
