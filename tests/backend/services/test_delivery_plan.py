"""What is next, what is open, what changed, what may be deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from backend.records import AnnotatorActivity, OwnPrediction
from backend.services import delivery_plan as plan
from model.data.spaces import Value
from model.data.votes import Vote, Votes

NOW = datetime(2026, 11, 28, tzinfo=UTC)
IDS = np.arange(1, 9, dtype=np.int64)


def voted(**tasks: list[int]) -> plan.Voted:
    return plan.Voted.of(Votes.from_votes(
        Vote(unit=str(task), annotator=name.removeprefix("a"), control=control, value=Value.of_class("x"))
        for name, ids in tasks.items() for task in ids for control in ("c", "d")
    ))


def own(task: int, annotator: str, version: str, digest: str = "d") -> OwnPrediction:
    return OwnPrediction(task_id=task, annotator=annotator, version=version, digest=digest)


def test_an_annotators_next_tasks_are_the_unvoted_ones_and_complete_ones_come_last() -> None:
    gaps = plan.next_gaps(IDS, voted(a1=[1, 3], a2=[3, 5]), ["1", "2", "9"], limit=4, wanted_votes=1)
    assert gaps == {"1": [2, 4, 6, 7], "2": [2, 4, 6, 7], "9": [2, 4, 6, 7]}
    gaps = plan.next_gaps(IDS, voted(a1=[1, 3], a2=[3, 5]), ["1", "2"], limit=99, wanted_votes=2)
    assert gaps == {"1": [2, 4, 5, 6, 7, 8], "2": [1, 2, 4, 6, 7, 8]}
    gaps = plan.next_gaps(IDS, voted(a1=[1, 3], a2=[3, 5]), ["2"], limit=99, wanted_votes=1)
    assert gaps == {"2": [2, 4, 6, 7, 8, 1]}


def test_nothing_is_next_without_tasks_or_with_a_limit_of_none() -> None:
    assert plan.next_gaps(IDS[:0], voted(), ["1"], limit=5, wanted_votes=1) == {"1": []}
    assert plan.next_gaps(IDS, voted(), ["1"], limit=0, wanted_votes=1) == {"1": []}


def test_a_task_is_open_while_somebody_active_has_not_voted() -> None:
    votes = voted(a1=[1, 2], a2=[2, 3], a3=[1, 2, 3])
    assert plan.open_tasks(IDS[:4], votes, ["1", "2"]) == [1, 3, 4]
    assert plan.open_tasks(IDS[:4], votes, []) == [1, 2, 3, 4]


def test_who_is_active() -> None:
    def who(name: str, days: float) -> AnnotatorActivity:
        return AnnotatorActivity(annotator=name, name=name, votes=1, last_vote=NOW - timedelta(days=days))

    activity = [who("1", 2), who("deleted:77", 0), who("2", 30), who("3", 14)]
    assert plan.active_annotators(activity, now=NOW, days=14) == ["1", "3"]


def test_the_digest_is_that_of_what_is_seen() -> None:
    region = {"id": "r", "from_name": "c", "to_name": "t", "value": {"choices": ["é"]}, "score": 0.81}
    first = plan.digest({"result": [region], "score": 0.81})
    assert plan.digest({"result": [{**region, "id": "other", "score": 0.79}], "score": 0.79}) == first
    assert plan.digest({"result": [{**region, "value": {"choices": ["b"]}}], "score": 0.81}) != first
    assert plan.digest({"result": [region], "score": 0.5}) != first
    assert len(first) == 32 and first != plan.PENDING


def test_digests_of_many_are_those_of_each() -> None:
    """What was noted by an earlier delivery has to be known again, whatever else was asked for in between."""
    digests = plan.Digests()
    for _ in range(2):
        for value in ({"choices": ["a"]}, {"choices": ["b"]}, {"rating": 1}, {"choices": []}):
            for score in (0.2, 0.52, 0.48):
                region = {"id": "r", "from_name": "c", "to_name": "t", "value": value, "score": score}
                prediction = {"result": [region], "score": score}
                assert digests.of(prediction) == plan.digest(prediction)
    assert plan.digest({"result": [], "score": 0.52}) == "bb327bd1b2d5accc366ee3c421b2f491"


@pytest.mark.parametrize(("entry", "fresh"), [
    (None, False),
    (own(1, "5", "r3"), True),
    (own(1, "5", "r3", "other"), False),
    (plan.pending(own(1, "5", "r3")), False),
    (own(1, "5", "r3", plan.UNKNOWN), False),
    (own(1, "5", "r2"), False),  # Label Studio has no such predictions any more
    (own(1, "5", "r1"), False),  # too deep: to be sent again, so that the version can go
])
def test_what_is_up_to_date(entry: OwnPrediction | None, fresh: bool) -> None:
    existing = {"annotator:5@r3": 4, "annotator:5@r1": 2, "annotator:5@r2": 0}
    assert plan.up_to_date(entry, own(1, "5", "r4"), existing, frozenset({"r4", "r3", "r2"})) is fresh


@pytest.mark.parametrize(("entry", "fresh"), [
    (own(1, "5", "r3"), True),
    (own(1, "5", "r3", "other"), True),  # a second one of the same version would lie beside it
    (own(1, "5", "r3", plan.UNKNOWN), True),
    (plan.pending(own(1, "5", "r3", "other")), False),
    (own(1, "5", "r2", "other"), False),
])
def test_within_a_version_nothing_is_replaced(entry: OwnPrediction, fresh: bool) -> None:
    existing = {"annotator:5@r3": 4, "annotator:5@r2": 2}
    assert plan.up_to_date(entry, own(1, "5", "r3"), existing, frozenset({"r3", "r2"})) is fresh
    assert plan.up_to_date(entry, own(1, "5", "r3"), {}, frozenset({"r3", "r2"})) is False


def test_what_is_noted_of_a_prediction_that_is_found_in_label_studio() -> None:
    sent, new = own(1, "5", "r3", "sent"), own(1, "5", "r3", "new")
    assert plan.found(plan.pending(sent), new) == sent
    assert plan.pending(plan.pending(sent)) == plan.pending(sent)
    for entry in (None, own(1, "5", "r2", "sent"), plan.pending(own(1, "5", "r2", "sent"))):
        assert plan.found(entry, new) == own(1, "5", "r3", plan.UNKNOWN)


def test_an_annotators_predictions_lie_under_a_few_versions() -> None:
    entries = [own(number, "5", f"r{number}") for number in (2, 9, 10, 7)]
    assert plan.kept_versions(entries, "r11") == {"r11", "r10", "r9"}
    assert plan.kept_versions([], "r1") == {"r1"}


def test_stale_versions_are_ours_older_and_unused_oldest_first() -> None:
    existing = [
        "consensus@r12", "consensus@r9", "consensus@r10", "annotator:5@r11", "annotator:5@r10", "annotator:15@r10",
        "annotator:5@r12", "annotator:5@r13", "somebody else", "consensus", "annotator:5", "my consensus@r1", "",
        "consensus@r" + "9" * 4500,  # any account can store a prediction under any name
    ]
    stale = plan.stale_versions(existing, target="r12", live=[own(1, "5", "r10"), own(2, "5", "r12")])
    assert stale == ["consensus@r9", "annotator:15@r10", "consensus@r10", "annotator:5@r11"]
