"""The whole loop in one process: webhook -> dirty -> read -> trained -> judged -> published -> delivered, and again.

Real store, real ladder, real triggers and jobs; Label Studio is the small one in memory and the encoder knows words
only. Time is in the test's hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient

from backend.app import create_app
from backend.bootstrap import Services, build_services
from backend.commands.predict import predictions as say
from backend.errors import LabelStudioError, NotFound
from backend.jobs import run_job
from backend.records import DeliveryStep, Job, JobKind, JobState, Verdict
from backend.settings import Settings
from model.data.splits import is_heldout
from tests.backend.encoders import WordHashEncoder
from tests.backend.fakes import FakeLabelStudio

FILLERS = ("report", "file", "meeting", "table", "number", "office", "answer", "letter")
KIND, RUDE = 5, 6  # annotators: what one calls A, the other calls B
TASKS = 60


class Loop:
    """A Label Studio, a Polyvox, and the hand that moves the clock."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now = datetime(2026, 11, 27, 13, tzinfo=UTC)
        self.label_studio = FakeLabelStudio()
        self.label_studio.accounts = {str(KIND): "kind@example.org", str(RUDE): "rude@example.org"}
        self.number = self.label_studio.add_project(title="Politeness")
        self.key = self.label_studio.key(self.number)
        generator = np.random.default_rng(3)
        self.tasks = {
            self.label_studio.add_task(self.number, text=text): text
            for text in (" ".join([*generator.choice(FILLERS, 3), word]) for word in ("please", "hurry") * (TASKS // 2))
        }
        chosen = Settings(**{
            "data_dir": folder, "label_studio_url": "http://label-studio", "label_studio_api_key": "key",
            "control_arm_percent": 0.0, **settings,
        })
        self.services: Services = build_services(
            chosen, label_studio=self.label_studio, encoder=WordHashEncoder(), clock=lambda: self.now,
            seconds=lambda: self.now.timestamp())
        self.client: FlaskClient = create_app(self.services).test_client()

    def setup(self) -> str:
        body = {"project": self.key, "schema": self.label_studio.projects[self.number]["label_config"]}
        answer = self.client.post("/setup", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json["model_version"]) if answer.json else ""

    def annotate(self, task: int, annotator: int, label: str) -> None:
        """Label a task; Label Studio sends its webhook."""
        number = self.label_studio.annotate(task, annotator, label)
        self._send("ANNOTATION_CREATED", task, number)

    def change(self, task: int, annotator: int, label: str) -> None:
        mine = [each for each in self.label_studio.tasks[task]["annotations"] if each["completed_by"] == annotator]
        self.label_studio.change(mine[0]["id"], label)
        self._send("ANNOTATION_UPDATED", task, mine[0]["id"])

    def _send(self, action: str, task: int, annotation: int) -> None:
        about = self.label_studio.projects[self.number]
        project = {name: about[name] for name in ("id", "title", "created_at", "label_config")}
        about_annotation = {"id": annotation, "task": task}
        body = {"action": action, "project": project, "task": {"id": task}, "annotation": about_annotation}
        assert self.client.post("/webhook", json=body).status_code in (200, 201)

    def opinion(self, task: int, annotator: int) -> str:
        """KIND calls "please" A and "hurry" B; RUDE says the opposite."""
        return "A" if ("please" in self.tasks[task]) is (annotator == KIND) else "B"

    def label(self, tasks: list[int]) -> None:
        for task in tasks:
            for annotator in (KIND, RUDE):
                self.annotate(task, annotator, self.opinion(task, annotator))

    def work(self, *, forward_s: float = 1.0) -> list[Job]:
        """What a job process does from now on until nothing is due; returns the ended jobs in order."""
        ended = []
        self.now += timedelta(seconds=forward_s)
        for _ in range(100):
            self.services.triggers.tick()
            self.now += timedelta(seconds=1)
            job = self.services.store.jobs.claim("test", lease_s=3600)
            if job is None:
                return ended
            run_job(self.services, job, owner="test")
            now = self.services.store.jobs.get(job.id)
            assert now is not None
            ended.append(now)
        raise AssertionError("there is always something to do")

    def newest_own(self, annotator: int) -> dict[int, str]:
        """task -> the label that the middleware would show this annotator."""
        mine = [each for each in self.label_studio.predictions
                if each["model_version"].partition("@")[0] == f"annotator:{annotator}"]
        return {each["task"]: each["result"][0]["value"]["choices"][0] for each in mine}

    def verdicts(self) -> list[tuple[str, Verdict]]:
        return [(each.name, each.verdict) for each in self.services.store.versions.recent(self.key)][::-1]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path)
    yield loop
    loop.services.close()


def kinds(jobs: list[Job]) -> list[JobKind]:
    assert all(job.state is JobState.DONE for job in jobs), [(job.kind, job.error) for job in jobs]
    return [job.kind for job in jobs]


def test_from_webhook_to_two_different_pre_annotations_and_on(loop: Loop) -> None:
    store, ids = loop.services.store, list(loop.tasks)
    assert loop.setup() == "consensus@r0"
    done = kinds(loop.work())
    assert JobKind.RECONCILE in done
    assert store.tasks.count(loop.key) == TASKS
    assert JobKind.STATISTICS in done + kinds(loop.work())  # at once on a slow machine, where their delay is over
    loop.work()
    assert loop.work() == []

    # Votes come in; the webhook marks, a job reads, a version is trained, judged, published, delivered.
    loop.label(ids[:40])
    assert store.tasks.dirty_count(loop.key) == 40
    jobs = kinds(loop.work())
    beside = (JobKind.ENCODE, JobKind.STATISTICS)
    assert [kind for kind in jobs if kind not in beside][:3] == [JobKind.SYNC, JobKind.TRAIN, JobKind.DELIVER]
    assert store.tasks.dirty_count(loop.key) == 0
    assert store.votes.counts(loop.key).total == 80
    assert loop.verdicts() == [("r1", Verdict.PUBLISHED)]
    assert loop.setup() == "consensus@r1"

    # Delivered: each annotator their own label on tasks that nobody has seen, the consensus is selected.
    kind, rude = loop.newest_own(KIND), loop.newest_own(RUDE)
    unseen = ids[40:]
    assert set(kind) == set(rude) == set(unseen)
    assert np.mean([kind[task] == loop.opinion(task, KIND) for task in unseen]) > 0.9
    assert np.mean([kind[task] != rude[task] for task in unseen]) > 0.9
    assert loop.label_studio.selected_version(loop.number) == "consensus@r1"
    delivery = store.deliveries.latest(loop.key)
    assert delivery is not None and delivery.step is DeliveryStep.DONE

    # /predict says the same to whoever waits, consensus last.
    task = {"id": unseen[0], "data": {"text": loop.tasks[unseen[0]]}, "annotations": []}
    config = loop.label_studio.projects[loop.number]["label_config"]
    answer = loop.client.post("/predict", json={"tasks": [task], "project": loop.key, "label_config": config})
    assert answer.json is not None
    (predictions,) = answer.json["results"]
    shown = predictions if isinstance(predictions, list) else [predictions]
    assert [each["model_version"] for each in shown][-1] == "consensus@r1"
    assert {each["model_version"] for each in shown[:-1]} == {f"annotator:{KIND}@r1", f"annotator:{RUDE}@r1"}

    # `python -m backend predict` says it to people, with the vote of whoever gave one.
    project = store.projects.get(loop.key)
    assert project is not None
    rows = {(row["task"], row["annotator"]): row for row in say(loop.services, project, [unseen[0], ids[0]])}
    assert rows[unseen[0], str(KIND)]["predicted"] == kind[unseen[0]]
    assert rows[unseen[0], str(RUDE)]["predicted"] == rude[unseen[0]]
    assert rows[unseen[0], str(RUDE)]["vote"] is None
    assert rows[ids[0], str(RUDE)]["vote"] == loop.opinion(ids[0], RUDE)
    assert sum(rows[unseen[0], "consensus"]["probabilities"].values()) == pytest.approx(1.0, abs=0.01)
    with pytest.raises(NotFound, match="no task 999"):
        say(loop.services, project, [999])

    # More votes: the next version.
    loop.label(ids[40:50])
    loop.work()
    assert [name for name, _ in loop.verdicts()] == ["r1", "r2"]
    assert not set(loop.newest_own(KIND)) - set(unseen)


def test_a_few_votes_train_after_a_quiet_time(loop: Loop) -> None:
    ids = list(loop.tasks)
    loop.setup()
    loop.label(ids[:30])
    loop.work()
    loop.annotate(ids[30], KIND, "A")
    assert JobKind.TRAIN not in kinds(loop.work(forward_s=2))
    assert JobKind.TRAIN in kinds(loop.work(forward_s=20))


def test_a_worse_candidate_leaves_a_verdict_and_the_published_version(tmp_path: Path) -> None:
    """Votes on tasks that are trained on turn round, those on held-out tasks stay: what is learned then is wrong."""
    loop = Loop(tmp_path, heldout_percent=45.0)  # enough held-out votes for the paired test
    ids = list(loop.tasks)
    loop.setup()
    loop.label(ids)
    loop.work()
    assert loop.verdicts() == [("r1", Verdict.PUBLISHED)]
    percent = loop.services.settings.heldout_percent
    for task in ids:
        if not is_heldout(loop.key, str(task), percent):
            for annotator in (KIND, RUDE):
                loop.change(task, annotator, "B" if loop.opinion(task, annotator) == "A" else "A")
    jobs = loop.work()
    assert loop.verdicts()[1] == ("r2", Verdict.REJECTED)
    rejected = loop.services.store.versions.recent(loop.key)[-2]
    assert rejected.reason and rejected.figures
    trained = next(job for job in jobs if job.kind is JobKind.TRAIN)
    assert trained.state is JobState.DONE and trained.figures["verdict"] == "rejected"
    assert loop.setup() == "consensus@r1"

    # One full retrain follows after a while, without new votes; then nothing until there are some.
    loop.work(forward_s=600)
    assert [name for name, _ in loop.verdicts()] == ["r1", "r2", "r3"]
    assert loop.verdicts()[2][1] is Verdict.REJECTED
    assert JobKind.TRAIN not in kinds(loop.work(forward_s=9000))
    project = loop.services.store.projects.get(loop.key)
    assert project is not None and project.version == "r1"
    loop.services.close()


def test_label_studio_away_is_caught_up_later(loop: Loop) -> None:
    ids = list(loop.tasks)
    loop.setup()
    loop.work()
    loop.label(ids[:20])
    loop.label_studio.fail_with = LabelStudioError("Label Studio does not answer.", retry=True)
    for _ in range(6):
        loop.work(forward_s=30)
    store = loop.services.store
    assert store.tasks.dirty_count(loop.key) == 20
    assert store.projects.sync_state(loop.key).last_error == "Label Studio does not answer."
    loop.label_studio.fail_with = None
    for _ in range(12):
        loop.work(forward_s=60)
    assert store.tasks.dirty_count(loop.key) == 0
    assert store.votes.counts(loop.key).total == 40
    assert store.projects.sync_state(loop.key).last_error == ""
    assert loop.verdicts()[0][1] is Verdict.PUBLISHED


def test_start_training_reads_and_trains_at_once(loop: Loop) -> None:
    ids = list(loop.tasks)
    loop.setup()
    loop.work()
    for task in ids[:12]:  # an import sends no webhook
        for annotator in (KIND, RUDE):
            loop.label_studio.annotate(task, annotator, loop.opinion(task, annotator))
    about = loop.label_studio.projects[loop.number]
    project = {name: about[name] for name in ("id", "title", "created_at", "label_config")}
    assert loop.client.post("/webhook", json={"action": "START_TRAINING", "project": project}).status_code in (200, 201)
    jobs = kinds(loop.work())
    assert jobs[0] is JobKind.RECONCILE and JobKind.TRAIN in jobs
    assert loop.verdicts()[0][0] == "r1"


def test_shadow_mode_trains_and_shows_nothing(tmp_path: Path) -> None:
    loop = Loop(tmp_path, shadow_mode=True)
    loop.setup()
    loop.label(list(loop.tasks)[:30])
    assert JobKind.DELIVER not in kinds(loop.work())
    assert loop.verdicts() and loop.label_studio.predictions == []
    loop.services.close()


def test_requests_with_another_configuration_change_nothing(loop: Loop) -> None:
    """Anybody may send one: votes, configuration and versions stay, nothing is read again, nothing is trained."""
    ids = list(loop.tasks)
    loop.setup()
    loop.label(ids[:30])
    loop.work()
    store, config = loop.services.store, loop.label_studio.projects[loop.number]["label_config"]
    before = store.projects.get(loop.key), store.votes.counts(loop.key), loop.verdicts()
    assert before[1].total == 60 and before[2] == [("r1", Verdict.PUBLISHED)]

    forged = config.replace('name="label"', 'name="other"')
    task = {"id": ids[40], "data": {"text": loop.tasks[ids[40]]}}
    answer = loop.client.post("/predict", json={"tasks": [task], "project": loop.key, "label_config": forged})
    assert answer.json == {"results": [[]]}
    assert loop.client.post("/setup", json={"project": loop.key, "schema": forged}).status_code == 200
    about = loop.label_studio.projects[loop.number] | {"label_config": forged, "title": "Forged"}
    body = {"action": "PROJECT_UPDATED", "project": {name: about[name] for name in (
        "id", "title", "created_at", "label_config")}}
    assert loop.client.post("/webhook", json=body).status_code == 201
    assert store.tasks.dirty_count(loop.key) == 0
    jobs = loop.work(forward_s=15.0)
    assert {JobKind.TRAIN, JobKind.SYNC, JobKind.DELIVER}.isdisjoint(kinds(jobs))
    assert (store.projects.get(loop.key), store.votes.counts(loop.key), loop.verdicts()) == before
    answer = loop.client.post("/predict", json={"tasks": [task], "project": loop.key, "label_config": config})
    assert answer.json is not None and answer.json["results"][0][-1]["model_version"] == "consensus@r1"


def test_a_request_tells_of_a_changed_configuration_that_no_webhook_told_of(loop: Loop) -> None:
    ids = list(loop.tasks)
    loop.setup()
    loop.label(ids[:20])
    loop.work()
    changed = loop.label_studio.projects[loop.number]["label_config"].replace('name="label"', 'name="other"')
    loop.label_studio.projects[loop.number]["label_config"] = changed
    task = {"id": ids[40], "data": {"text": loop.tasks[ids[40]]}}
    loop.client.post("/predict", json={"tasks": [task], "project": loop.key, "label_config": changed})
    assert JobKind.RECONCILE in kinds(loop.work())
    known = loop.services.store.projects.get(loop.key)
    assert known is not None and known.label_config == changed
    assert loop.services.store.votes.counts(loop.key).total == 0  # nobody answered the other control
