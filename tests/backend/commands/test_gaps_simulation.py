"""`gaps --simulate` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.backend.commands.crowd import Shell


@pytest.fixture(scope="module")
def rows() -> str:
    """40 tasks with eight votes each; two of the annotators guess."""
    rng = np.random.default_rng(1)
    lines = ["task,annotator,label"]
    for task in range(40):
        right, guess = ("yes", "no") if task % 3 else ("no", "yes"), rng.integers(0, 2, 2)
        lines += [f"t{task},a{who},{right[0] if rng.random() < 0.9 else right[1]}" for who in range(6)]
        lines += [f"t{task},g{who},{'yes' if guess[who] else 'no'}" for who in range(2)]
    return "\n".join(lines) + "\n"


def test_policies_are_replayed_beside_two_baselines(shell: Shell, rows: str) -> None:
    table, out = shell.write("votes.csv", rows), shell.folder / "results.json"
    run = ("gaps", "--simulate", table, "--policies", "expected-change", "--seeds", "2", "--batches", "4")
    shown = shell(*run, "--out", out)
    assert "expected-change" in shown and "random" in shown and "beside uncertainty" in shown
    assert "tasks=40 annotators=8 votes=320 seeds=2" in shown
    results = json.loads(out.read_text())
    assert set(results["policies"]) == {"expected-change", "random", "uncertainty"}
    assert results["votes"] == [0, 30, 60, 90, 120]
    low, high = results["policies"]["expected-change"]["area"][1:]
    assert 0.5 < low < high < 1.0
    assert json.loads((shell(*run, "--budget", "8", "--out", out) and out).read_text())["votes"][-1] == 8


@pytest.mark.parametrize(("options", "sentence"), [
    (("--policies", "best"), "No policy is called best"), (("--seeds", "0"), "at least one seed"),
    (("--reference", "1"), "reference between 0 and 1"), (("--budget", "3"), "too few"),
    (("--out", "results.csv"), "--out takes"),
])
def test_sentences(shell: Shell, rows: str, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in shell("gaps", "--simulate", shell.write("votes.csv", rows), *options, expect=1)


def test_a_data_set_is_needed(shell: Shell) -> None:
    assert "--simulate" in shell("gaps", expect=1)
    assert "polyvox:" in shell("gaps", "--simulate", Path("nowhere.csv"), expect=1)
