"""One consensus: every page, file, command and what Label Studio gets say the same label, to the digit as sure."""

from __future__ import annotations

import csv
import io
import re
from contextlib import contextmanager

import pytest

from backend.app import create_app
from backend.bootstrap import build_services
from backend.cli import main
from backend.commands.predict import predictions
from backend.labeling import parse_config
from backend.report.standalone import report
from backend.report.words import percent
from backend.services.gaps.annotate import annotate
from backend.settings import Settings
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.delivery.sending import deliver, label
from tests.backend.services.gaps.test_annotate import Office
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID, answer, fill, snapshot, texts, vote
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.statistics.crowds import KEY as CROWD
from tests.backend.services.statistics.crowds import START, Project, crowd
from tests.backend.services.workshop import HandClock, silent, trained, workshop, workshop_of

NUMBER = str(LABEL_STUDIO_ID)
PARTLY = {41: "1", 42: "2", 43: "3", 44: "12", 45: "23", 46: "13", 47: "2", 48: "12"}


def _partly_labelled(store):
    """Tasks that only some have labelled, and two on which the votes contradict the habits of who gave them."""
    said = {task: {who: answer(who, texts()[task - 1]) for who in people} for task, people in PARTLY.items()}
    said[44] = {"1": "polite", "2": "rude"}
    said[48] = {"1": "rude", "2": "rude"}
    store.tasks.take_over(KEY, [
        snapshot(task, texts()[task - 1], [vote(task, who, text) for who, text in people.items()])
        for task, people in said.items()
    ])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def shop(folder, tmp_path):
    made = workshop_of(folder, tmp_path / "shop")
    made.features.texts(texts())
    _partly_labelled(made.store)
    made.close()
    return made.settings.data_dir


@contextmanager
def _services(folder):
    """All services over a folder; nothing else may have it open, in this process."""
    made = build_services(Settings(data_dir=folder, control_arm_percent=0), encoder=WordHashEncoder(),
                          clock=HandClock())
    made.statistics.run(KEY, silent)
    yield made
    made.close()


def _command(folder, *arguments):
    assert main(list(arguments), {"POLYVOX_DATA_DIR": str(folder)}) == 0


def _of_api(services, path):
    rows = create_app(services).test_client().get(f"/api/projects/{NUMBER}/{path}").json["rows"]
    return {int(row["unit"]): (row["label"], row["confidence"]) for row in rows}


def _of_csv(text):
    return {int(row["unit"]): (row["label"], float(row["confidence"])) for row in csv.DictReader(io.StringIO(text))}


def _wide(text):
    return {int(row["task"]): (row["consensus"], float(row["consensus probability"]))
            for row in csv.DictReader(io.StringIO(text)) if row["consensus"]}


def _annotated(services):
    project = services.store.projects.get(KEY)
    board = services.gaps.board(project, parse_config(project.label_config))
    office = Office(board.config)
    annotate(board, office, office, at_least=0.0, progress=silent)
    return {task: (label(made[0]), made[0]["result"][0]["score"]) for task, made in office.annotations.items()}


def test_a_version_says_the_same_everywhere(shop, tmp_path):
    with _services(shop) as services:
        found = _of_api(services, "consensus?limit=1000")
        assert set(found) == set(range(1, 49)) and len({sure for _, sure in found.values()}) > 5
        client = create_app(services).test_client()
        assert _of_csv(client.get(f"/api/projects/{NUMBER}/consensus?format=csv").text) == found
        for name in ("hardest", "divided"):
            assert _of_api(services, f"tasks?list={name}&limit=1000").items() <= found.items()
        filled = _wide(client.get(f"/api/projects/{NUMBER}/filled.csv?form=wide").text)
        assert found.items() <= filled.items()
        assert _annotated(services) == filled
        live = services.prediction.answer(
            KEY, None, [{"id": task, "data": {"text": texts()[task - 1]}} for task in found], deadline_s=60)
        assert {task: (label(one[-1]), one[-1]["score"]) for task, one in zip(found, live, strict=True)} == found
        shelf = PredictionShelf()
        deliver(services, shelf)
        said = predictions(services, services.store.projects.get(KEY), list(found))
    _command(shop, "fill", NUMBER, "--wide", "--out", str(tmp_path / "filled.csv"))
    assert _wide((tmp_path / "filled.csv").read_text()) == filled
    assert {row["task"]: (row["predicted"], row["confidence"]) for row in said
            if row["annotator"] == "consensus"} == found
    sent = {task: (label(one), one["score"]) for task, one in shelf.of("consensus@r1").items()}
    assert len(sent) == 20 and {task: each for task, each in sent.items() if task in found} == {
        task: each for task, each in found.items() if task in sent}


def test_pages_and_the_report_show_it(tmp_path):
    project = Project(tmp_path)
    project.give(crowd(1)[0])
    project.run()
    tasks, columns = project.statistics.tasks(CROWD), project.statistics.consensus(CROWD).controls["label"]
    found = dict(zip(map(int, columns.units), zip(columns.labels, columns.confidence, strict=True), strict=True))
    lists = tasks.controls["label"]
    rows = [*lists.hardest, *(case.row for case in lists.divided)]
    assert rows and all((row.label, row.confidence) == found[row.task] for row in rows)
    record = project.store.projects.get(CROWD)
    text = report(project.statistics, project.store, record, mask=False, label_studio="", at=START)
    shown = 0
    for html in re.findall(r'<tr>\s*<th scope="row" class="id">.*?</tr>', text, re.DOTALL):
        task = re.search(r">(\d+)</(?:a|span)>", html)
        if task and 'class="long"' in html and int(task[1]) in {row.task for row in rows}:
            label_text, sure = found[int(task[1])]
            shown += f">{label_text}<" in html and percent(sure) in html
    assert shown >= len({row.task for row in rows})
    project.store.close()


def test_before_the_first_version_too(tmp_path):
    shop = workshop(tmp_path / "fresh")
    fill(shop.store)
    _partly_labelled(shop.store)
    shop.close()
    with _services(shop.settings.data_dir) as services:
        found = _of_api(services, "consensus?limit=1000")
        client = create_app(services).test_client()
        filled = _wide(client.get(f"/api/projects/{NUMBER}/filled.csv?form=wide").text)
        assert found == filled == _annotated(services)
    assert found[48][0] == "rude" and found[48][1] == 1.0  # two of three is the majority, whatever the third says
    assert 0.4 < found[44][1] < 1.0


def test_dawid_skene_stands_beside_it_where_somebody_asks(shop):
    with _services(shop) as services:
        client = create_app(services).test_client()
        plain = client.get(f"/api/projects/{NUMBER}/consensus").json["rows"][0]
        beside = client.get(f"/api/projects/{NUMBER}/consensus?beside=dawid_skene").json["rows"][0]
        refused = client.get(f"/api/projects/{NUMBER}/consensus?beside=glad").status_code
    assert set(plain) == {"unit", "label", "confidence", "votes"}
    assert set(beside) == {*plain, "dawid_skene", "dawid_skene_confidence"}
    assert refused == 400


def test_only_what_changed_is_asked_again(shop, monkeypatch):
    from backend.services.gaps.answers import FromVersion

    asked = []
    usual = FromVersion.answer
    monkeypatch.setattr(FromVersion, "answer", lambda self, tasks, *rest: asked.append(len(tasks)) or usual(
        self, tasks, *rest))
    with _services(shop) as services:
        assert asked == [48]
        services.store.tasks.take_over(KEY, [
            snapshot(41, texts()[40], [vote(41, "1", "polite"), vote(41, "2", "rude")])])
        services.statistics.run(KEY, silent)
    assert asked == [48, 1]


def test_a_class_that_is_taken_out_of_the_config_is_taken_out_of_the_consensus(shop):
    with _services(shop) as services:
        before = _of_api(services, "consensus?limit=1000")
        record = services.store.projects.get(KEY)
        only = record.label_config.replace('<Choice value="rude"/>', "")
        services.store.projects.ensure(KEY, title=record.title, label_config=only)
        services.statistics.run(KEY, silent)
        after = _of_api(services, "consensus?limit=1000")
        live = services.prediction.answer(
            KEY, None, [{"id": task, "data": {"text": texts()[task - 1]}} for task in after], deadline_s=60)
    assert "rude" in {label for label, _ in before.values()}
    assert {task: (label(one[-1]), one[-1]["score"]) for task, one in zip(after, live, strict=True)} == after
