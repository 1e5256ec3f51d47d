"""Rankings are read from real annotations, with or without buckets, and written where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backend.labeling import LabelConfig, parse_config
from model.data.spaces import Value, ValueKind
from model.errors import ModelError

REAL = Path(__file__).parents[2] / "fixtures" / "label-studio" / "annotations_list_ranker.json"
BUCKETS = '<Bucket name="best" title="Best"/><Bucket name="worst" title="Worst"/>'


def config_of(inside: str = BUCKETS) -> LabelConfig:
    return parse_config(
        f'<View><Text name="t" value="$text"/><List name="results" value="$items"/>'
        f'<Ranker name="rank" toName="results">{inside}</Ranker></View>'
    )


def ranking(*buckets: tuple[str, ...]) -> Value:
    return Value(ValueKind.RANKING, buckets)


def region(ranker: Any) -> dict[str, Any]:
    return {"from_name": "rank", "to_name": "results", "type": "ranker", "value": {"ranker": ranker}}


def test_a_real_ranking_is_read() -> None:
    (control,) = config_of().controls
    given = [each for annotation in json.loads(REAL.read_text()) for each in annotation["result"]]
    value = control.decode(given)
    assert value == ranking(("i1",), ("i2",), ("i3",))
    assert Value.from_json(value.kind.value, value.to_json()) == value


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ({"_": ["c"], "worst": ["b"], "best": ["a", "d"]}, ranking(("a", "d"), ("b",), ("c",))),
        ({"_": [], "best": [], "worst": ["a"]}, ranking(("a",))),
        (["b", "a"], ranking(("b",), ("a",))),
        ({"_": ["a", "a", None, 3, "b"]}, ranking(("a",), ("a",), ("b",))),
        ({"_": "abc"}, None), ({}, None), ([], None), (None, None), (3, None),
    ],
)
def test_orders_buckets_and_what_is_none(stored: Any, value: Value | None) -> None:
    (control,) = config_of().controls
    assert control.decode([region(stored)]) == value


DATA = {"items": [{"id": "a", "title": "A"}, {"id": "b"}, {"id": 3}, {"id": "a"}, {"title": "no id"}, "odd"]}


def test_an_order_is_written_as_label_studio_shows_it() -> None:
    (control,) = config_of("").controls
    value = ranking(("b",), ("a", "gone"), ("b",))
    assert control.offered(value, DATA) == ranking(("b",), ("a",))
    (region,) = control.encode(value, 0.8125, DATA)
    told = region["from_name"], region["to_name"], region["type"], region["score"]
    assert told == ("rank", "results", "ranker", 0.8125)
    assert region["value"] == {"ranker": {"rank": ["b", "a", "3"]}}  # its list is named like the control, and whole
    assert control.decode([region], DATA) == ranking(("b",), ("a",), ("3",))


@pytest.mark.parametrize("items", [None, "abc", {"id": "a"}, [[]], [{"id": None}], [{"id": True}]])
def test_items_that_are_none_offer_nothing(items: Any) -> None:
    (control,) = config_of("").controls
    assert control.offered(ranking(("a",)), {"items": items}) is None
    with pytest.raises(ModelError, match="cannot show this value"):
        control.encode(ranking(("a",)), None, {"items": items})


def test_the_network_learns_no_orders_and_buckets_are_not_predicted() -> None:
    config = config_of()
    (control,) = config.controls
    assert control.learner == "" and config.spaces() == {} and control.offered(ranking(("a",)), DATA) is None
    with pytest.raises(ModelError, match="cannot show this value"):
        control.encode(ranking(("a",)), None, DATA)


@pytest.mark.parametrize(("items", "said"), [
    ([{"id": "a"}, {"id": 2}], []),
    (None, ["no list of items in '$items'"]),
    ("a, b", ["no list of items in '$items'"]),
    ([], ["fewer than two items"]),
    ([{"id": "a"}, {"id": "a"}], ["the same id for one", "fewer than two items"]),
    ([{"id": "a"}, {"id": "a"}, {"id": "b"}], ["the same id for one"]),
    ([{"id": "a"}, {"id": "b"}, {"title": "c"}, "d", {"id": True}, {"id": None}], ["leaves out 4 of the task's items"]),
    ([{"id": "a"}, 3], ["leaves out 1", "fewer than two items"]),
])
def test_what_keeps_items_from_being_ordered_is_a_sentence(items: object, said: list[str]) -> None:
    alone = parse_config('<View><List name="l" value="$items"/><Ranker name="rank" toName="l"/></View>')
    found = alone.problems({"items": items})
    assert len(found) == len(said) and all(part in sentence for part, sentence in zip(said, found, strict=True))
    beside = parse_config('<View><Text name="t" value="$text"/><List name="l" value="$items"/>'
                          '<Ranker name="rank" toName="l"/></View>')
    assert beside.problems({"items": items, "text": "x"}) == found
    assert beside.problems({"items": items})[1:] == found  # the text is missing too
