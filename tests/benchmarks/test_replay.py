"""The story of a replay: when votes come, who stops, who begins, which class is new; and its report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.replay import HELDOUT, report, tell
from model.evaluate.problem import Problem, make_problem
from model.evaluate.token_file import no_content
from model.simulate import simulate_annotators


@pytest.fixture(scope="module")
def problem() -> Problem:
    made = simulate_annotators(np.random.default_rng(3), units=50, annotators=4, classes=("no", "maybe", "yes"))
    return make_problem("sample", made.votes, "label", made.space, no_content)


def test_one_stops_one_begins_and_a_class_is_new(problem: Problem) -> None:
    story = tell(problem, 0)
    who, early, comes = problem.votes.annotator, story.moment < 0.5, np.isfinite(story.moment)
    assert not story.timed and not (comes & story.test).any()
    assert len(set(problem.task[story.test])) == pytest.approx(HELDOUT * 50)
    assert set(who[early]) == {0, 1, 2, 3} - {story.newcomer}
    assert set(who[comes & ~early]) == {0, 1, 2, 3} - {story.stopped}
    new = problem.y[:, story.new_class] > 0.5
    assert not (early & new).any() and (comes & ~early & new).any()
    when = story.problem.votes.time
    assert when[early].max() < when[comes & ~early].min()  # what a training takes for new is what came last


def test_votes_with_times_come_in_their_order(problem: Problem) -> None:
    given = 1e9 + 60.0 * np.random.default_rng(0).permutation(len(problem.votes.time))
    drawn, timed = (
        tell(replace(problem, votes=replace(problem.votes, time=time)), 0) for time in (problem.votes.time, given)
    )
    np.testing.assert_array_equal(timed.test, drawn.test)
    first = np.full(problem.task.max() + 1, np.inf)
    np.minimum.at(first, problem.task, given)
    comes = np.isfinite(timed.moment)
    order = np.argsort(first[problem.task[comes]], kind="stable")
    assert timed.timed and (np.diff(timed.moment[comes][order]) >= 0.0).all()


def test_the_report_adds_up_what_was_spent_and_lost() -> None:
    def step(
        number: int, grown: float, gain: float, *, brief: bool = False, warm: bool = True
    ) -> dict[str, object]:
        part = {"incremental": {"accuracy": 0.5, "log_loss": 1.5}, "scratch": {"accuracy": 0.5, "log_loss": 1.0}}
        return {"step": number, "votes": 10, "brief": brief, "warm": warm, "stopped": part, "newcomer": part,
                "seconds": {"incremental": grown, "scratch": 10.0}, "new_class": part,
                "all": part | {"difference": [gain, gain - 0.01, gain + 0.01]}}

    run = {"dataset": "sample", "seed": 0, "timed": False, "new_class": False,
           "machine": {"made": "2026-11-28T19:38:45+00:00", "cores": 2, "machine": "x86_64"},
           "steps": [step(1, 10.0, 0.0, warm=False), step(2, 5.0, 0.01), step(3, 1.0, -0.03, brief=True),
                     step(4, 8.0, 0.05, warm=False)]}
    text = report([run])
    assert ("| sample | 0 | 3 (1, 1) | 14 | 30 | 0.47 | +1.0 | -1.0 | +0.500 | -3.0 [-4.0, -2.0] "
            "| -3.0 [-4.0, -2.0] | 0.10 | -3.0 |") in text
    assert "Made 2026-11-28 on 2 cores (x86_64). Votes come in a random order where a set has no times." in text
    assert "| 10 n |" in text and "| 10 b |" in text and "| 10 |" in text and "two classes" in text
