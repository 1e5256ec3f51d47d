"""Answers on regions are votes on units of their own, the same for everybody who judged the same region."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from backend.labeling import LabelConfig, parse_config, read_task
from backend.labeling.outside import kept_aside
from backend.records import StoredVote
from backend.services.served import as_votes
from model.data.spaces import Value
from model.data.splits import task_of
from model.data.votes import Provenance
from model.errors import ModelError
from model.learners.registry import CLASSES

CONFIG = """<View><Text name="t" value="$text"/><Labels name="span" toName="t"><Label value="Person"/></Labels>
<View visibleWhen="region-selected"><Choices name="tone" toName="t" perRegion="true"><Choice value="kind"/>
<Choice value="rude"/></Choices></View><Rating name="stars" toName="t" perRegion="true"/></View>"""


def answer(start: int, end: int, key: str, said: Any, name: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": "words", key: said}
    return {"id": f"r{start}", "from_name": name, "to_name": "t", "type": key, "value": value, "origin": "manual"}


def read(config: LabelConfig, *results: list[dict[str, Any]]) -> list[StoredVote]:
    raw = {"id": 7, "data": {"text": "words"}, "annotations": [
        {"id": at, "completed_by": at, "created_at": "2026-11-28T00:00:00Z", "result": result}
        for at, result in enumerate(results, start=1)]}
    return list(read_task(config, raw, project_id=1, control_arm_percent=0.0, shown_since=None,
                          known_annotators={}).votes)


def test_each_region_is_a_unit_that_belongs_to_its_task() -> None:
    config = parse_config(CONFIG)
    first = [answer(0, 5, "choices", ["kind"], "tone"), answer(0, 5, "rating", 4, "stars"),
             answer(9, 12, "choices", ["rude"], "tone")]
    votes = read(config, first, [answer(0, 5, "choices", ["rude"], "tone")])
    told = [(vote.annotator, vote.control, vote.value.data) for vote in votes]
    assert told == [("1", "tone", "kind"), ("1", "tone", "rude"), ("1", "stars", "4"), ("2", "tone", "rude")]
    units = [vote.unit for vote in votes]
    assert units[0] == units[2] == units[3] != units[1] and all(task_of(unit) == "7" for unit in units)


def test_they_are_compared_and_learned_of_regions_and_not_of_tasks() -> None:
    config = parse_config(CONFIG)
    one = [answer(0, 5, "choices", ["kind"], "tone"), answer(9, 12, "choices", ["rude"], "tone")]
    votes = as_votes(read(config, one, one))
    assert config.spaces(votes) == {} and list(config.region_spaces(votes)) == ["tone", "stars"]
    (sentence,) = kept_aside(config, {}, votes)["tone"]
    assert "4 votes on regions with 'tone' are kept, learned, and predicted for regions" in sentence
    assert "judged (2) Krippendorff's alpha is 1.00." in sentence
    (lone,) = kept_aside(config, {}, as_votes(read(config, one)))["tone"]
    assert "no region has two of them yet" in lone
    control = config.control("tone")
    assert control is not None and control.learner == CLASSES and control.offered(Value.of_class("kind")) is None
    with pytest.raises(ModelError, match="answered for each region"):
        control.encode(Value.of_class("kind"))


def test_whole_and_fractional_numbers_are_one_place() -> None:
    config = parse_config(CONFIG)
    units = {vote.unit for x in (10, 10.0, 10.02) for vote in read(config, [
        {"from_name": "tone", "to_name": "t", "value": {"x": x, "choices": ["kind"]}}])}
    assert len(units) == 1


def test_an_answer_without_a_region_is_none_on_a_region() -> None:
    whole = {"from_name": "tone", "to_name": "t", "type": "choices", "value": {"choices": ["kind"]}}
    assert read(parse_config(CONFIG), [whole]) == []


@pytest.mark.parametrize(
    "odd", [{"start": float("nan")}, {"start": [1, [2.04]]}, {"points": {"a": 1}}, {"x": "\ud800"}]
)
def test_odd_geometry_is_a_place_too(odd: dict[str, Any]) -> None:
    region = {"from_name": "tone", "to_name": "t", "value": {**odd, "choices": ["kind"]}}
    (vote,) = read(parse_config(CONFIG), [region])
    assert vote.value == Value.of_class("kind")


@pytest.mark.parametrize(("since", "more", "provenance"), [
    (None, {"lead_time": 3.0}, Provenance.MANUAL),
    (datetime(2026, 11, 1, tzinfo=UTC), {"lead_time": 3.0}, Provenance.ACCEPTED),  # it may be ours
    (None, {"import_id": 4}, Provenance.ACCEPTED),
])
def test_the_origin_of_a_region_says_nothing_of_an_answer_while_nothing_was_shown(
    since: datetime | None, more: dict[str, Any], provenance: Provenance
) -> None:
    made = [answer(0, 5, "choices", ["kind"], "tone") | {"origin": "prediction"}]
    raw = {"id": 7, "data": {"text": "words"}, "annotations": [
        {"id": 1, "completed_by": 1, "created_at": "2026-11-28T00:00:00Z", "result": made, **more}]}
    (vote,) = read_task(parse_config(CONFIG), raw, project_id=1, control_arm_percent=0.0, shown_since=since,
                        known_annotators={}).votes
    assert vote.provenance is provenance and vote.shown is (provenance is Provenance.ACCEPTED)
