"""The seeded projects get the predictions, consensus, confidences, gaps and figures that were recorded (`record`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.backend.recorded.compare import Difference, differences, drift, matches
from tests.backend.recorded.intended import INTENDED
from tests.backend.recorded.record import PLAIN

HERE = Path(__file__).parent
EXACT = 1e-6
# Where the probe gives other bits (another architecture, or other builds of the libraries), searches for the least end
# elsewhere, and near ties fall otherwise. What that makes was measured on one processor with its kernels for AVX2 and
# for AVX512 against the plain ones: mean differences of probabilities of at most .009, of all other numbers of at most
# .079, both with numbers, whose bins move. Votes alone were the same to the last digit.
ELSEWHERE_PROBABILITIES, ELSEWHERE = 0.03, 0.15
EXACT_EVERYWHERE = "before the first version"


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is said today, by a process of its own: which kernels are used is decided when libraries are loaded."""
    out = tmp_path_factory.mktemp("recorded") / "now.json"
    made = subprocess.run([sys.executable, "-m", "tests.backend.recorded.record", str(out)], text=True, timeout=240,
                          cwd=HERE.parents[2], env={**os.environ, **PLAIN}, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads((HERE / "recorded.json").read_text())


def test_everything_is_said_as_it_was_recorded(now: Any, recorded: Any) -> None:
    same = now["probe"] == recorded["probe"]
    found = differences(recorded["projects"], now["projects"], within=EXACT)
    if same:
        new = [each for each in found if not any(matches(each.path, place) for place in INTENDED)]
        assert not new, _told(new)
        idle = [place for place in INTENDED if not any(matches(each.path, place) for each in found)]
        assert not idle, f"nothing differs there: {idle}"
        return
    moved = drift(recorded["projects"], now["projects"])
    far = {part: numbers for part, (numbers, _) in moved.items()
           if numbers > (EXACT if part.endswith(EXACT_EVERYWHERE) else ELSEWHERE_PROBABILITIES
                         if part.endswith("probabilities") else ELSEWHERE)}
    assert not far, f"on another kind of processor, these parts are too far off: {far}\n{_told(found)}"


def test_every_kind_of_project_is_predicted(recorded: Any) -> None:
    assert {"choices", "several choices", "rating", "number", "pairwise", "taxonomy", "ranker", "per region",
            "two controls", "visible when"} == set(recorded["projects"])
    for name, said in recorded["projects"].items():
        assert all(each["outcome"]["verdict"] == "published" for each in said["trainings"]), name
        assert said["predict"] and said["probabilities"] and said["delivered"] and said["statistics"], name
        assert any(len(versions) > 2 for versions in said["delivered"].values()), name


def test_small_differences_are_seen() -> None:
    one = {"p": [0.25, {"label": "A", "sure": None}], "n": "12.5", "known": True}
    assert differences(one, json.loads(json.dumps(one)), within=EXACT) == []
    other = {"p": [0.250002, {"label": "B", "sure": 0.1}], "n": "12.5000001", "known": 1, "more": []}
    assert [("/".join(each.path), each.now) for each in differences(one, other, within=EXACT)] == [
        ("known", 1), ("more", []), ("p/0", 0.250002), ("p/1/label", "B"), ("p/1/sure", 0.1)]
    assert matches(("a", "b", "c"), "a/*") and not matches(("a", "b"), "a/c") and not matches(("a",), "a/b")
    (part,) = drift({"x": {"y": [1.0, 4.0, "t"]}}, {"x": {"y": [1.5, 4.0, "u"]}}).items()
    assert part == ("x/y", (0.25, 1.0))


def _told(found: list[Difference]) -> str:
    parts = sorted({"/".join(each.path[:2]) for each in found})
    return "\n".join([f"{len(found)} differences, in {', '.join(parts)}", *map(str, found[:20])])
