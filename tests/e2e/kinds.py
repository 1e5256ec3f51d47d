"""Kinds of projects that several annotate: how tasks are made, answered, learned and read back in the browser.

Two annotators see the same tasks and answer by opposite rules, so a model of the average could not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from demo.client import Client
from labelstudio.control_arm import in_control_arm
from tests.e2e.browser import log_in, screenshot, settled
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.polyvox import Polyvox, serve
from tests.e2e.server import LabelStudio

LABELLED, OPEN = 32, 4
TRAINED_WITHIN_S = 600.0  # videos with sound take a busy machine minutes
SETTINGS = {
    "POLYVOX_TRAIN_AFTER_VOTES": "10000", "POLYVOX_TRAIN_AFTER_QUIET_S": "4", "POLYVOX_CONSENSUS_EVERY_S": "1",
    "POLYVOX_RECONCILE_EVERY_S": "10",
}
CHECKED = "[...document.querySelectorAll('.lsf-main-view .lsf-choices input:checked')].map(e => e.name)"

File = tuple[str, bytes]  # name and content


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of project: what it shows, how a task is made for one of two sorts, and how a sort is answered."""

    name: str  # of its screenshot
    title: str
    config: str
    task: Callable[[int, bool], File | dict[str, str | File]]  # (number, sort) -> a file, or the data of a task
    answer: Callable[[bool], list[dict[str, Any]]]
    read: str  # a JavaScript expression: the texts of what the editor shows as answered
    shown: Callable[[bool], list[str]]  # what they are when the answer is rendered
    given: Callable[[bool], list[dict[str, Any]]] = lambda sort: []  # regions that tasks nobody labelled come with


def region(name: str, to_name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """One answer, as Label Studio's editor writes it."""
    return {"id": f"{name}1", "from_name": name, "to_name": to_name, "type": kind, "value": value}


@contextmanager
def polyvox_of(label_studio: LabelStudio, folder: Path) -> Iterator[Polyvox]:
    """A Polyvox that trains as soon as annotators pause, with no control arm of its own."""
    with serve(label_studio, folder, SETTINGS, 0.0) as running:
        yield running


def learned(label_studio: LabelStudio, polyvox: Polyvox, kind: Kind) -> tuple[int, list[tuple[int, bool]]]:
    """The project, and the tasks that nobody labelled with their sorts: once annotators have judged the others and
    the predictions of the first version are in Label Studio."""
    owner = label_studio.owner
    project = owner.create_project(kind.title, kind.config, maximum_annotations=5)
    sorts = [bool(number % 2) for number in range(LABELLED + OPEN)]
    tasks = _upload(owner, project, [kind.task(number, sort) for number, sort in enumerate(sorts)])
    assert len(tasks) == LABELLED + OPEN
    owner.add_ml_backend(project, polyvox.url, "Polyvox")
    same, opposite = label_studio.annotators[:2]
    clients = [(label_studio.as_annotator(same), False), (label_studio.as_annotator(opposite), True)]
    everything = list(zip(tasks, sorts, strict=True))
    third, came = label_studio.as_annotator(label_studio.annotators[2]), []
    for task, sort in everything[LABELLED:]:
        if regions := kind.given(sort):  # taken over by somebody who does not judge them
            came.append(third.annotate(task, regions))
    for task, sort in everything[:LABELLED]:
        for client, turned in clients:  # in turns, so that an early version knows both
            client.annotate(task, kind.answer(sort != turned))
    polyvox.wait_for_delivery(project, "r1", patience_s=TRAINED_WITHIN_S)
    for annotation in came:  # so that the editor shows predictions, and no annotation of somebody else's
        owner.call("DELETE", f"/api/annotations/{annotation}")
    return project, everything[LABELLED:]


def assert_each_is_predicted(label_studio: LabelStudio, kind: Kind, unlabelled: Sequence[tuple[int, bool]]) -> None:
    """What is stored for each annotator is what they would have answered, in four answers of five; nothing else is."""
    hits, asked = 0, 0
    for task, sort in unlabelled:
        found = label_studio.owner.call("GET", f"/api/tasks/{task}")["predictions"]
        stored = {each["model_version"]: each for each in found}
        for account, turned in zip(label_studio.annotators[:2], (False, True), strict=True):
            expected = answers(kind.answer(sort != turned))
            own = f"annotator:{account.id}@r"  # the newest: one that follows the first replaces what changed
            versions = [int(each.removeprefix(own)) for each in stored if each.startswith(own)]
            given = answers(stored[f"{own}{max(versions)}"]["result"])
            predicted = set(expected)
            assert set(given) <= predicted
            asked += len(predicted)
            hits += sum(given.get(name) == expected[name] for name in predicted)
    assert hits >= 0.8 * asked, f"{hits} of {asked} answers are predicted as each annotator would give them"


def assert_rendered(
    label_studio: LabelStudio, browser: Browser, kind: Kind, project: int, unlabelled: Sequence[tuple[int, bool]],
    pictures: Path | None,
) -> None:
    """The editor shows the first annotator their own prediction: in the quick view of a task that is not in their
    control arm."""
    account = label_studio.annotators[0]
    task, sort = next(
        (task, sort) for task, sort in reversed(unlabelled)
        if not in_control_arm(project, task, str(account.id), CONTROL_ARM_PERCENT)
    )
    page = log_in(browser, label_studio, account)
    page.goto(f"/projects/{project}/data?task={task}")
    found = settled(page, kind.read, kind.shown(sort))
    assert found == kind.shown(sort), f"the editor shows {found}"
    if pictures is not None:
        page.wait_for_timeout(4000)  # media appear after the answers
    screenshot(page, pictures, f"media-{kind.name}")


def answers(result: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """control -> what is answered, whatever the order of choices."""
    return {one["from_name"]: sorted(_said(one["value"][_KEYS.get(one["type"], one["type"])])) for one in result}


_KEYS = {"pairwise": "selected"}  # the values of other types lie under the type's own name


def _said(value: Any) -> list[str]:
    """The parts of an answer as texts; a path of a taxonomy is one part."""
    if not isinstance(value, list):
        return [str(value)]
    return [" / ".join(part) if isinstance(part, list) else str(part) for part in value]


def _upload(owner: Client, project: int, tasks: Sequence[File | dict[str, str | File]]) -> list[int]:
    """Tasks of a project, as a person makes them: files by the import form, texts as JSON. Label Studio takes no files
    for tasks that show several things, so those are uploaded to a project of their own and named in the JSON."""
    if isinstance(tasks[0], dict):
        several = any(not isinstance(value, str) for value in tasks[0].values())
        shelf = owner.create_project("Files of another project", "<View></View>") if several else project
        return owner.import_tasks(project, [
            {"data": {key: value if isinstance(value, str) else _address(owner, shelf, value)
                      for key, value in data.items()}}
            for data in tasks if isinstance(data, dict)
        ])
    for file in tasks:  # one by one, so that the order of the ids is that of the files
        owner.call("POST", f"/api/projects/{project}/import", files={"file": file})
    return owner.task_ids(project)


def _address(owner: Client, project: int, file: File) -> str:
    """Where a file is once it is uploaded, as tasks name it."""
    path = f"/api/projects/{project}/import?commit_to_project=false"
    (number,) = owner.call("POST", path, files={"file": file})["file_upload_ids"]
    return f"/data/{owner.call('GET', f'/api/import/file-upload/{number}')['file']}"
