"""Real exports of Label Studio, with and without the labeling configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.formats import FormatError, ReadOptions, detect, open_dataset, open_votes
from backend.labeling import parse_config
from tests.backend.formats.samples import rows

RECORDED = Path(__file__).parents[2] / "fixtures" / "label-studio"
SENTIMENT = parse_config("""<View><Text name="text" value="$text"/><Choices name="label" toName="text">
<Choice value="Positive"/><Choice value="Negative"/><Choice value="Neutral"/></Choices></View>""")
MULTI = parse_config("""<View><Text name="text" value="$text"/><Choices name="topics" toName="text" choice="multiple">
<Choice value="sport"/><Choice value="tech" alias="T"/></Choices></View>""")
EXPECTED = [("41", "5", "label", "class", '"Negative"'), ("41", "7", "label", "class", '"Positive"'),
            ("42", "5", "label", "class", '"Positive"'), ("43", "5", "label", "class", '"Neutral"')]


@pytest.mark.parametrize("config", [None, SENTIMENT], ids=["bare", "config"])
@pytest.mark.parametrize(("name", "kind"), [
    ("export_json_ui.json", "label-studio"), ("export_snapshot_ui.json", "label-studio"),
    ("export_json_min_ui.json", "label-studio-min"), ("export_csv_ui.csv", "label-studio-csv"),
])
def test_the_same_project_in_every_export(name: str, kind: str, config: object) -> None:
    assert detect(RECORDED / name) == kind
    options = ReadOptions(label_config=config)  # type: ignore[arg-type]
    dataset = open_dataset(RECORDED / name, options=options)
    assert rows(dataset.votes) == EXPECTED
    assert dataset.timed and dataset.lead_time_s is not None and dataset.lead_time_s.min() > 3
    if config is not None:
        assert dataset.classes == {"label": ("Positive", "Negative", "Neutral")}
    times = open_votes(RECORDED / "export_json_ui.json").time
    assert sorted(dataset.votes.time) == pytest.approx(sorted(times), abs=1e-3)


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("export_*")))
def test_every_recorded_export_is_read(name: str) -> None:
    dataset = open_dataset(RECORDED / name)
    assert set(dataset.content) <= set(dataset.votes.units)


@pytest.mark.parametrize("name", ["export_json_multi.json", "export_json_min_multi.json"])
def test_several_choices_are_a_set_and_aliases_need_the_config(name: str) -> None:
    bare = open_votes(RECORDED / name).of_control("topics")
    assert [bare.values[i].data for i in bare.value] == [("T", "sport")]
    known = open_dataset(RECORDED / name, options=ReadOptions(label_config=MULTI))
    assert [known.votes.values[i].data for i in known.votes.value] == [("sport", "tech")]


def test_skipped_drafts_predictions_and_regions_give_no_vote() -> None:
    assert rows(open_votes(RECORDED / "export_json_explain.json")) == [("18", "6", "label", "class", '"No"')]
    assert len(open_votes(RECORDED / "export_json_bbox.json")) == 0


def annotation(number: int, who: object, label: str, **more: object) -> dict[str, object]:
    return {"id": number, "completed_by": who, "was_cancelled": False, **more, "result": [
        {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]}


def write(tmp_path: Path, *tasks: object) -> Path:
    path = tmp_path / "export.json"
    path.write_text("[\n" + ",\n".join(json.dumps(task) for task in tasks) + "\n]")
    return path


def test_ground_truth_means_nothing_unless_it_is_trusted(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1, "data": {}, "annotations": [
        annotation(1, 5, "Positive"), annotation(2, 6, "Negative", ground_truth=True)]})
    assert len(open_votes(path)) == 2 and not open_dataset(path).gold
    trusting = open_dataset(path, options=ReadOptions(trust_ground_truth=True))
    assert len(trusting.votes) == 1 and trusting.gold == {"label": {"1": "Negative"}}


@pytest.mark.parametrize("config", [None, SENTIMENT], ids=["bare", "config"])
def test_a_skipped_annotation_gives_no_vote_even_with_regions(tmp_path: Path, config: object) -> None:
    skipped = {**annotation(1, 5, "Positive"), "was_cancelled": True}
    path = write(tmp_path, {"id": 1, "data": {}, "annotations": [skipped, annotation(2, 6, "Negative")]})
    options = ReadOptions(label_config=config)  # type: ignore[arg-type]
    assert rows(open_votes(path, options=options)) == [("1", "6", "label", "class", '"Negative"')]


def test_contradicting_ground_truth_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1, "annotations": []}, {"id": 2, "annotations": [
        annotation(1, 5, "a", ground_truth=True), annotation(2, 6, "b", ground_truth=True)]})
    with pytest.raises(FormatError, match="line 3: this task has two different gold labels"):
        open_votes(path, options=ReadOptions(trust_ground_truth=True))


def test_who_an_annotator_is(tmp_path: Path) -> None:
    people = [5, {"id": 6, "email": "x@y.z"}, {"email": "only@mail.de"}, "text", None]
    path = write(tmp_path, {"id": 1, "annotations": [
        annotation(10 + i, who, "a") for i, who in enumerate(people)]})
    assert set(open_votes(path).annotators) == {"5", "6", "only@mail.de", "text", "deleted:14"}


@pytest.mark.parametrize(("tasks", "says"), [
    (({"id": 1, "annotations": []}, {"data": {}, "annotations": []}), "line 3: this task has no id"),
    (({"id": 1, "annotations": []}, 7), "line 3: a task was expected"),
])
def test_malformed_exports_name_the_line(tmp_path: Path, tasks: tuple[object, ...], says: str) -> None:
    with pytest.raises(FormatError, match=says):
        open_votes(write(tmp_path, *tasks))


def test_columns_of_answers_are_asked_for_where_they_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("annotation_id,annotator,id,mood,text\n1,5,41,good,hello\n2,,42,bad,hello\n")
    with pytest.raises(FormatError, match="--control: mood, text"):
        open_votes(path)
    with pytest.raises(FormatError, match="no column colour; it has mood, text"):
        open_votes(path, options=ReadOptions(control="colour"))
    votes = open_votes(path, options=ReadOptions(control="mood"))
    assert votes.controls == ("mood",) and set(votes.annotators) == {"5", "deleted:2"}
