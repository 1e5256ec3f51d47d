"""What two annotators say about a task changes what the third one is shown, within one version. A real Label Studio."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests

from backend.records import Verdict
from demo.client import Account, choice
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, LABELS, OBJECT, load
from labelstudio.control_arm import in_control_arm
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.polyvox import PATIENCE_S, Polyvox, serve
from tests.e2e.server import LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

OPEN_TASKS = 30
LABELLED_TASKS = 100
ADA = PERSONAS[0]


@dataclass(kw_only=True)
class Labelled:
    """A project with a first version, of three annotators who read messages alike."""

    label_studio: LabelStudio
    polyvox: Polyvox
    project: int
    open: list[int]

    def shown(self, task: int, account: Account) -> tuple[str, float]:
        """The label that /predict has for an annotator, and its score."""
        record = self.polyvox.project(self.project)
        answer = requests.post(
            f"{self.polyvox.url}/predict", timeout=60,
            json={
                "tasks": [self.label_studio.owner.call("GET", f"/api/tasks/{task}")], "project": record.key,
                "label_config": LABEL_CONFIG, "params": {},
            },
        )
        answer.raise_for_status()
        [predictions] = answer.json()["results"]
        [own] = [each for each in predictions if each["model_version"] == f"annotator:{account.id}@r1"]
        [item] = own["result"]
        return item["value"]["choices"][0], own["score"]

    def wait_for_votes(self, tasks: list[int], each: int) -> None:
        key, deadline = self.polyvox.project(self.project).key, time.monotonic() + PATIENCE_S
        while len(self.polyvox.store.votes.of_tasks(key, tasks)) < each * len(tasks):
            assert time.monotonic() < deadline, "the votes never came"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def labelled(label_studio: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labelled]:
    settings = {"POLYVOX_TRAIN_AFTER_VOTES": "100000", "POLYVOX_TRAIN_AFTER_QUIET_S": "20"}
    with serve(label_studio, tmp_path_factory.mktemp("gaps"), settings, CONTROL_ARM_PERCENT) as polyvox:
        messages = load()[: OPEN_TASKS + LABELLED_TASKS]
        project = label_studio.owner.create_project("Gaps", LABEL_CONFIG, maximum_annotations=5)
        tasks = label_studio.owner.import_tasks(project, [{"data": {"text": message.text}} for message in messages])
        label_studio.owner.add_ml_backend(project, polyvox.url, "Polyvox")
        for seed, account in enumerate(label_studio.annotators[:3]):
            client = label_studio.as_annotator(account)
            for task, message in list(zip(tasks, messages, strict=True))[OPEN_TASKS:]:
                client.annotate(task, [choice(CONTROL, OBJECT, ADA.label(message, seed=seed))])
        version = polyvox.wait_for_version(project, "r1")
        assert version.verdict is Verdict.PUBLISHED, version.reason
        yield Labelled(label_studio=label_studio, polyvox=polyvox, project=project, open=tasks[:OPEN_TASKS])


def test_two_votes_change_what_the_third_annotator_is_shown(labelled: Labelled) -> None:
    first, second, third, _ = labelled.label_studio.annotators
    tasks = [
        task for task in labelled.open
        if not in_control_arm(labelled.project, task, str(third.id), CONTROL_ARM_PERCENT)
    ][:6]
    before = {task: labelled.shown(task, third) for task in tasks}
    other = {task: next(label for label in LABELS[::-1] if label != before[task][0]) for task in tasks}
    for account in (first, second):
        for task in tasks:
            labelled.label_studio.as_annotator(account).annotate(task, [choice(CONTROL, OBJECT, other[task])])
    labelled.wait_for_votes(tasks, each=2)
    after = {task: labelled.shown(task, third) for task in tasks}
    for task in tasks:
        assert after[task][0] == other[task] or (
            after[task][0] == before[task][0] and after[task][1] < before[task][1]
        ), f"{before[task]} became {after[task]} when two others said {other[task]}"
    changed = [task for task in tasks if after[task][0] == other[task]]
    assert len(changed) > len(tasks) / 2, "most of what is shown becomes what the two others say"


def test_agreeing_votes_make_the_same_label_surer(labelled: Labelled) -> None:
    first, second, third, _ = labelled.label_studio.annotators
    tasks = [
        task for task in labelled.open
        if not in_control_arm(labelled.project, task, str(third.id), CONTROL_ARM_PERCENT)
    ][6:12]
    before = {task: labelled.shown(task, third) for task in tasks}
    for account in (first, second):
        for task in tasks:
            labelled.label_studio.as_annotator(account).annotate(task, [choice(CONTROL, OBJECT, before[task][0])])
    labelled.wait_for_votes(tasks, each=2)
    after = {task: labelled.shown(task, third) for task in tasks}
    assert [after[task][0] for task in tasks] == [before[task][0] for task in tasks]
    assert sum(after[task][1] for task in tasks) > sum(before[task][1] for task in tasks)
