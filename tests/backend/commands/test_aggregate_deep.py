"""`aggregate-deep` from a file of votes with texts to a file of labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from backend.cli import main

KIND, RUDE = ("thank you so much", "please and thanks"), ("you fool", "shut up now")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty polite and rude texts, judged by three annotators of whom one is always wrong."""
    made = tmp_path / "crowd"
    made.mkdir()
    texts = [f"{(KIND if n % 2 else RUDE)[n // 2 % 2]} number {n}" for n in range(40)]
    tasks = [{"id": n, "data": {"text": text}} for n, text in enumerate(texts)]
    votes = [
        {"task": n, "annotator": who, "label": ["rude", "kind"][(n + (who == "c")) % 2]}
        for n in range(40) for who in "abc"
    ]
    (made / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    (made / "annotations.jsonl").write_text("\n".join(map(json.dumps, votes)))
    (made / "meta.json").write_text("{}")
    return made


def run(*arguments: str) -> int:
    return main(["aggregate-deep", *arguments])


@pytest.mark.parametrize("method", ["crowd-layer", "train-ds"])
def test_labels_are_written(folder: Path, capsys: pytest.CaptureFixture[str], method: str) -> None:
    out = folder.parent / "labels.csv"
    assert run(str(folder), "--method", method, "--out", str(out)) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["task"] for row in rows] == [str(n) for n in range(40)]
    right = sum(row["label"] == ["rude", "kind"][int(row["task"]) % 2] for row in rows)
    assert right >= 36 and all(0.5 <= float(row["confidence"]) <= 1 for row in rows)
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith(f"method={method} tasks=40 annotators=3 votes=120 seconds=")


def test_what_cannot_be_done_is_a_sentence(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(folder), "--method", "magic") == 1
    assert "No method is called 'magic'" in capsys.readouterr().err
    table = tmp_path / "votes.csv"
    table.write_text("task,annotator,label\n1,a,x\n2,a,y\n")
    assert run(str(table)) == 1
    assert "no texts" in capsys.readouterr().err
