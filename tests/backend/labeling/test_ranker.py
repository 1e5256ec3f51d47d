"""Rankings are read from real annotations and kept, with or without buckets; they are not predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backend.labeling import LabelConfig, parse_config
from model.errors import ModelError
from model.spaces import Value, ValueKind

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


def test_nothing_is_predicted() -> None:
    config = config_of()
    (control,) = config.controls
    assert not control.predicted and config.spaces() == {} and control.offered(ranking(("a",))) is None
    with pytest.raises(ModelError, match="not predicted yet"):
        control.encode(ranking(("a",)))
