"""Three rounds of chaos: during checkpoint writing, between import and select, and Label Studio in mid-import.

The long run is `python -m tests.chaos`; see docs/reliability.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos import report
from tests.chaos.checks import Subject, no_duplicates, votes_equal_annotations
from tests.chaos.moments import When
from tests.chaos.plan import CASES, Round, plan
from tests.chaos.rounds import play, project
from tests.chaos.world import Setup, Victim, world

ROUNDS = plan(3, 11, [Setup.EMBEDDED])


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    with world(Setup.EMBEDDED, tmp_path_factory.mktemp("chaos")) as running:
        yield project(running)


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("this", ROUNDS, ids=lambda this: f"{this.victim} {this.when}")
def test_everything_comes_right_again(subject: Subject, this: Round, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = play(subject, this)
    with capsys.disabled():
        print("\n" + report.line(outcome))
    assert not outcome.failures, outcome.failures


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_the_checks_can_fail(subject: Subject) -> None:
    """A vote that Label Studio does not have, one that the store does not have, and a prediction that lies twice."""
    owner = subject.world.label_studio.owner
    tasks = owner.tasks(subject.number, fields="all")
    assert not votes_equal_annotations(subject, tasks) and not no_duplicates(subject, tasks)
    voted = next(task for task in tasks if task["annotations"])
    lost = {**voted, "annotations": []}
    others = [task for task in tasks if task is not voted]
    assert "too many" in votes_equal_annotations(subject, [*others, lost])[0]
    strange = {**voted["annotations"][0], "id": 10**9, "completed_by": 10**9}
    more = {**voted, "annotations": [*voted["annotations"], strange]}
    assert "missing" in votes_equal_annotations(subject, [*others, more])[0]
    predicted = next(task for task in tasks if task["predictions"])
    twice = {**predicted, "predictions": predicted["predictions"] * 2}
    assert no_duplicates(subject, [twice])


def test_short_runs_have_the_moments_that_matter() -> None:
    assert {each.when for each in ROUNDS} == {When.CHECKPOINT, When.SELECT, When.IMPORT}
    assert plan(20, 3, list(Setup)) == plan(20, 3, list(Setup)) != plan(20, 4, list(Setup))


def test_a_long_run_kills_everything_and_hits_every_moment() -> None:
    rounds = plan(20, 3, list(Setup))
    assert {each.setup for each in rounds} == set(Setup) and len(rounds) == 20
    assert {each.victim for each in rounds} == set(Victim)
    assert {each.when for each in rounds} == set(When)
    assert all(len(set(cases)) == len(cases) for cases in CASES.values())
