"""Filled matrices: what was given stays, what is predicted says so."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from backend.cli import main
from backend.commands import fill as command
from backend.errors import ClientError
from backend.labeling import parse_config
from backend.services.gaps.answers import FromVersion
from backend.services.gaps.fill import GIVEN, PREDICTED, control_of, filled, labels_of, people_of
from backend.services.statistics.codec import encode
from model.data.numbers import number_bins
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.errors import ModelError
from tests.backend.services.gaps.test_service import gaps_of
from tests.backend.services.politeness import CONFIG, KEY, LABEL_STUDIO_ID, answer, fill, snapshot, texts, vote
from tests.backend.services.workshop import workshop, workshop_of
from tests.backend.web.site_documents import Writer

CONTROL = "politeness"


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


def test_the_probability_of_a_number_is_that_of_the_bin_it_lies_in():
    space = number_bins({Value.of_number(number): 1 for number in (0.0, 1.0, 2.0, 3.0, 4.0)})
    labels, sure = labels_of(space, np.array([[0.46, 0.0, 0.08, 0.0, 0.46], [0.1, 0.7, 0.1, 0.1, 0.0]]), space.classes)
    assert labels == ["2.0", "1.0"]
    np.testing.assert_allclose(sure, [0.08, 0.7])


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
    assert data["project"] == LABEL_STUDIO_ID and data["complete"] is True
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


def test_what_cannot_be_predicted_is_a_sentence(shop, tmp_path, capsys, monkeypatch):
    def fail(*given):
        raise ModelError("the features are of another make")

    monkeypatch.setattr(FromVersion, "answer", fail)
    assert run(shop, "fill", str(LABEL_STUDIO_ID), "-o", str(tmp_path / "x.parquet")) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert said == "polyvox: The gaps cannot be filled: the features are of another make."
    assert not list(tmp_path.glob("*x.parquet*"))


def test_parquet_files_have_groups_of_so_many_cells_and_text_that_utf_8_can_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_CELLS", 8)
    rows = [{"task": at, "a\ud800 label": "half \ud800", "a probability": None, "version": "r1"} for at in range(5)]
    command.write_parquet(list(rows[0]), command.Counted(iter(rows)), tmp_path / "a.parquet")
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [2, 2, 1]
    table = file.read().to_pylist()
    assert table[4] == {"task": 4, "a? label": "half ?", "a probability": None, "version": "r1"}
    command.write_parquet(["task"] * 9, command.Counted(iter(rows)), tmp_path / "wide.parquet")
    assert pq.ParquetFile(tmp_path / "wide.parquet").num_row_groups == 5


def test_masked_numbers_are_those_of_the_pages(shop, tmp_path):
    """The figures know annotator 3 only; the others began later."""
    figures = encode(Writer(annotators=1, key=KEY).annotators())
    shop.store.statistics.replace(KEY, "v1", {("annotators", ""): figures})
    assert run(shop, "fill", str(LABEL_STUDIO_ID), "-o", str(tmp_path / "a.json"), "--mask-names") == 0
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    for task in (1, 2, 5, 6):
        assert {row["annotator"]: row["label"] for row in rows if row["task"] == task} == {
            f"annotator-{place}": answer(who, texts()[task - 1]) for place, who in enumerate("312", 1)}


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
