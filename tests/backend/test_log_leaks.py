"""Nothing secret and nobody's text in what Polyvox tells about itself: the whole loop with planted secrets, labels and
task texts, with failures of all kinds in between; then everything that was logged at DEBUG, every job row, the status
as JSON and as a page, the metrics and `status --json` are searched for them.
"""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backend.app import create_app
from backend.bootstrap import build_services
from backend.commands.status import as_json
from backend.errors import LabelStudioError
from backend.jobs import run_job
from backend.records import JobKind, JobState
from backend.routes.overview import overview
from backend.services.webhook_check import SECRET_HEADER
from backend.settings import Settings
from backend.telemetry import configure_logging
from tests.backend.encoders import WordHashEncoder
from tests.backend.fakes import FakeLabelStudio

SECRETS = {
    "label_studio_api_key": "Sec1-0123456789abcdef0123", "basic_auth_pass": "Sec2-pässword",
    "webhook_secret": "Sec3-hush-hush",
}
HANDED_OVER = ("Sec4-access-token", "Sec5-project-token", "Sec6-data-login", "Sec7-data-password", "Sec8-in-a-header")
LABELS = ("Zinnober", "Quittengelb")
WORDS = ("wombat", "okapi", "narwhal", "axolotl")
PEOPLE = {"5": "five@example.org", "6": "six@example.org"}
CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="colour" toName="text">'
    f'<Choice value="{LABELS[0]}"/><Choice value="{LABELS[1]}"/></Choices></View>')
LOGIN = "Basic " + base64.b64encode(f"me:{SECRETS['basic_auth_pass']}".encode()).decode()
PRIVATE = (*SECRETS.values(), *HANDED_OVER, *LABELS, *WORDS, LOGIN.split()[1])


class Talk:
    """A Polyvox that logs everything, its Label Studio, and all that it has said."""

    def __init__(self, folder: Path, stream: io.StringIO) -> None:
        self.now, self.log, self.said = datetime(2026, 11, 27, 13, tzinfo=UTC), stream, ""
        self.studio = FakeLabelStudio()
        self.studio.accounts = dict(PEOPLE)
        self.number = self.studio.add_project(title="Colours", label_config=CONFIG)
        self.key = self.studio.key(self.number)
        texts = [f"{WORDS[number % 2]} {WORDS[2 + number % 2]} {number}" for number in range(40)]
        self.tasks = [self.studio.add_task(self.number, text=text) for text in texts]
        settings = Settings(
            data_dir=folder, label_studio_url="http://label-studio", basic_auth_user="me", log_level="DEBUG",
            url="http://polyvox.example.org", control_arm_percent=0.0, job_attempts=2, **SECRETS)
        configure_logging(settings, stream)
        self.services = build_services(
            settings, label_studio=self.studio, encoder=WordHashEncoder(), clock=lambda: self.now)
        app = create_app(self.services)
        self.client = app.test_client()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> int:
        """A request with credentials; the answer counts as said unless it is made of what was asked."""
        answer = self.client.open(path, method=method, json=body, headers={"Authorization": LOGIN, **headers})
        if answer.status_code >= 400 or path not in ("/predict", "/validate"):
            self.said += answer.get_data(as_text=True) + str(answer.headers)
        return answer.status_code

    def event(self, action: str, **more: Any) -> int:
        about = self.studio.projects[self.number]
        project = {name: about[name] for name in ("id", "title", "created_at", "label_config")} | {
            "token": HANDED_OVER[1], "task_data_login": HANDED_OVER[2], "task_data_password": HANDED_OVER[3]}
        headers = {SECRET_HEADER: SECRETS["webhook_secret"], "Authorization": "Token " + HANDED_OVER[4]}
        return self.ask("POST", "/webhook", {"action": action, "project": project, **more}, **headers)

    def annotate(self, tasks: list[int]) -> None:
        for task in tasks:
            for annotator in (5, 6):
                label = LABELS[task % 2] if annotator == 5 else LABELS[(task + 1) % 2]
                region = {"id": "r", "from_name": "colour", "to_name": "text", "type": "choices",
                          "value": {"choices": [label]}, "origin": "manual"}
                number = self.studio.annotate(task, annotator, label, result=[region])
                about = {"id": number, "task": task, "result": [region], "completed_by": annotator}
                assert self.event("ANNOTATION_CREATED", task={"id": task}, annotation=about) == 201

    def work(self, forward_s: float = 1.0) -> list[tuple[JobKind, JobState]]:
        """What a job process does until nothing is due."""
        ended = []
        self.now += timedelta(seconds=forward_s)
        for _ in range(60):
            self.services.triggers.tick()
            self.now += timedelta(seconds=1)
            job = self.services.store.jobs.claim("test", lease_s=3600)
            if job is None:
                break
            run_job(self.services, job, owner="test")
            now = self.services.store.jobs.get(job.id)
            assert now is not None
            ended.append((now.kind, now.state))
        return ended

    def look(self) -> None:
        """Everything that people and programs can see of the state."""
        for accept in ("application/json", "text/html"):
            self.ask("GET", "/", Accept=accept)
        for path in ("/metrics", "/versions", "/health", f"/is_training?project={self.key}"):
            self.ask("GET", path)
        store = self.services.store
        self.said += repr(store.jobs.recent(limit=1000)) + repr(store.versions.recent(self.key, limit=100))
        self.said += repr(store.projects.sync_state(self.key)) + repr(store.deliveries.latest(self.key))
        versions = {self.key: store.versions.recent(self.key, limit=100)}
        self.said += json.dumps(as_json(overview(self.services), versions), ensure_ascii=False)
        self.said += repr(self.services.settings)

    def found(self) -> dict[str, str]:
        """What should not be there -> where."""
        told = {"log": self.log.getvalue(), "answers and rows": self.said}
        return {word: f"{name}: ...{text[max(text.find(word) - 150, 0):][:300]}"
                for word in PRIVATE for name, text in told.items() if word in text}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    names = ("", "backend", "model", "polyvox")
    root, kept = logging.getLogger(), {name: logging.getLogger(name).level for name in names}
    talk = Talk(tmp_path, io.StringIO())
    yield talk
    talk.services.close()
    root.removeHandler(next(each for each in root.handlers if each.get_name() == "polyvox"))
    for name, level in kept.items():
        logging.getLogger(name).setLevel(level)


def test_the_loop_tells_nothing_private(talk: Talk) -> None:
    setup = {"project": talk.key, "schema": CONFIG, "hostname": "http://x", "access_token": HANDED_OVER[0]}
    assert talk.ask("POST", "/setup", setup) == 200
    assert talk.work()
    talk.annotate(talk.tasks[:30])
    assert (JobKind.DELIVER, JobState.DONE) in talk.work()
    predict = {
        "project": talk.key, "label_config": CONFIG, "params": {"login": HANDED_OVER[2], "password": HANDED_OVER[3]},
        "tasks": [{"id": talk.tasks[35], "data": {"text": f"{WORDS[0]} {WORDS[2]} 35"}}]}
    assert talk.ask("POST", "/predict", predict) == 200
    talk.look()
    assert "Version r1 answers" in talk.said and "backend.jobs: train of project" in talk.log.getvalue()
    assert talk.found() == {}


def test_failures_tell_nothing_private(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign exceptions quote what they choke on; requests are refused; Label Studio fails; a training breaks."""
    private = f"{LABELS[0]} {WORDS[0]} {SECRETS['label_studio_api_key']}"

    def choke(*given: object, **named: object) -> None:
        try:
            {}[private]
        except KeyError as error:
            raise ValueError(f"could not convert {private!r} of {LABELS[1]!r}") from error

    talk.ask("POST", "/setup", {"project": talk.key, "schema": CONFIG})
    talk.work()
    talk.annotate(talk.tasks[:30])
    with monkeypatch.context() as patch:
        patch.setattr(talk.services.training, "_read", choke)
        patch.setattr(talk.services.prediction, "answer", choke)
        assert (JobKind.TRAIN, JobState.FAILED) in talk.work() + talk.work(60) + talk.work(600)
        tasks = [{"id": 1, "data": {"text": WORDS[1]}}]
        assert talk.ask("POST", "/predict", {"project": talk.key, "label_config": CONFIG, "tasks": tasks}) == 500
    talk.studio.fail_with = LabelStudioError("Label Studio refused the access token (401).", retry=True)
    talk.annotate(talk.tasks[30:32])
    talk.work(600)
    talk.studio.fail_with = None
    talk.ask("POST", "/webhook", {"action": LABELS[0]})
    talk.ask("POST", "/setup", {"project": HANDED_OVER[0], "schema": CONFIG})
    talk.ask("POST", "/setup", {"project": talk.key, "schema": CONFIG.replace("</Choices>", "")})
    talk.ask("POST", "/predict", {"project": talk.key, "tasks": [{"id": WORDS[0], "data": WORDS[1]}]})
    talk.ask("POST", f"/{WORDS[0]}?token={HANDED_OVER[0]}")
    wrong = {SECRET_HEADER: "x", "Authorization": HANDED_OVER[4]}
    assert talk.ask("POST", "/webhook", {"action": WORDS[0]}, **wrong) == 401
    talk.event("ANNOTATION_CREATED", annotation={"id": LABELS[0]})
    talk.look()
    log = talk.log.getvalue()
    assert "failed unexpectedly, reference" in log and "ValueError: could not convert '...' of '...'" in log
    assert "refused the access token" in talk.said
    assert talk.found() == {}


def test_the_search_finds(talk: Talk) -> None:
    """The same search over a log line and an error that leak."""
    logging.getLogger("backend.leaky").info("task %s", WORDS[0])
    talk.services.store.projects.ensure(talk.key)
    job = talk.services.store.jobs.enqueue(JobKind.TRAIN, talk.key)
    claimed = talk.services.store.jobs.claim("me", lease_s=60)
    assert claimed is not None
    talk.services.store.jobs.fail(job.id, "me", error=f"not {LABELS[0]}", retry_at=None)
    talk.look()
    assert set(talk.found()) == {WORDS[0], LABELS[0]}
