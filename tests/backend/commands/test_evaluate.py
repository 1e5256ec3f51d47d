"""`evaluate` as a person runs it: results, pages and plots, going on, and sentences for what cannot be evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from backend.commands import evaluation_content
from tests.backend.commands.crowd import Shell
from tests.backend.encoders import WordHashEncoder

VOTES_ONLY = ("annotator-prior", "visible-majority", "dawid-skene")


def table(shell: Shell, rows: int = 40) -> Path:
    lines = ["task,annotator,label"]
    for task in range(rows):
        truth = task % 3 == 0
        lines += [f"t{task},{who},{'yes' if truth != (who == 'c' and task % 4 == 0) else 'no'}" for who in "abc"]
    return shell.write("votes.csv", "\n".join(lines) + "\n")


def test_votes_without_content(shell: Shell) -> None:
    out = shell.folder / "results.json"
    run = ("evaluate", table(shell), "--folds", "2", "--models", *VOTES_ONLY, "--drop", "0.4", "--out", out)
    shown = shell(*run)
    assert "unseen" in shown and "half-visible" in shown and "drop-40" in shown and "fits=8" in shown
    results = json.loads(out.read_text())
    assert results["settings"] == ["unseen", "half-visible", "drop-40"]
    figure = {row["model"]: row["mean"] for row in results["results"]
              if row["setting"] == "half-visible" and row["metric"] == "accuracy"}
    assert figure["dawid-skene"] > figure["annotator-prior"] + 0.1
    assert "## half-visible" in out.with_suffix(".md").read_text()
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "fits=0" in shell(*run)  # goes on with what is there
    assert "fits=4" in shell(*run, "--seeds", "2", "--models", "annotator-prior")
    assert "other votes or folds" in shell(*run[:2], "--folds", "4", *run[4:], expect=1)


def test_text_is_encoded_once(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shell.folder / "set"
    folder.mkdir()
    tasks = [{"id": str(n), "data": {"text": "good thing" if n % 2 else "bad thing", "n": n}} for n in range(30)]
    votes = [{"task": str(n), "annotator": who, "label": "up" if n % 2 else "down"} for n in range(30) for who in "ab"]
    for name, rows in (("tasks", tasks), ("annotations", votes)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "meta.json").write_text(json.dumps({"classes": ["down", "up"]}))
    encoder = WordHashEncoder()
    monkeypatch.setattr(evaluation_content, "text_encoder", lambda name, device: encoder)
    run = ("evaluate", folder, "--folds", "2", "--models", "pooled", "--visible", "--cells", shell.folder / "cells")
    shown = shell(*run)
    assert "pooled" in shown and "half-visible" not in shown
    assert " 1.000 " in shown  # content says it all
    assert list((shell.folder / "cells" / "tokens").glob("tokens-*.npy"))
    assert "no text in body" in shell(*run, "--text", "body", expect=1)


def test_several_controls_of_pictures_together(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shell.folder / "walks"
    (folder / "images").mkdir(parents=True)
    names = [f"{n:02}" for n in range(24)]
    for n, name in enumerate(names):
        (folder / "images" / f"{name}.png").write_bytes(b"lime" if n % 2 else b"grey" + bytes([n]))
    tasks = [{"id": name, "data": {"image": f"images/{name}.png"}} for name in names]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tasks))
    for control, shift in (("calm", 0), ("green", 1)):
        votes = [{"task": name, "annotator": who, "label": "high" if (n + shift) % 2 else "low"}
                 for n, name in enumerate(names) for who in "ab"]
        (folder / f"annotations_{control}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in votes))
    (folder / "meta.json").write_text(json.dumps({"classes": ["low", "high"], "label_level": "ordinal"}))

    class Colours:
        id, dim = "colours", 2

        def encode(self, images: list[bytes]) -> list[np.ndarray]:
            return [np.array([[data == b"lime", data != b"lime"]], np.float16) for data in images]

    monkeypatch.setattr(evaluation_content, "image_encoder", lambda name, device: Colours())
    out = shell.folder / "walks.json"
    run = ("evaluate", folder, "--folds", "2", "--models", "annotator-prior", "pooled", "--visible", "--out", out)
    assert "several controls (calm, green)" in shell(*run, expect=1)
    shown = shell(*run, "--controls")
    assert "mean of 2 controls: unseen" in shown and "calm: unseen" in shown and "fits=8" in shown
    results = json.loads(out.read_text())
    assert [each["name"] for each in results["controls"]] == ["calm", "green"]
    accuracy = {(row["control"], row["model"]): row["mean"] for row in results["results"]
                if row["metric"] == "accuracy"}
    assert accuracy["calm", "pooled"] == accuracy["green", "pooled"] == accuracy[None, "pooled"] == 1.0
    assert accuracy[None, "annotator-prior"] < 0.8
    page = out.with_suffix(".md").read_text()
    assert "mean of 2 controls" in page and ": green" in page and "MAE" in page
    assert "no control blue" in shell(*run, "--controls", "calm", "blue", expect=1)
    assert "choose --text or --image" in shell(*run, "--controls", "--text", "a", "--image", "b", expect=1)


@pytest.mark.parametrize(("options", "sentence"), [
    (("--models", "nonsense"), "There is no model nonsense; there are served, network, annotator-prior"),
    (("--folds", "1"), "at least two folds"),
    (("--folds", "500"), "40 tasks cannot be split into 500 folds"),
    (("--drop", "1.5"), "lie in [0, 1)"),
    (("--device", "cuda:77"), "The device cuda:77 cannot be used here"),
    (("--out", "x.csv"), "ends in .json"),
])
def test_wrong_wishes_get_a_sentence(shell: Shell, options: tuple[str, ...], sentence: str) -> None:
    usual = ("--models", "annotator-prior", "--cells", shell.folder / "cells")
    assert sentence in shell("evaluate", table(shell), *usual, *options, expect=1)


@pytest.mark.parametrize(("text", "sentence"), [
    ("task,annotator,label\n1,a,yes\n", "at least two tasks"),
    ("task,annotator,label,kind\n1,a,3.5,number\n2,a,4,number\n", "needs single classes or sets"),
])
def test_data_that_cannot_be_evaluated(shell: Shell, text: str, sentence: str) -> None:
    path = shell.write("votes.csv", text)
    run = ("evaluate", path, "--models", "annotator-prior", "--cells", shell.folder / "cells")
    assert sentence in shell(*run, expect=1)
