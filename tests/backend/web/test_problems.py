"""Problems: said when there is one, with its cure; silence otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backend.records import Job, JobKind, JobState, SyncState
from backend.routes import overview, problems
from backend.routes.problems import Workers
from backend.services.reading import waiting_note
from backend.settings import Settings
from tests.backend.web.conftest import CONFIG, NOW
from tests.backend.web.test_sentences import job

CONNECTED = {"label_studio_url": "http://ls", "label_studio_api_key": "k"}
LOGIN = {"basic_auth_user": "me", "basic_auth_pass": "p"}


@pytest.mark.parametrize("settings, words", [
    ({}, "set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY"),
    ({"label_studio_url": "http://ls"}, "set LABEL_STUDIO_API_KEY"),
    ({**CONNECTED, **LOGIN}, "Set POLYVOX_WEBHOOK_SECRET and POLYVOX_URL"),
    ({**CONNECTED, "webhook_secret": "s"}, "Set BASIC_AUTH_USER and BASIC_AUTH_PASS"),
    ({**CONNECTED, "control_arm_percent": 0}, "control arm is switched off"),
])
def test_of_the_set_up(settings, words):
    (said,) = problems.of_service(Settings(**settings), [], NOW, Workers())
    assert words in said


@pytest.mark.parametrize("settings", [CONNECTED, {**CONNECTED, **LOGIN, "webhook_secret": "s"}])
def test_a_whole_set_up_has_none(settings):
    assert problems.of_service(Settings(**settings), [], NOW, Workers()) == []


def reading(sync, jobs=(), workers=Workers(), connected=True):  # noqa: B008
    return problems.of_reading(sync, jobs, Settings(), NOW, workers, connected=connected)


def test_of_reading_label_studio():
    long_ago = SyncState(last_success=NOW - timedelta(minutes=26))
    assert "python -m backend worker" in reading(long_ago)[0] and "26 minutes ago" in reading(long_ago)[0]
    assert reading(long_ago, [job(JobKind.RECONCILE, JobState.RUNNING)]) == []
    assert reading(long_ago, connected=False) == [] == reading(long_ago, workers=Workers(stuck=True))
    (there,) = reading(long_ago, workers=Workers(embedded=True))
    assert "the job process is there and does not read: its log says why" in there and "backend worker" not in there
    waits = replace(job(JobKind.RECONCILE, JobState.RUNNING), note=waiting_note("GET /api/tasks", 27.0))
    (said,) = reading(long_ago, [waits])
    assert said.startswith("Label Studio has not finished its answer to GET /api/tasks for 25 s")
    assert reading(SyncState(last_success=NOW - timedelta(minutes=10))) == []
    assert reading(SyncState()) == []
    assert "failed 3 times in a row" in reading(SyncState(failures=3, last_error="Label Studio is down."))[0]


def test_a_failure_is_said_once():
    failed = [job(JobKind.SYNC, JobState.FAILED, error="Label Studio is down."),
              job(JobKind.TRAIN, JobState.FAILED, error="Too few votes.")]
    assert problems.of_jobs(failed, said="Label Studio is down.") == [
        "The last train job failed, at 2026-11-28 12:00:00 UTC: Too few votes."]


@pytest.mark.parametrize("xml, problem, note", [
    ("", "", ""),
    (CONFIG, "", ""),
    (CONFIG.replace("</View>", '<TextArea name="why" toName="text"/></View>'), "", "TextArea 'why'"),
    ("<View><Text", "cannot be read", ""),
    ('<View><Text name="t" value="$t"/><TextArea name="why" toName="t"/></View>', "can learn none of", ""),
    ('<View><Image name="i" value="$i"/><Choices name="c" toName="i"><Choice value="a"/><Choice value="b"/></Choices>'
     "</View>", "", ""),
    ('<View><Table name="i" value="$i"/><Choices name="c" toName="i"><Choice value="a"/><Choice value="b"/></Choices>'
     "</View>", "look at nothing that Polyvox reads", ""),
    ('<View><List name="l" value="$i"/><Ranker name="rank" toName="l"/></View>', "", "predicted from rankings alone"),
    ('<View><List name="l" value="$i"/><Ranker name="rank" toName="l"><Bucket name="b"/></Ranker></View>',
     "can learn none of", ""),
])
def test_of_the_labeling_configuration(xml, problem, note):
    found, notes = problems.of_config(xml)
    assert [problem in each for each in found] == [True] * bool(problem)
    assert [note in each for each in notes] == [True] * bool(note)


def test_interrupted_jobs_that_ended_are_named_however_they_ended() -> None:
    done = replace(job(JobKind.DELIVER, JobState.DONE), interrupted_at=NOW + timedelta(seconds=5))
    failed = replace(done, id="failed", state=JobState.FAILED, error="Disk full.")
    open_one, other = replace(done, state=JobState.RUNNING), replace(done, kind=JobKind.TRAIN)
    said = "The deliver job of 2026-11-28 12:00:00 UTC was interrupted at 2026-11-28 12:00:05 UTC and "
    assert problems.interruptions([]) == []
    assert problems.interruptions([open_one, done, failed]) == [
        f"{said}went through.", f"{said}failed in the end: Disk full."]
    assert problems.interruptions([done, failed], said=[failed]) == [f"{said}went through."]
    *named, train = problems.interruptions([*[done] * 5, other])
    assert len(named) == 4 and named[-1] == "2 more deliver jobs were interrupted lately." and "train job" in train


def test_a_job_whose_process_went_silent_waits_as_well() -> None:
    dead = replace(job(JobKind.TRAIN, JobState.RUNNING), lease_until=NOW)
    waits = replace(job(JobKind.SYNC, JobState.QUEUED), not_before=NOW)

    def found(*jobs: Job, after_s: float = 61, workers: Workers = Workers()) -> list[str]:  # noqa: B008
        return problems.of_service(Settings(**CONNECTED), jobs, NOW + timedelta(seconds=after_s), workers)

    assert found(dead, after_s=59) == found(dead, waits, after_s=59) == []
    for jobs in ((dead,), (waits,), (dead, waits)):
        assert "nothing runs them" in found(*jobs)[0]
        assert "the job process begins none" in found(*jobs, workers=Workers(embedded=True))[0]
        assert found(*jobs, workers=Workers(stuck=True)) == []  # the database is locked: that is the cause
    alive = replace(dead, lease_until=NOW + timedelta(seconds=90))
    assert found(alive, waits) == [] == found()


def test_a_redis_that_does_not_answer_is_named_where_there_should_be_one() -> None:
    assert problems.of_redis(Settings(), False) == []
    assert problems.of_redis(Settings(redis_url="redis://127.0.0.1:1/0"), True) == []
    assert "Redis does not answer" in problems.of_redis(Settings(redis_url="redis://127.0.0.1:1/0"), False)[0]
    assert not overview.redis_answers(Settings(redis_url="redis://127.0.0.1:1/0"))
    assert overview.redis_answers(Settings())
