"""Every format writes what it reads: ids, labels, gold and the other facts come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backend.formats import WHAT, Dataset, FormatError, ReadOptions, detect, open_dataset, open_votes, save_dataset
from model.data.spaces import Value
from model.data.votes import Provenance, Votes
from tests.backend.formats.samples import awkward, plain, rows

RICH = ("csv", "tsv", "parquet", "folder")  # keep every fact
LABEL_STUDIO = ("label-studio", "label-studio-min", "label-studio-csv")


@pytest.mark.parametrize("name", WHAT)
def test_votes_come_back_and_the_format_is_found_by_content(name: str, tmp_path: Path) -> None:
    made = plain(awkward())
    save_dataset(made, tmp_path / "set.data", name)
    assert detect(tmp_path / "set.data") == name
    back = open_dataset(tmp_path / "set.data")
    assert rows(back.votes) == rows(made.votes)
    if name not in ("label-studio-min", "label-studio-csv"):  # those leave out tasks without annotations, and gold
        assert set(back.votes.units) == set(made.votes.units)
        assert back.gold == made.gold


@pytest.mark.parametrize("name", RICH)
def test_rich_formats_keep_repeats_times_weights_and_lead_times(name: str, tmp_path: Path) -> None:
    made = awkward()
    save_dataset(made, tmp_path / "set", name)
    back = open_dataset(tmp_path / "set")
    assert rows(back.votes, "time", "weight") == rows(made.votes, "time", "weight")
    assert made.lead_time_s is not None and back.lead_time_s is not None
    assert sorted(map(str, back.lead_time_s.tolist())) == sorted(map(str, made.lead_time_s.tolist()))


@pytest.mark.parametrize("name", RICH)
def test_rich_formats_keep_kinds_and_controls(name: str, tmp_path: Path) -> None:
    made = awkward(kinds=True, controls=True)
    save_dataset(made, tmp_path / "set", name)
    back = open_dataset(tmp_path / "set")
    assert rows(back.votes) == rows(made.votes)
    assert back.gold["label"] == made.gold["label"]


@pytest.mark.parametrize("name", LABEL_STUDIO)
def test_label_studio_formats_keep_times_and_sets(name: str, tmp_path: Path) -> None:
    made = awkward()
    save_dataset(made, tmp_path / "set", name)
    assert rows(open_votes(tmp_path / "set"), "time") == rows(made.votes, "time")
    values = [Value.of_classes(["b", "a"]), Value.of_classes(["b"])]
    sets = Votes.from_columns(units=["1"], annotators=["1", "2"], values=values, unit=np.zeros(2, int),
                              annotator=np.arange(2), value=np.arange(2))
    save_dataset(Dataset(votes=sets), tmp_path / "sets", name)
    assert rows(open_votes(tmp_path / "sets")) == rows(sets)


@pytest.mark.parametrize("name", LABEL_STUDIO)
def test_answers_repeated_at_one_time_are_annotations_of_their_own(name: str, tmp_path: Path) -> None:
    votes = Votes.from_columns(units=["1"], annotators=["5"], values=[Value.of_class("a"), Value.of_class("b")],
                               unit=np.zeros(3, int), annotator=np.zeros(3, int), value=np.array([0, 1, 0]))
    save_dataset(Dataset(votes=votes), tmp_path / "x", name)
    assert rows(open_votes(tmp_path / "x")) == rows(votes)


def test_label_studio_json_keeps_provenance_content_and_odd_ids(tmp_path: Path) -> None:
    made = awkward()
    n = len(made.votes)
    votes = Votes.from_columns(
        units=made.votes.units, annotators=made.votes.annotators, values=made.votes.values, unit=made.votes.unit,
        annotator=made.votes.annotator, value=made.votes.value, time=made.votes.time,
        provenance=np.arange(n) % 3,  # MANUAL, ACCEPTED, CHANGED
    )
    save_dataset(Dataset(votes=votes, content=made.content), tmp_path / "x.json", "label-studio")
    back = open_dataset(tmp_path / "x.json")
    assert rows(back.votes, "provenance") == rows(votes, "provenance")
    assert {Provenance(int(p)) for p in back.votes.provenance} == {
        Provenance.MANUAL, Provenance.ACCEPTED, Provenance.CHANGED}
    assert back.content == made.content


@pytest.mark.parametrize("name", WHAT)
def test_an_empty_data_set_survives(name: str, tmp_path: Path) -> None:
    nothing = Votes.from_columns(units=[], annotators=[], values=[], unit=np.empty(0, int),
                                 annotator=np.empty(0, int), value=np.empty(0, int))
    save_dataset(Dataset(votes=nothing), tmp_path / "x", name)
    assert len(open_votes(tmp_path / "x", name, ReadOptions(control="label"))) == 0


def test_peerannot_gets_numbers_and_gives_the_names_back(tmp_path: Path) -> None:
    made = plain(awkward())
    save_dataset(made, tmp_path / "x", "peerannot")
    answers = open_votes(tmp_path / "x" / "answers.json")
    assert rows(answers) == rows(made.votes)
    raw = (tmp_path / "x" / "answers.json").read_text()
    assert '"0": {' in raw and "@" not in raw
    assert np.load(tmp_path / "x" / "ground_truth.npy").tolist().count(-1) == len(made.votes.units) - 2


def test_class_order_is_kept(tmp_path: Path) -> None:
    made = plain(awkward())
    for name in ("folder", "peerannot"):
        save_dataset(made, tmp_path / name, name)
        assert open_dataset(tmp_path / name).classes_of("label") == made.classes["label"]


@pytest.mark.parametrize("name", ["peerannot", *LABEL_STUDIO])
def test_what_a_format_cannot_hold_is_a_sentence_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="answers"):
        save_dataset(awkward(kinds=True), tmp_path / "x", name)
    assert list(tmp_path.iterdir()) == []


def test_parquet_of_other_tools(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"Item": [1.0, 2.0, None][:2], "Worker": pa.array([7, 8]), "extra": [None, None],
                      "answer": pa.array([True, False]), "timestamp": pa.array([0, 60_000], pa.timestamp("ms"))})
    pq.write_table(table, tmp_path / "x.parquet")
    votes = open_votes(tmp_path / "x.parquet")
    assert rows(votes, "time") == [
        ("1", "7", "label", "class", '"true"', 0.0), ("2", "8", "label", "class", '"false"', 60.0)]
