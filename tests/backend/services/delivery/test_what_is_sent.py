"""What a delivery brings to Label Studio, in how many calls, and what is not sent again."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

import backend.services.delivery as delivery_module
from backend.records import DeliveryStep
from backend.services.prediction import Prediction
from tests.backend.services.delivery.sending import OPEN, ask_predict, deliver, label
from tests.backend.services.politeness import KEY, answer, fill, snapshot, texts, vote
from tests.backend.services.shelf import Crash, PredictionShelf
from tests.backend.services.workshop import Workshop


def test_the_first_delivery_brings_the_consensus_and_everybodys_own(shop: Workshop, shelf: PredictionShelf) -> None:
    figures = deliver(shop, shelf)
    assert set(shelf.of("consensus@r1")) == OPEN
    assert shelf.selected == "consensus@r1"
    own = {who: shelf.of(f"annotator:{who}@r1") for who in "123"}
    assert all(set(found) == OPEN for found in own.values())
    right = [label(one) == answer(who, texts()[task - 1]) for who, found in own.items() for task, one in found.items()]
    assert sum(right) / len(right) > 0.9
    assert (figures["consensus"], figures["own"], figures["version"]) == (20, 60, "consensus@r1")
    assert set(shelf.predictions[0]) == {"task", "result", "score", "model_version"}
    recorded = shop.store.deliveries.latest(KEY)
    assert recorded is not None and recorded.step is DeliveryStep.DONE and recorded.finished_at == shop.clock.now
    assert recorded.version == "consensus@r1" and recorded.figures["consensus"] == 20


def test_bulk_and_predict_say_the_same(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    task = {"id": 47, "data": {"text": texts()[46]}}
    (live,) = shop.prediction.answer(KEY, None, [task], deadline_s=60)
    bulk = [shelf.of(one["model_version"])[47] for one in live]
    for ours, theirs in zip(bulk, live, strict=True):
        assert label(ours) == label(theirs)
        assert ours["score"] == pytest.approx(theirs["score"], abs=1e-5)  # both are rounded


def test_large_deliveries_go_in_large_calls(
    shop: Workshop, shelf: PredictionShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "CALL_SIZE", 30)
    monkeypatch.setattr(delivery_module, "CHUNK", 7)
    deliver(shop, shelf)
    assert shelf.calls.count("import_predictions") == 3  # 80 predictions
    assert len(shelf.predictions) == 80
    assert set(shelf.of("consensus@r1")) == OPEN


def test_predictions_are_computed_while_label_studio_stores_others(
    shop: Workshop, shelf: PredictionShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "SMALL_CALL", 8)
    monkeypatch.setattr(delivery_module, "CHUNK", 7)
    third, chunks = threading.Event(), itertools.count(1)
    compute, store = Prediction.compute, shelf.import_predictions

    def computed(*arguments: Any) -> Any:
        if next(chunks) == 3:
            third.set()
        return compute(*arguments)

    def stored(*arguments: Any) -> int:
        assert third.wait(20), "nothing was computed meanwhile"
        return store(*arguments)

    monkeypatch.setattr(Prediction, "compute", computed)
    monkeypatch.setattr(shelf, "import_predictions", stored)
    deliver(shop, shelf)
    assert shelf.calls.count("import_predictions") == 2  # what is ready first, and all that was computed meanwhile
    assert len(shelf.predictions) == 80


def test_that_predictions_can_be_seen_is_remembered_before_they_are_sent(
    shop: Workshop, shelf: PredictionShelf
) -> None:
    shelf.breaks["import_predictions"] = Crash()
    with pytest.raises(Crash):
        deliver(shop, shelf)
    assert shelf.predictions == []
    assert set(shop.store.deliveries.shown_since(KEY, sorted(OPEN))) == OPEN
    assert set(shop.store.deliveries.shown_since(KEY, range(1, 41))) == set()


def test_the_consensus_is_rate_limited_and_own_predictions_are_not(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    shop.store.tasks.take_over(KEY, [snapshot(n, texts()[n - 1], [vote(n, "1", "rude")]) for n in (41, 42)])
    shop.publish()
    shop.clock.forward(100)
    figures = deliver(shop, shelf)
    assert not figures["consensus_due"] and shelf.selected == "consensus@r1"
    assert set(shelf.newest_own("2")) == OPEN
    shop.clock.forward(300)
    assert deliver(shop, shelf)["consensus_due"]
    assert shelf.selected == "consensus@r2"
    assert shelf.of("consensus@r1") == {}


def test_a_forced_delivery_does_not_wait(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    shop.publish()
    shop.clock.forward(1)
    assert deliver(shop, shelf, force=True)["consensus"] == 20
    assert shelf.selected == "consensus@r2"


def test_nothing_is_sent_again_while_nothing_changes(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    before = len(shelf.predictions)
    for force in (False, True):
        shop.clock.forward(1000)
        figures = deliver(shop, shelf, force=force)
        assert (figures["consensus"], figures["own"], figures["own_unchanged"]) == (0, 0, 60)
    assert len(shelf.predictions) == before


def test_own_predictions_are_sent_again_only_where_they_changed(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    old = {who: shelf.newest_own(who) for who in "123"}
    fill(shop.store, labelled=44)
    shop.train()
    shop.clock.forward(1000)
    figures = deliver(shop, shelf)
    assert figures["own"] + figures["own_unchanged"] == 3 * 16
    for who in "123":
        for task in shelf.of(f"annotator:{who}@r2"):
            new = shelf.newest_own(who)[task]
            assert label(new) != label(old[who][task]) or round(new["score"], 1) != round(old[who][task]["score"], 1)
        assert set(shelf.newest_own(who)) >= set(range(45, 61))  # versions that gaps rely on were not deleted


def test_new_tasks_get_their_consensus(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    shop.store.tasks.take_over(KEY, [snapshot(n, f"please bring the file {n}") for n in (61, 62)])
    shop.clock.forward(1000)
    figures = deliver(shop, shelf)
    assert (figures["consensus"], figures["own"]) == (2, 6)
    assert set(shelf.of("consensus@r1")) == OPEN | {61, 62}


def test_predictions_that_were_deleted_by_hand_come_back(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    shelf.predictions.clear()
    shop.clock.forward(1000)
    figures = deliver(shop, shelf)
    assert (figures["consensus"], figures["own"]) == (20, 60)


def test_what_label_studio_got_from_predict_is_not_sent_again(shop: Workshop, shelf: PredictionShelf) -> None:
    ask_predict(shop, shelf, 47, texts()[46])
    deliver(shop, shelf)
    for version in ("consensus@r1", *(f"annotator:{who}@r1" for who in "123")):
        assert set(shelf.of(version)) == OPEN  # no doubles
    shop.store.tasks.take_over(KEY, [snapshot(61, "please bring the file")])
    ask_predict(shop, shelf, 61, "please bring the file")
    shop.clock.forward(1000)
    figures = deliver(shop, shelf)
    assert (figures["own"], figures["own_unchanged"]) == (0, 63)
    assert all(set(shelf.of(f"annotator:{who}@r1")) == OPEN | {61} for who in "123")
    shop.publish()
    shop.clock.forward(1000)
    assert deliver(shop, shelf)["own"] == 2 * 3  # nobody here knows what those of tasks 47 and 61 say


def test_an_edited_task_gets_its_new_prediction_with_the_next_version(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    before = shelf.newest_own("1")[47]
    other = next(text for text in texts() if answer("1", text) != label(before))
    shop.store.tasks.take_over(KEY, [snapshot(47, other)])
    shop.clock.forward(1000)
    deliver(shop, shelf)
    assert shelf.of("annotator:1@r1")[47] == before
    shop.publish()
    shop.clock.forward(1000)
    deliver(shop, shelf)
    assert label(shelf.of("annotator:1@r2")[47]) == label(shelf.newest_own("1")[47]) != label(before)
