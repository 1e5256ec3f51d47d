"""In a live project consensus and annotator scores are there after the first votes, before any network.

They must equal what `aggregate` and `identify` find in the project's own export.
"""

from __future__ import annotations

import csv
import html
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from demo.client import choice
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from tests.e2e.polyvox import PATIENCE_S, Polyvox, serve
from tests.e2e.server import OWNER, LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TASKS = 6
SETTINGS = {  # nothing is ever trained
    "POLYVOX_MIN_VOTES": "10000", "POLYVOX_RECONCILE_EVERY_S": "5", "POLYVOX_GAPS_EVERY_S": "1",
    "POLYVOX_GAP_TABS": "yes",
}


def command(folder: Path, *arguments: str, **settings: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "backend", *arguments], capture_output=True, text=True, timeout=120,
        env={"POLYVOX_DATA_DIR": str(folder / "none"), "PATH": "/usr/bin:/bin", **settings},
    )
    assert done.returncode == 0, done.stderr + done.stdout


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_consensus_and_scores_after_the_first_votes(label_studio: LabelStudio, tmp_path: Path) -> None:
    owner, messages = label_studio.owner, load()[:TASKS]
    labels = [item.attrib for item in _choices()]
    with serve(label_studio, tmp_path, SETTINGS, 0.0) as polyvox:
        project = owner.create_project("First votes", LABEL_CONFIG, maximum_annotations=5)
        tasks = owner.import_tasks(project, [{"data": {"text": each.text}} for each in messages])
        extra = owner.import_tasks(project, [{"data": {"text": "Only one of them labels this message."}}])[0]
        owner.add_ml_backend(project, polyvox.url, "Polyvox")
        for index, account in enumerate(label_studio.annotators[:3]):
            client = label_studio.as_annotator(account)
            for number, task in enumerate(tasks):
                odd = index == 2 and number % 3 == 0
                client.annotate(task, [choice(CONTROL, OBJECT, labels[(number + odd) % 2]["value"])])
            if index == 0:
                client.annotate(extra, [choice(CONTROL, OBJECT, labels[0]["value"])])
        seen = wait_for_scores(polyvox.url, 3 * TASKS + 1)
        assert seen["model_version"] is None, "a version was trained, so this shows nothing"
        assert any("From votes alone" in sentence for sentence in seen["says"])
        export = tmp_path / "export.json"
        export.write_text(json.dumps(owner.call("GET", f"/api/projects/{project}/export?exportType=JSON")))
        config = tmp_path / "config.xml"  # the export lacks it, and with it the choices that nobody took
        config.write_text(LABEL_CONFIG)
        given = (str(export), "--label-config", str(config))
        command(tmp_path, "aggregate", *given, "--method", "dawid-skene", "--out", str(tmp_path / "labels.csv"))
        command(tmp_path, "identify", *given, "--out", str(tmp_path / "found.csv"))
        site = requests.get(f"{polyvox.url}/api/projects/{polyvox.project(project).key}/consensus", timeout=30)
        assert site.ok
        asked = wait_for_gaps(polyvox.url, project, extra)
        others = {str(each.id) for each in label_studio.annotators[1:3]}  # who have not labelled it
        assert {each["annotator"] for each in asked} <= others
        page = requests.get(f"{polyvox.url}/projects/{project}/gaps", timeout=30)
        assert page.ok and asked[0]["sentence"] in html.unescape(page.text) and asked[0]["name"] in page.text
        assert_tab(owner, project, asked)
        for _ in range(2):  # the second time nothing is left to write
            command(tmp_path, "annotate", str(project), "--at-least", "0", LABEL_STUDIO_URL=label_studio.url,
                    LABEL_STUDIO_API_KEY=OWNER.token, POLYVOX_DATA_DIR=str(tmp_path / "polyvox"))
        assert_no_votes(owner, polyvox, project, [*tasks, extra])

    consensus = seen["consensus"][CONTROL]
    aggregated = rows(tmp_path / "labels.csv")
    assert consensus["tasks"] == len(aggregated) == TASKS + 1
    shown = site.json()["rows"]
    mean = sum(float(row["confidence"]) for row in shown) / len(shown)
    assert consensus["mean_confidence"] == pytest.approx(mean, abs=1e-4)
    ours = {each["annotator"]: each["accuracy"] for each in seen["annotator_scores"]}
    (table,) = tmp_path.glob("found*annotators*.csv")
    identified = {row["annotator"]: float(row["accuracy"]) for row in rows(table)}
    assert set(ours) == set(identified) == {str(account.id) for account in label_studio.annotators[:3]}
    assert ours == pytest.approx(identified, abs=1e-4)


def wait_for_gaps(url: str, project: int, task: int) -> list[dict[str, Any]]:
    """What to ask for next, once the task that two annotators have not labelled is among it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = requests.get(f"{url}/api/projects/{project}/gaps", timeout=30)
        asked = list(answer.json()["rows"]) if answer.ok else []
        if asked and all(each["task"] == task for each in asked):
            return asked
        assert time.monotonic() < deadline, f"no gaps: {answer.text[:300]}"
        time.sleep(0.5)


def assert_no_votes(owner: Any, polyvox: Polyvox, project: int, tasks: list[int]) -> None:
    """The consensus stands on each task as an annotation of who signed, and Polyvox reads no vote there."""
    account = owner.call("GET", "/api/current-user/whoami")["id"]
    newest = None
    for task in tasks:
        (signed,) = [each for each in owner.call("GET", f"/api/tasks/{task}/annotations/")
                     if each["completed_by"] == account]
        assert signed["result"][0]["meta"]["text"][0].startswith("Predicted by Polyvox")
        newest = signed["id"]
    key, deadline = polyvox.project(project).key, time.monotonic() + PATIENCE_S
    while not polyvox.store.tasks.task_of_annotation(key, [newest]):
        assert time.monotonic() < deadline, "the annotations were never read"
        time.sleep(0.5)
    votes = polyvox.store.votes.current(key)
    assert len(votes.unit) == 3 * TASKS + 1 and str(account) not in votes.annotators


def assert_tab(owner: Any, project: int, asked: list[dict[str, Any]]) -> None:
    """Label Studio has a tab for each annotator who is asked, and it holds their tasks and no others."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        tabs = {view["data"].get("polyvox"): view for view in owner.call("GET", f"/api/dm/views/?project={project}")}
        if {each["annotator"] for each in asked} <= set(tabs):
            break
        assert time.monotonic() < deadline, "no tabs"
        time.sleep(0.5)
    for each in asked:
        view = tabs[each["annotator"]]
        assert view["data"]["title"] == f"Next for {each['name']}"
        held = owner.call("GET", f"/api/tasks?project={project}&view={view['id']}")
        assert {task["id"] for task in held["tasks"]} == {row["task"] for row in asked
                                                          if row["annotator"] == each["annotator"]}


def wait_for_scores(url: str, votes: int) -> dict[str, Any]:
    """The project's status once its statistics are made from all votes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        projects = requests.get(url, headers={"Accept": "application/json"}, timeout=30).json()["projects"]
        scores = projects[0]["annotator_scores"] if projects else []
        if sum(each["votes"] for each in scores) == votes:
            return dict(projects[0])
        assert time.monotonic() < deadline, f"no scores; the status is {projects}"
        time.sleep(0.5)


def _choices() -> list[Any]:
    from defusedxml.ElementTree import fromstring

    return [item for item in fromstring(LABEL_CONFIG).iter() if item.tag == "Choice"]
