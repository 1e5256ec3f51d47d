"""Attention in the regions of predictions: off unless asked for, each annotator's own, and nothing else changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.services.delivery_plan import digest
from backend.services.features import Features
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import CONFIG, KEY
from tests.backend.services.workshop import Workshop, workshop_of

TASKS = [{"id": 501, "data": {"text": "bring kindly the team"}}, {"id": 502, "data": {"text": "call"}}]


@pytest.fixture
def shop(learned: Path, tmp_path: Path) -> Iterator[Workshop]:
    shop = workshop_of(learned, tmp_path)
    yield shop
    shop.close()


def answers(shop: Workshop) -> list[list[dict[str, Any]]]:
    return shop.prediction.answer(KEY, CONFIG, TASKS, deadline_s=20.0)


def bare(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = copy.deepcopy(predictions)
    for prediction in found:
        for region in prediction["result"]:
            region.pop("meta", None)
    return found


def test_without_the_setting_there_is_none(shop: Workshop) -> None:
    assert all("meta" not in region for each in answers(shop) for one in each for region in one["result"])


def test_each_prediction_says_where_its_annotator_looks_and_is_the_same_otherwise(shop: Workshop) -> None:
    plain, told = answers(shop), answers(shop.having(region_attention=True))
    assert [bare(each) for each in told] == plain
    assert [[digest(one) for one in each] for each in told] == [[digest(one) for one in each] for each in plain]
    metas = {one["model_version"]: one["result"][0]["meta"]["attention"] for one in told[0]}
    assert set(metas) == {"annotator:1@r1", "annotator:2@r1", "annotator:3@r1", "consensus@r1"}
    for meta in metas.values():
        weights = [place["weight"] for place in meta["places"]]
        assert meta["version"] == "r1" and weights == sorted(weights, reverse=True) and 0 < sum(weights) <= 1
        assert all(set(place) == {"kind", "piece", "start", "end", "weight"} for place in meta["places"])
    assert len({str(meta) for meta in metas.values()}) == 4  # each looks elsewhere
    one = told[1][0]["result"][0]["meta"]["attention"]["places"]
    assert [(place["start"], place["end"]) for place in one] == [(0, 4)]


def test_an_encoder_that_cannot_say_where_its_tokens_stand_changes_nothing(shop: Workshop) -> None:
    class Mute:
        id, dim = WordHashEncoder().id, 32

        def encode(self, texts: Any) -> Any:
            return WordHashEncoder().encode(texts)

    plain = answers(shop)
    shop.features.close()
    features = Features(encoder_factory=Mute, folder=shop.settings.data_dir / "features", max_mb=16)
    told = shop.having(region_attention=True)
    object.__setattr__(told, "features", features)
    assert answers(told) == plain
    features.close()
