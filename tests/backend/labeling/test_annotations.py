from datetime import UTC, datetime, timedelta

import pytest

from backend.errors import ClientError
from backend.labeling import in_control_arm, read_task, task_in_control_arm
from model.data.spaces import Value
from model.data.votes import Provenance
from tests.backend.labeling.small_tasks import CONFIG, DAY, annotation, read, votes_of


def test_a_task_with_one_vote():
    snapshot = read(annotation())
    assert snapshot.task.id == 41 and snapshot.task.data == {"text": "hi"}
    assert snapshot.task.updated_at == DAY + timedelta(seconds=1)
    (kept,), (vote,) = snapshot.annotations, snapshot.votes
    assert (kept.id, kept.task_id, kept.annotator, kept.lead_time_s, kept.imported) == (9, 41, "5", 3.5, False)
    assert kept.created_at == datetime(2026, 5, 1, 11, 0, 0, 500_000, tzinfo=UTC) and kept.updated_at == DAY
    assert (vote.unit, vote.task_id, vote.annotation_id, vote.annotator, vote.control) == ("41", 41, 9, "5", "label")
    assert vote.value == Value.of_class("Positive") and vote.updated_at == DAY and vote.lead_time_s == 3.5
    assert vote.provenance is Provenance.MANUAL and not vote.shown and not vote.control_arm


@pytest.mark.parametrize(
    "changes",
    [
        {"was_cancelled": True},
        {"result": []},
        {"result": None},
        {"result": [{"from_name": "gone", "value": {"choices": ["x"]}}]},
        {"result": ["not a region", None]},
    ],
)
def test_skipped_and_empty_annotations_are_kept_but_give_no_vote(changes):
    snapshot = read(annotation(**changes))
    assert len(snapshot.annotations) == 1 and snapshot.votes == []


def test_drafts_and_predictions_give_no_vote():
    drafts = {"drafts": [annotation()], "predictions": [annotation() | {"model_version": "consensus@r1"}]}
    assert read(task=drafts).votes == []


@pytest.mark.parametrize(("completed_by", "annotator"), [
    (5, "5"), ({"id": 5, "email": "a@b"}, "5"), (None, "deleted:9"), ({}, "deleted:9"), (True, "deleted:9"),
    ("5", "5"), ("ann@example.org", "ann@example.org"), ({"email": "ann@example.org"}, "ann@example.org"),
    (5.0, "5"), ("", "deleted:9"), (float("nan"), "deleted:9"),
])
def test_the_annotator_is_an_id_or_a_user_or_gone(completed_by, annotator):
    (vote,) = votes_of(annotation(completed_by=completed_by))
    assert vote.annotator == annotator


def test_an_account_that_is_gone_keeps_the_last_id_known():
    gone = [annotation(completed_by=None), annotation(id=10, completed_by=None), annotation(id=11, completed_by=None)]
    votes = votes_of(*gone, known={9: "5", 10: "6"})
    assert [vote.annotator for vote in votes] == ["5", "6", "deleted:11"]
    assert votes_of(annotation(completed_by=7), known={9: "5"})[0].annotator == "7"


def test_a_label_that_left_the_config_is_a_vote_outside_the_space():
    snapshot = read(annotation("Mixed"))
    assert snapshot.annotations[0].result[0]["value"] == {"choices": ["Mixed"]}
    (vote,) = snapshot.votes
    assert vote.value == Value.of_class("Mixed") and not CONFIG.spaces()["label"].contains(vote.value)


def test_ground_truth_is_kept_and_changes_nothing():
    star, plain = read(annotation(ground_truth=True)), read(annotation())
    assert star.annotations[0].ground_truth and not plain.annotations[0].ground_truth
    assert star.votes == plain.votes


def test_someone_who_annotates_twice_gives_two_votes():
    votes = votes_of(annotation(), annotation("Negative", id=10))
    assert [vote.value.data for vote in votes] == ["Positive", "Negative"]


@pytest.mark.parametrize(
    ("shown_since", "shown"),
    [
        (None, False), (DAY + timedelta(seconds=121), False), (DAY + timedelta(seconds=119), True), (DAY, True),
        (DAY - timedelta(days=1), True),
    ],
)
def test_shown_is_whether_a_pre_annotation_may_have_been_there_before_the_vote_by_either_clock(shown_since, shown):
    (vote,) = votes_of(annotation(), shown_since=shown_since)
    assert vote.shown is shown


def test_the_control_arm_sees_nothing():
    (vote,) = votes_of(annotation(), percent=100, shown_since=DAY - timedelta(days=1))
    assert vote.control_arm and not vote.shown
    for who in range(200):
        (vote,) = votes_of(annotation(completed_by=who), percent=30, shown_since=DAY - timedelta(days=1))
        assert vote.control_arm is in_control_arm(1, 41, str(who), 30) is not vote.shown


def test_where_annotators_cannot_be_told_apart_whole_tasks_are_in_the_arm():
    for task_id in range(100):
        votes = votes_of(
            annotation(), annotation(id=10, completed_by=6), percent=30, task={"id": task_id}, whole_task_arm=True,
        )
        assert [vote.control_arm for vote in votes] == [task_in_control_arm(1, task_id, 30)] * 2


@pytest.mark.parametrize("origin", ["prediction", "prediction-changed"])
def test_whoever_took_a_pre_annotation_over_saw_one_whatever_was_withheld(origin):
    result = [annotation()["result"][0] | {"origin": origin}]
    (vote,) = votes_of(annotation(result=result), percent=100)
    assert vote.shown and not vote.control_arm


@pytest.mark.parametrize("raw", [{}, {"id": None}, {"id": "41"}, {"id": True}, {"id": 2**70}])
def test_a_task_without_an_id_is_refused(raw):
    with pytest.raises(ClientError, match="without an id"):
        read_task(CONFIG, raw, project_id=1, control_arm_percent=0, shown_since=None, known_annotators={})


def test_wrong_types_are_survived_and_what_can_be_read_is():
    odd = [None, 7, "x", {}, {"id": "9"}, annotation(id=10, lead_time="long", created_at=3, updated_at="yesterday")]
    snapshot = read(*odd, task={"data": None, "updated_at": None})
    (kept,) = snapshot.annotations
    assert kept.id == 10 and kept.lead_time_s is None and kept.updated_at.tzinfo is not None
    assert len(snapshot.votes) == 1 and snapshot.task.data == {}
    assert read(task={"annotations": {"id": 1}}).annotations == []


@pytest.mark.parametrize("time", ["2026-05-01T14:00:00+02:00", "2026-05-01T12:00:00", "2026-05-01T12:00:00.000000Z"])
def test_times_are_utc(time):
    (vote,) = votes_of(annotation(updated_at=time))
    assert vote.updated_at == DAY and vote.updated_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("lead_time", [float("nan"), float("inf"), -1, True])
def test_a_lead_time_that_is_none_is_left_out(lead_time):
    assert read(annotation(lead_time=lead_time)).annotations[0].lead_time_s is None
