"""Drafts and webhook hygiene against a real Label Studio without the middleware and with its SSRF protection on.

Polyvox' services run inside the test; what they deliver comes from a small ladder on word hashes. The tests of this
file are one story and run in its order: they share a project, which each takes further.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser

from backend.bootstrap import Services, build_services
from backend.cli import main
from backend.client import DeskClient
from backend.errors import LabelStudioError
from backend.labeling import task_in_control_arm
from backend.records import Project
from backend.services.annotator_tokens import AnnotatorTokens
from backend.services.reading import key_of
from backend.services.training import Training
from backend.settings import Settings
from demo.client import Account, choice
from demo.processes import Service, clean_env, free_port
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import answer, texts
from tests.backend.services.workshop import LEARNING
from tests.e2e import server as running
from tests.e2e.browser import log_in, open_quick_view, open_stream, screenshot, selected_choice
from tests.e2e.conftest import CACHE
from tests.e2e.server import OWNER, LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

STOCK = {"DJANGO_SETTINGS_MODULE": "core.settings.label_studio", "PYTHONPATH": ""}
PERCENT = 30.0
NEXT = 6
LABELS = {"polite": "Polite", "rude": "Impolite"}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    """Label Studio as it comes, but for the address of models: webhooks to private addresses are refused."""
    env = {**STOCK, "SSRF_PROTECTION_ENABLED": "true", "ML_BLOCK_LOCAL_IP": "false"}
    server = running.start(CACHE, tmp_path_factory.mktemp("stock"), env)
    try:
        yield server
    finally:
        server.service.stop()


@dataclass(kw_only=True)
class Loop:
    """A project that was read and trained on, and Polyvox' services."""

    services: Services
    project: Project
    tasks: list[int]
    text_of: dict[int, str]

    def deliver(self) -> Mapping[str, Any]:
        return self.services.delivery.run(self.project.key, lambda *_: None, force=True)

    @property
    def tokens(self) -> AnnotatorTokens:
        services = self.services
        return AnnotatorTokens(store=services.store, settings=services.settings, clock=services.clock,
                               open_desk=lambda token: DeskClient(services.settings, token))

    def window(self) -> list[int]:
        """The next tasks, those in the control arm left out."""
        number = self.project.label_studio_id
        return [task for task in self.tasks[40 : 40 + NEXT] if not task_in_control_arm(number, task, PERCENT)]

    def read(self) -> None:
        self.services.reconciler.run(self.project.key, lambda *_: None)


@pytest.fixture(scope="module")
def loop(stock: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """40 tasks that the first two annotators labelled by opposite rules, and 20 that nobody did."""
    sentences = texts(60)
    project = stock.owner.create_project("Drafts", running.LABEL_CONFIG, maximum_annotations=5)
    tasks = stock.owner.import_tasks(project, [
        {"data": {"text": text}, "annotations": [
            {"result": [choice("polite", "text", LABELS[answer(number, text)])], "completed_by": account.id}
            for number, account in zip("12", stock.annotators, strict=False) if place < 40]}
        for place, text in enumerate(sentences)])
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("polyvox"), label_studio_url=stock.url, label_studio_api_key=OWNER.token,
        middleware=False, draft_next_tasks=NEXT, control_arm_percent=PERCENT, consensus_every_s=0.0, train_threads=1,
    )
    services = build_services(settings, encoder=WordHashEncoder())
    raw = stock.owner.call("GET", f"/api/projects/{project}/")
    key = key_of(raw)
    assert key is not None
    services.store.projects.ensure(key, title=raw["title"], label_config=raw["label_config"])
    services.reconciler.run(key, lambda *_: None)
    Training(store=services.store, features=services.features, registry=services.registry, settings=settings,
             clock=services.clock, ladder=LEARNING).run(key, lambda *_: None)
    known = services.store.projects.get(key)
    assert known is not None and known.version == "r1"
    yield Loop(services=services, project=known, tasks=tasks, text_of=dict(zip(tasks, sentences, strict=True)))
    services.close()


def drafts_of(stock: LabelStudio, account: Account, tasks: list[int]) -> dict[int, dict[str, Any]]:
    found = {}
    for task in tasks:
        listed = stock.owner.call("GET", f"/api/tasks/{task}/drafts")
        mine = [draft for draft in listed if draft["user"] == account.email]
        assert len(mine) <= 1
        if mine:
            found[task] = {name: value for name, value in mine[0].items() if name != "created_ago"}  # moves by itself
    return found


def chosen(draft: Mapping[str, Any]) -> str:
    return str(draft["result"][0]["value"]["choices"][0])


def test_two_annotators_see_their_own_label_as_a_draft(
    stock: LabelStudio, loop: Loop, browser: Browser, pictures: Path | None
) -> None:
    first, second, third, _ = stock.annotators
    loop.tokens.add(loop.project.key, first.email, first.token)  # a legacy token
    loop.tokens.add("", second.email, second.personal_token)  # a personal one, for all projects
    figures = loop.deliver()
    window = loop.window()
    one, two = drafts_of(stock, first, loop.tasks), drafts_of(stock, second, loop.tasks)
    assert sorted(one) == sorted(two) == window and figures["drafts_made"] == 2 * len(window)
    for draft in one.values():
        assert draft["result"][0]["origin"] == "prediction" and 0 < draft["result"][0]["score"] <= 1
        assert draft["result"][0]["meta"] == {"polyvox": f"annotator:{first.id}@r1"}
    differing = [task for task in window if chosen(one[task]) != chosen(two[task])]
    assert differing, "the two were taught opposite rules"

    task = differing[0]
    text = loop.text_of[task]
    with stock.tab_of_task(loop.project.label_studio_id, task) as tab:
        for number, (account, draft) in enumerate(((first, one[task]), (second, two[task])), start=1):
            page = log_in(browser, stock, account)
            open_quick_view(page, loop.project.label_studio_id, task, text)
            assert selected_choice(page) == chosen(draft), f"quick view, annotator {number}"
            open_stream(page, loop.project.label_studio_id, text, tab=tab)
            assert selected_choice(page) == chosen(draft), f"stream, annotator {number}"
            screenshot(page, pictures, f"draft-stream-{number}")
            page.context.close()
        consensus = [each for each in stock.owner.call("GET", f"/api/predictions/?task={task}")]
        page = log_in(browser, stock, third)
        open_quick_view(page, loop.project.label_studio_id, task, text)
        assert selected_choice(page) == chosen(consensus[-1]), "whoever gave no token sees the consensus"
        page.context.close()

        # Looking is not touching; submitting makes the draft go and the vote an echo.
        assert drafts_of(stock, first, [task])[task]["updated_at"] == one[task]["updated_at"]
        page = log_in(browser, stock, first)
        open_stream(page, loop.project.label_studio_id, text, tab=tab)
        assert selected_choice(page) == chosen(one[task])
        with page.expect_response(lambda sent: "/annotations" in sent.url and sent.request.method == "POST") as sent:
            page.click("button[name=submit]")
        assert sent.value.status == 201
        page.context.close()
    assert drafts_of(stock, first, [task]) == {}
    loop.read()
    (mine,) = [vote for vote in loop.services.store.votes.of_tasks(loop.project.key, [task])
               if vote.annotator == str(first.id)]
    assert (mine.value.data, mine.provenance.name, mine.shown) == (chosen(one[task]), "ACCEPTED", True)
    figures = loop.deliver()
    assert (task, str(first.id)) not in loop.services.store.drafts.of(loop.project.key)
    assert figures["drafts_made"] <= 1 and figures["drafts_removed"] == 1


def test_what_an_annotator_edits_in_the_browser_stays(stock: LabelStudio, loop: Loop, browser: Browser) -> None:
    first = stock.annotators[0]
    task, before = next(iter(drafts_of(stock, first, loop.tasks[40 : 40 + NEXT]).items()))
    other = "Impolite" if chosen(before) == "Polite" else "Polite"
    page = log_in(browser, stock, first)
    open_quick_view(page, loop.project.label_studio_id, task, loop.text_of[task])
    assert selected_choice(page) == chosen(before)
    with page.expect_response(lambda sent: "/drafts" in sent.url and sent.request.method in ("PATCH", "POST")) as saved:
        page.click(f".lsf-choices >> text={other}")
    assert saved.value.ok
    page.context.close()
    edited = drafts_of(stock, first, [task])[task]
    assert edited["id"] == before["id"] and chosen(edited) == other
    assert edited["result"][0]["origin"] == "prediction-changed"

    loop.services.store.projects.update_settings(loop.project.key, {"own_active_days": 0.0})
    figures = loop.deliver()  # nobody is to have any: ours go, theirs stays
    loop.services.store.projects.update_settings(loop.project.key, {"own_active_days": None})
    assert drafts_of(stock, first, loop.tasks) == {task: edited}
    assert figures["drafts_theirs"] == 1


def test_a_task_that_was_deleted_is_passed_over(stock: LabelStudio, loop: Loop) -> None:
    second, store, key = stock.annotators[1], loop.services.store, loop.project.key
    voted = {vote.task_id for vote in store.votes.of_tasks(key, loop.window())}
    busy = voted | {task for task, _ in store.drafts.of(key)}
    lost = next(task for task in loop.window() if task not in busy)
    stock.owner.call("DELETE", f"/api/tasks/{lost}/")
    figures = loop.deliver()
    assert figures["drafts_failed"] == 2, "one for each annotator"
    assert sorted(drafts_of(stock, second, loop.tasks[40:])) == [task for task in loop.window() if task != lost]
    assert lost in [task for task, _ in store.tasks.dirty(key, 100)]


def test_removing_a_token_takes_untouched_drafts_back(
    stock: LabelStudio, loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = stock.annotators
    settings = loop.services.settings
    env = {"POLYVOX_DATA_DIR": str(settings.data_dir), "LABEL_STUDIO_URL": stock.url,
           "LABEL_STUDIO_API_KEY": OWNER.token, "POLYVOX_MIDDLEWARE": "no"}
    assert main(["annotator-token", "list"], env) == 0
    listed = capsys.readouterr().out
    assert f"{first.email}: project" in listed and f"{second.email}: all projects" in listed
    assert main(["annotator-token", "remove", "--all", second.email], env) == 0
    assert "is forgotten" in capsys.readouterr().out
    assert drafts_of(stock, second, loop.tasks[40:]) == {}
    assert [each.email for each in loop.services.store.tokens.all()] == [first.email]


def test_a_wrong_token_is_refused_without_being_told(stock: LabelStudio, loop: Loop) -> None:
    first = stock.annotators[0]
    for wrong in (first.token[::-1], first.personal_token[:-3] + "abc"):
        with pytest.raises(LabelStudioError, match="refuses the annotator's token") as refusal:
            DeskClient(loop.services.settings, wrong).who()
        assert refusal.value.http_status == 401 and wrong not in str(refusal.value)


class Model:
    """A model that answers /health and /setup as Polyvox does."""

    def __init__(self, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        code = (
            "from flask import Flask\napp = Flask('model')\n"
            "app.add_url_rule('/health', 'health', lambda: {'status': 'UP'})\n"
            "app.add_url_rule('/setup', 'setup', lambda: {'model_version': 'consensus@r0'}, methods=['POST'])\n"
            f"app.run('127.0.0.1', {port})\n"
        )
        self.service = Service("A model", [sys.executable, "-c", code], env=clean_env(), log=folder / "model.log",
                               health=f"{self.url}/health", cwd=folder)


def test_the_half_state_is_found_and_explained(stock: LabelStudio, loop: Loop, tmp_path: Path) -> None:
    model = Model(tmp_path)
    with model.service as service:
        service.wait_until_up(30)
        with pytest.raises(requests.HTTPError, match="403"):
            stock.owner.add_ml_backend(loop.project.label_studio_id, model.url, "Polyvox")
        loop.read()
    (sentence,) = loop.services.store.projects.findings(loop.project.key)
    assert f"no webhook to {model.url}" in sentence and "SSRF_PROTECTION_ENABLED=false" in sentence


def test_a_refused_registration_is_explained(stock: LabelStudio, loop: Loop) -> None:
    settings = Settings(
        data_dir=loop.services.settings.data_dir, label_studio_url=stock.url, label_studio_api_key=OWNER.token,
        url="http://127.0.0.1:9", webhook_secret="of-the-test",
    )
    services = build_services(settings, store=loop.services.store, encoder=WordHashEncoder())
    services.reconciler.run(loop.project.key, lambda *_: None)
    (sentence,) = services.store.projects.findings(loop.project.key)
    assert "refused the webhook to http://127.0.0.1:9 (403)" in sentence
    bare = build_services(
        Settings(data_dir=settings.data_dir, label_studio_url=stock.url, label_studio_api_key=OWNER.token,
                 url="http://polyvox:9090"), store=loop.services.store, encoder=WordHashEncoder())
    bare.reconciler.run(loop.project.key, lambda *_: None)
    (sentence,) = services.store.projects.findings(loop.project.key)
    assert "the host name has no dot" in sentence
