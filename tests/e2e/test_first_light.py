"""First light: what annotators label becomes what they are shown. A real Label Studio, a real Polyvox, a real browser.

The tests of this file are one story and run in its order: they share a project, which each takes further.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser

from backend.records import JobKind, Verdict
from demo.client import Account, choice
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from demo.watch import differences
from labelstudio.control_arm import in_control_arm
from model.data.splits import is_heldout
from tests.e2e.browser import (
    log_in,
    open_quick_view,
    open_stream,
    prediction_tabs,
    selected_choice,
)
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.polyvox import Polyvox, serve
from tests.e2e.server import LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

OPEN_TASKS = 40  # nobody labels these; they are what annotators are then shown
LABELLED_TASKS = 100
HELDOUT_PERCENT = 35.0  # enough held-out votes for the gate, wherever the hash of this project falls
ADA, EMIL = PERSONAS[0], PERSONAS[4]
OPPOSITE = {"Polite": "Impolite", "Impolite": "Polite", "Neutral": "Polite"}


@dataclass(kw_only=True)
class Story:
    """What the tests share."""

    label_studio: LabelStudio
    polyvox: Polyvox
    project: int
    tasks: list[int]
    text_of: dict[int, str]

    @property
    def key(self) -> str:
        return self.polyvox.project(self.project).key

    def withheld(self, task: int, account: Account) -> bool:
        return in_control_arm(self.project, task, str(account.id), CONTROL_ARM_PERCENT)


@pytest.fixture(scope="module")
def story(label_studio: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    settings = {
        # One training for each test: when its labels are in, and not before.
        "POLYVOX_TRAIN_AFTER_VOTES": "10000", "POLYVOX_TRAIN_AFTER_QUIET_S": "12", "POLYVOX_CONSENSUS_EVERY_S": "1",
        "POLYVOX_HELDOUT_PERCENT": str(HELDOUT_PERCENT),
    }
    with serve(label_studio, tmp_path_factory.mktemp("polyvox"), settings, CONTROL_ARM_PERCENT) as polyvox:
        messages = load()[: OPEN_TASKS + LABELLED_TASKS]
        project = label_studio.owner.create_project("First light", LABEL_CONFIG, maximum_annotations=5)
        tasks = label_studio.owner.import_tasks(project, [{"data": {"text": message.text}} for message in messages])
        label_studio.owner.add_ml_backend(project, polyvox.url, "Polyvox")
        texts = dict(zip(tasks, (message.text for message in messages), strict=True))
        yield Story(label_studio=label_studio, polyvox=polyvox, project=project, tasks=tasks, text_of=texts)


def test_labels_become_a_version_that_is_judged_published_and_delivered(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = story.label_studio.annotators
    message_of = dict(zip(story.tasks, load(), strict=False))
    start = time.monotonic()
    for account, persona in ((first, ADA), (second, EMIL)):
        client = story.label_studio.as_annotator(account)
        for task in story.tasks[OPEN_TASKS:]:
            client.annotate(task, [choice(CONTROL, OBJECT, persona.label(message_of[task], seed=3))])
    labelled = time.monotonic()
    version = story.polyvox.wait_for_version(story.project, "r1")
    assert version.verdict is Verdict.PUBLISHED, version.reason
    story.polyvox.wait_for_delivery(story.project, "r1")
    delivered = time.monotonic()

    votes = story.polyvox.store.votes.counts(story.key)
    assert (votes.total, votes.annotators) == (2 * LABELLED_TASKS, 2)
    train, deliver = (story.polyvox.finished(story.project, kind)[0] for kind in (JobKind.TRAIN, JobKind.DELIVER))
    assert train.started_at and train.finished_at and deliver.started_at and deliver.finished_at
    assert train.started_at < version.created_at <= train.finished_at <= deliver.started_at < deliver.finished_at
    assert story.label_studio.owner.call("GET", f"/api/projects/{story.project}/")["model_version"] == "consensus@r1"
    with capsys.disabled():
        print(
            f"\n{2 * LABELLED_TASKS} labels submitted in {labelled - start:.0f} s; from the last label: version "
            f"{delivered - labelled:.1f} s later in Label Studio (of which training "
            f"{(train.finished_at - train.started_at).total_seconds():.1f} s, delivery "
            f"{(deliver.finished_at - deliver.started_at).total_seconds():.1f} s). {version.reason}"
        )


def test_two_annotators_see_their_own_label_and_a_third_the_consensus(story: Story, browser: Browser) -> None:
    first, second, third, _ = story.label_studio.annotators
    owner = story.label_studio.owner
    found = [
        each for each in differences(owner, story.project, (first, second), CONTROL_ARM_PERCENT)
        if len(each.labels) == 2 and each.task in story.tasks[:OPEN_TASKS] and not story.withheld(each.task, third)
    ]
    assert found, "the two are predicted to agree on every open task"
    task, text = found[0].task, found[0].text
    expected = {
        first: (found[0].labels[first.email][0], "For you, r1"),
        second: (found[0].labels[second.email][0], "For you, r1"),
        third: (found[0].consensus, "Consensus, r1"),
    }
    assert expected[first][0] != expected[second][0]
    for number, (account, (label, title)) in enumerate(expected.items(), start=1):
        page = log_in(browser, story.label_studio, account)
        with story.label_studio.tab_of_task(story.project, task) as tab:
            open_stream(page, story.project, text, tab=tab)
        assert selected_choice(page) == label, f"stream, annotator {number}"
        open_quick_view(page, story.project, task, text)
        assert selected_choice(page) == label, f"quick view, annotator {number}"
        assert prediction_tabs(page) == [title], f"annotator {number}"
        page.context.close()


def test_a_control_arm_pair_sees_nothing(story: Story, browser: Browser) -> None:
    pairs = [
        (task, account) for account in story.label_studio.annotators for task in story.tasks[:OPEN_TASKS]
        if story.withheld(task, account)
    ]
    task, account = pairs[0]
    stored = story.label_studio.owner.call("GET", f"/api/tasks/{task}")["predictions"]
    assert "consensus@r1" in {each["model_version"] for each in stored}, "there is something to withhold"
    page = log_in(browser, story.label_studio, account)
    with story.label_studio.tab_of_task(story.project, task) as tab:
        open_stream(page, story.project, story.text_of[task], tab=tab)
    assert selected_choice(page) is None
    open_quick_view(page, story.project, task, story.text_of[task])
    assert selected_choice(page) is None
    assert prediction_tabs(page) == []
    page.context.close()


def test_more_labels_are_followed_by_the_next_version(story: Story, browser: Browser) -> None:
    """Labelled in the browser, by pressing Submit on what is preselected; the echo is noted as one."""
    first = story.label_studio.annotators[0]
    task = next(task for task in story.tasks[:OPEN_TASKS] if not story.withheld(task, first))
    before = story.polyvox.store.versions.published(story.key)
    assert before is not None and before.name == "r1"
    page = log_in(browser, story.label_studio, first)
    with story.label_studio.tab_of_task(story.project, task) as tab:
        open_stream(page, story.project, story.text_of[task], tab=tab)
        label = selected_choice(page)
        assert label is not None
        with page.expect_response(lambda it: "/annotations" in it.url and it.request.method == "POST") as sent:
            page.click("button[name=submit]")
        assert sent.value.status == 201
    page.context.close()

    version = story.polyvox.wait_for_published(story.project, after=before)
    story.polyvox.wait_for_delivery(story.project, version.name)
    assert version.changes == 2 * LABELLED_TASKS + 1
    for candidate in story.polyvox.store.versions.recent(story.key, verdict=Verdict.REJECTED):
        assert candidate.figures["gate"]["mean"] > 0.01, f"held back for a hair: {candidate.reason}"
    mine = [vote for vote in story.polyvox.store.votes.of_tasks(story.key, [task]) if vote.annotator == str(first.id)]
    assert [(vote.value.data, vote.provenance.name, vote.shown, vote.control_arm) for vote in mine] == [
        (label, "ACCEPTED", True, False)
    ]


def test_a_job_that_does_not_publish_leaves_its_verdict(story: Story) -> None:
    """Everything that may be learned from turns into its opposite; what judges a version stays as it was."""
    before = story.polyvox.store.versions.published(story.key)
    assert before is not None
    for account, persona in zip(story.label_studio.annotators, (ADA, EMIL), strict=False):
        client = story.label_studio.as_annotator(account)
        for task, message in list(zip(story.tasks, load(), strict=False))[OPEN_TASKS:]:
            if not is_heldout(story.key, str(task), HELDOUT_PERCENT):
                client.annotate(task, [choice(CONTROL, OBJECT, OPPOSITE[persona.label(message, seed=3)])])
    version = story.polyvox.wait_for_version(story.project, f"r{before.number + 1}")
    assert version.verdict is Verdict.REJECTED, version.reason
    assert "worse than the published version" in version.reason
    published = story.polyvox.store.versions.published(story.key)
    assert published is not None and published.name == before.name
    project = story.label_studio.owner.call("GET", f"/api/projects/{story.project}/")
    assert project["model_version"] == f"consensus@{before.name}"
