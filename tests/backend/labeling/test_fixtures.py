"""Every recorded answer of a real Label Studio is read without error, and the votes in it are those that were given."""

import json
from collections import Counter
from pathlib import Path

import pytest

from backend.labeling import parse_config, read_task
from model.data.votes import Provenance
from tests.backend.labeling.configs import SENTIMENT

FOLDER = Path(__file__).parents[2] / "fixtures" / "label-studio"
FILES = sorted(FOLDER.glob("*.json"))
MULTI = """<View><Text name="text" value="$text"/><Choices name="topics" toName="text" choice="multiple">
<Choice value="sport"/><Choice value="technology" alias="T"/></Choices><Rating name="rating" toName="text"/>
<Taxonomy name="tax" toName="text"><Choice value="Plant"/></Taxonomy></View>"""
BOXES = """<View><Image name="img" value="$image"/><RectangleLabels name="box" toName="img"><Label value="Car"/>
</RectangleLabels><Choices name="quality" toName="img"{}><Choice value="blurry"/></Choices></View>"""


def tasks_in(found):
    """Everything that looks like a task with annotations, and lists of annotations as the task they belong to."""
    if isinstance(found, dict):
        if isinstance(found.get("annotations"), list) and "data" in found:
            yield found
        for value in found.values():
            yield from tasks_in(value)
    elif isinstance(found, list):
        if found and all(isinstance(item, dict) and "completed_by" in item for item in found):
            yield {"id": found[0].get("task", 1), "data": {}, "annotations": found}
        for item in found:
            yield from tasks_in(item)


def configs_in(found):
    if isinstance(found, dict):
        for key, value in found.items():
            if key in ("label_config", "schema") and isinstance(value, str):
                yield value
            else:
                yield from configs_in(value)
    elif isinstance(found, list):
        for item in found:
            yield from configs_in(item)


def read(config, task):
    return read_task(config, task, project_id=1, control_arm_percent=10, shown_since=None, known_annotators={})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_task_and_config_of_a_recording_is_read(path):
    recorded = json.loads(path.read_text())
    configs = [parse_config(xml) for xml in configs_in(recorded)] or [parse_config(SENTIMENT)]
    for config in configs:
        for task in tasks_in(recorded):
            snapshot = read(config, task)
            assert len(snapshot.annotations) == len(task["annotations"])
            assert all(not note.annotator.startswith("deleted:") for note in snapshot.annotations)
            config.content(snapshot.task.data)
            config.problems(snapshot.task.data)


def votes_in(name, xml):
    config = parse_config(xml)
    tasks = tasks_in(json.loads((FOLDER / f"{name}.json").read_text()))
    return [vote for task in tasks for vote in read(config, task).votes]


@pytest.mark.parametrize("name", ["api_tasks_fields_all", "export_json_ui", "export_snapshot_ui"])
def test_votes_made_in_the_front_end(name):
    """Completed_by is an id in the first two and an object in the third; a list inside a task counts twice here."""
    votes = {vote.annotation_id: vote for vote in votes_in(name, SENTIMENT)}
    told = {key: (vote.annotator, vote.value.data, vote.provenance.name) for key, vote in votes.items()}
    assert told == {
        14: ("5", "Negative", "MANUAL"),
        15: ("5", "Positive", "MANUAL"),
        16: ("7", "Positive", "ACCEPTED"),
        17: ("5", "Neutral", "ACCEPTED"),
    }


def test_votes_of_an_export_with_everything_in_it():
    """Skipped ones give none; predictions that were turned into annotations are echoes."""
    votes = {vote.annotation_id: vote for vote in votes_in("export_json_text", SENTIMENT)}
    counts = Counter(vote.provenance for vote in votes.values())
    assert counts == {Provenance.MANUAL: 7, Provenance.ACCEPTED: 1}


def test_the_alias_of_a_multiple_choice_is_its_value_again():
    (vote, *_) = votes_in("annotations_list_multi", MULTI)
    assert (vote.control, vote.value.data) == ("topics", ("sport", "technology"))


def test_a_verdict_on_a_region_is_no_vote_on_the_task():
    assert votes_in("annotations_list_bbox", BOXES.format("")) == []
    found = votes_in("annotations_list_bbox", BOXES.format(' perRegion="true"'))
    assert found and all(vote.unit.startswith(f"{vote.task_id}/") and vote.control == "quality" for vote in found)
    assert {vote.value.data for vote in found} == {"blurry"}


def test_predicted_regions_look_like_those_that_the_front_end_makes():
    made = json.loads((FOLDER / "annotations_list_ui.json").read_text())[3]["result"][0]
    control = parse_config(SENTIMENT).control("label")
    (region,) = control.encode(control.decode([made]), 0.83)
    assert {key: made[key] for key in made if key not in ("id", "meta")} == {
        key: region[key] for key in region if key != "id"
    }
