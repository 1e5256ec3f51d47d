"""In a live project consensus and annotator scores are there after the first votes, before any network.

They must equal what `aggregate` and `identify` find in the project's own export.
"""

from __future__ import annotations

import csv
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
from tests.e2e.polyvox import PATIENCE_S, serve
from tests.e2e.server import LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TASKS = 6
SETTINGS = {"POLYVOX_MIN_VOTES": "10000", "POLYVOX_RECONCILE_EVERY_S": "5"}  # nothing is ever trained


def command(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "backend", *arguments], capture_output=True, text=True, timeout=120,
        env={"POLYVOX_DATA_DIR": str(folder / "none"), "PATH": "/usr/bin:/bin"},
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
        owner.add_ml_backend(project, polyvox.url, "Polyvox")
        for index, account in enumerate(label_studio.annotators[:3]):
            client = label_studio.as_annotator(account)
            for number, task in enumerate(tasks):
                odd = index == 2 and number % 3 == 0
                client.annotate(task, [choice(CONTROL, OBJECT, labels[(number + odd) % 2]["value"])])
        seen = wait_for_scores(polyvox.url, 3 * TASKS)
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

    consensus = seen["consensus"][CONTROL]
    aggregated = rows(tmp_path / "labels.csv")
    assert consensus["tasks"] == len(aggregated) == TASKS
    mean = sum(float(row["confidence"]) for row in aggregated) / TASKS
    assert consensus["mean_confidence"] == pytest.approx(mean, abs=1e-4)
    ours = {each["annotator"]: each["accuracy"] for each in seen["annotator_scores"]}
    (table,) = tmp_path.glob("found*annotators*.csv")
    identified = {row["annotator"]: float(row["accuracy"]) for row in rows(table)}
    assert set(ours) == set(identified) == {str(account.id) for account in label_studio.annotators[:3]}
    assert ours == pytest.approx(identified, abs=1e-4)


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
