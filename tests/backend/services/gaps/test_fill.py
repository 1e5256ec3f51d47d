"""Filled matrices: what was given stays, what is predicted says so."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from backend.cli import main
from backend.errors import ClientError
from backend.labeling import parse_config
from backend.services.gaps.fill import GIVEN, PREDICTED, control_of, filled, labels_of, people_of
from model.spaces import MultipleChoice, SingleChoice
from tests.backend.services.gaps.test_service import gaps_of
from tests.backend.services.politeness import CONFIG, KEY, LABEL_STUDIO_ID, answer, fill, snapshot, texts, vote
from tests.backend.services.workshop import workshop, workshop_of

CONTROL = "politeness"


@pytest.fixture
def shop(template, tmp_path):
    made = workshop_of(template, tmp_path / "shop")
    made.features.texts(texts())
    yield made
    made.close()


def board_of(shop):
    project = shop.store.projects.get(KEY)
    return gaps_of(shop).board(project, parse_config(project.label_config))


def test_votes_stay_and_gaps_are_what_each_would_say(shop):
    board = board_of(shop)
    rows = list(filled(board, CONTROL, people_of(board)))
    assert [row.task for row in rows] == list(range(1, 61))
    right = total = 0
    for row in rows:
        text = texts()[row.task - 1]
        assert [cell.annotator for cell in row.cells] == ["1", "2", "3"]
        for cell in row.cells:
            if row.task <= 40:
                assert (cell.source, cell.probability) == (GIVEN, None)
                assert cell.label == answer(cell.annotator, text)
            else:
                assert cell.source == PREDICTED and 0.5 <= cell.probability <= 1.0
                right, total = right + (cell.label == answer(cell.annotator, text)), total + 1
        assert row.consensus in ("polite", "rude") and 0.0 <= row.confidence <= 1.0
    assert total == 60 and right / total > 0.75, "each is predicted as they label"


def test_only_gaps_and_chunks_of_any_size_say_the_same(shop, monkeypatch):
    board = board_of(shop)
    gaps = [row for row in filled(board, CONTROL, ["1", "2"], only_gaps=True) if row.cells]
    assert [row.task for row in gaps] == list(range(41, 61))
    monkeypatch.setattr("backend.services.gaps.answers.CHUNK", 7)
    again = [row for row in filled(board, CONTROL, ["1", "2"], only_gaps=True) if row.cells]
    assert [[(cell.label, round(cell.probability, 5)) for cell in row.cells] for row in again] == [
        [(cell.label, round(cell.probability, 5)) for cell in row.cells] for row in gaps]


def test_what_is_not_known_is_left_out(template, tmp_path):
    shop = workshop_of(template, tmp_path / "cold")
    board = board_of(shop)
    rows = {row.task: row for row in filled(board, CONTROL, people_of(board))}
    assert not rows[41].cells and rows[41].consensus is None
    assert len(rows[40].cells) == 3
    shop.close()


def test_classes_that_are_gone_are_not_predicted():
    p = np.array([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    assert labels_of(SingleChoice(("a", "b", "c")), p, ["b", "c"])[0] == ["b", "c"]
    labels, sure = labels_of(SingleChoice(("a", "b", "c")), p, ["b", "c"])
    np.testing.assert_allclose(sure, [0.75, 8 / 9])
    labels, sure = labels_of(MultipleChoice(("a", "b", "c")), np.array([[0.9, 0.8, 0.1]]), ["b", "c"])
    assert labels == ["b"]
    np.testing.assert_allclose(sure, [0.8 * 0.9])


def test_a_control_that_does_not_exist(shop):
    with pytest.raises(ClientError, match=CONTROL):
        control_of(board_of(shop), "tone")


def run(shop, *arguments):
    shop.features.close()  # a cache is open once in a process
    folder = str(shop.settings.data_dir)
    return main([*arguments], {"POLYVOX_DATA_DIR": folder})


def test_files_of_every_kind(shop, tmp_path, capsys):
    number = str(LABEL_STUDIO_ID)
    for name in ("a.csv", "a.tsv", "a.json", "a.parquet"):
        assert run(shop, "fill", number, "-o", str(tmp_path / name)) == 0
    assert "nobody has given the label" in capsys.readouterr().out.replace("\n", " ")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "task,control,annotator,name,label,probability,source,version"
    assert len(lines) == 181
    assert sum(line.endswith(",predicted,r1") for line in lines) == 60
    assert (tmp_path / "a.tsv").read_text().replace("\t", ",") == (tmp_path / "a.csv").read_text()
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["version"] == "r1" and "not given by an annotator" in data["about"] and len(data["rows"]) == 180
    table = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert table == data["rows"]
    assert run(shop, "fill", number, "-o", str(tmp_path / "b.csv"), "--only-gaps", "--mask-names") == 0
    masked = (tmp_path / "b.csv").read_text()
    assert masked.count("annotator-1,Annotator 1") == 20 and ",given," not in masked
    assert run(shop, "fill", number, "-o", str(tmp_path / "w.csv"), "--wide") == 0
    head, *wide = (tmp_path / "w.csv").read_text().splitlines()
    assert head.startswith("task,consensus,consensus probability,1 label,1 source,1 probability,2 label")
    assert len(wide) == 60


def test_wrong_usage_is_a_sentence(shop, tmp_path, capsys):
    number = str(LABEL_STUDIO_ID)
    assert run(shop, "fill", number) == 1
    assert run(shop, "fill", number, "-o", "x.doc") == 1
    assert run(shop, "fill", "99", "-o", str(tmp_path / "x.csv")) == 1
    assert run(shop, "fill", number, "-o", str(tmp_path / "x.csv"), "--control", "tone") == 1
    assert capsys.readouterr().err.count("polyvox:") == 4


def test_before_the_first_version_votes_fill_what_they_can(tmp_path):
    shop = workshop(tmp_path / "fresh")
    fill(shop.store, tasks=10, labelled=8)
    shop.store.tasks.take_over(KEY, [snapshot(9, texts()[8], [vote(9, "1", "polite")])])
    assert run(shop, "fill", str(LABEL_STUDIO_ID), "-o", str(tmp_path / "a.csv")) == 0
    rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows if row[6] == PREDICTED] == ["9", "9"]
    assert {row[7] for row in rows if row[6] == PREDICTED} == {"votes alone"}
    shop.store.projects.ensure(KEY, title="Same", label_config=CONFIG)
    shop.close()
