"""The ranking benchmark: what its crowds are, what its baselines say, and the page that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import rankings
from benchmarks.rankings import Asked, by_places, crowd, interval, main, mean_loss, pairs_right, questions
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote

RANKS = {"a": 0, "b": 1, "c": 1}


def vote(unit: str, who: str, *buckets: str) -> Vote:
    return Vote(unit=unit, annotator=who, control="rank", value=Value(ValueKind.RANKING, tuple(map(tuple, buckets))))


def test_crowds_are_drawn_alike_each_time_and_differ_by_seed() -> None:
    assert crowd("tastes", 1) == crowd("tastes", 1) != crowd("tastes", 2)
    items = {item for each in crowd("answers", 1) for bucket in each.value.data for item in bucket}
    assert len(items) > 5 * rankings.TAUGHT  # new ones on each task


def test_questions_know_only_the_rankings_of_others_on_their_task() -> None:
    votes = [vote("1", "x", "a", "b"), vote("1", "y", "b", "a"), vote("1", "z", "ab"), vote("2", "x", "a", "b")]
    assert [each.known for each in questions(votes, known=False)] == [()] * 4
    asked = questions(votes, known=True)
    assert [each.annotator for each in asked] == ["x", "z", "x"]
    assert [[who for who, *_ in each.known] for each in asked] == [["y"], ["y"], []]


def test_figures_of_one_ranking() -> None:
    asked = [Asked(annotator="x", ranks=RANKS, known=())]
    assert mean_loss([np.zeros(3)], asked) == pytest.approx(np.log(3.0))  # a first, the others level
    assert pairs_right([np.array([3.0, 1.0, 2.0])], asked) == 1.0  # a tie in a ranking asks nothing
    assert pairs_right([np.array([1.0, 1.0, 2.0])], asked) == 0.25
    learned = [Value(ValueKind.RANKING, (("c",), ("b",)))]
    assert by_places(asked, learned)[0].tolist() == [-0.5, -0.75, -0.25]  # nothing is known of a
    assert by_places(asked, [])[0].tolist() == [-0.5] * 3
    assert interval(np.array([1.0, 3.0])) == pytest.approx((2.0, 12.706), abs=1e-3)


def test_it_runs_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rankings, "CROWDS", {"tastes": rankings.CROWDS["tastes"]})
    monkeypatch.setattr(rankings, "TASKS", 24)
    monkeypatch.setattr(rankings, "TAUGHT", 16)
    assert main(["--crowds", "1", "--out", str(tmp_path / "page.md")]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.count("| equal chances |") == 2 and page.count("| served |") == 2 and " of 1 (`gap`) crowds" in page
