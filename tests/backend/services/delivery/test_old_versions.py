"""Which old predictions a delivery deletes, and when."""

from __future__ import annotations

import itertools

import pytest

import backend.services.delivery as delivery_module
from tests.backend.services.delivery.sending import deliver, delivery
from tests.backend.services.politeness import KEY, fill, snapshot, texts, vote
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.workshop import Workshop, silent


def test_the_selection_is_checked_after_the_deletes(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    shop.publish()
    shop.clock.forward(1000)
    shelf.delete_resets = True
    deliver(shop, shelf)
    assert "delete_version" in shelf.calls
    assert shelf.selected == "consensus@r2"


def test_versions_of_others_are_left_alone(shop: Workshop, shelf: PredictionShelf) -> None:
    theirs = [{"task": 1, "result": [], "score": 1.0, "model_version": name}
              for name in ("gpt", "consensus", "annotator:1", "consensus@r9")]
    shelf.predictions.extend(theirs)
    deliver(shop, shelf)
    assert [one for one in shelf.predictions if one in theirs] == theirs


def test_deletes_wait_for_a_quiet_moment(shop: Workshop, shelf: PredictionShelf) -> None:
    deliver(shop, shelf)
    shop.publish()
    shop.clock.forward(1000)
    fill(shop.store, labelled=41)  # somebody submits right now
    waits: list[float] = []
    deliver(shop, shelf, waits=waits)
    assert 1 <= len(waits) <= 10
    assert shelf.of("consensus@r1") == {}


def test_while_people_submit_without_pause_old_versions_stay_for_the_next_time(
    shop: Workshop, shelf: PredictionShelf
) -> None:
    deliver(shop, shelf)
    shop.publish()
    shop.clock.forward(1000)
    labels = itertools.cycle(["rude", "polite"])

    def somebody_submits(seconds: float) -> None:
        shop.clock.forward(seconds)
        shop.store.tasks.take_over(KEY, [snapshot(1, texts()[0], [vote(1, "1", next(labels))])])

    somebody_submits(0.0)
    figures = delivery(shop, shelf, somebody_submits).run(KEY, silent)
    assert figures["versions_left"] >= 1 and figures["versions_deleted"] == 0
    assert shelf.selected == "consensus@r2" and shelf.of("consensus@r1") != {}
    shop.clock.forward(1000)
    shop.publish()
    deliver(shop, shelf)
    assert shelf.of("consensus@r1") == {} == shelf.of("consensus@r2")


def test_too_many_old_versions_go_even_then(
    shop: Workshop, shelf: PredictionShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "LEFT_AT_MOST", 1)
    monkeypatch.setattr(delivery_module, "WAIT_FOR_IDLE_S", 2)
    shelf.predictions.extend({"task": 1, "result": [], "score": 1.0, "model_version": f"annotator:9@r{n}"}
                             for n in range(1, 4))
    for _ in range(4):
        shop.publish()
    shop.clock.forward(1000)
    shop.store.tasks.take_over(KEY, [snapshot(1, texts()[0], [vote(1, "1", "rude"), vote(1, "2", "rude")])])
    figures = delivery(shop, shelf, lambda seconds: None).run(KEY, silent)
    assert (figures["versions_deleted"], figures["versions_left"]) == (2, 1)


def test_old_own_versions_go_when_nothing_relies_on_them(shop: Workshop, shelf: PredictionShelf) -> None:
    for labelled in range(40, 60, 3):
        fill(shop.store, labelled=labelled)
        shop.train()
        shop.clock.forward(1000)
        deliver(shop, shelf)
    for who in "123":
        names = {one["model_version"] for one in shelf.predictions} & {f"annotator:{who}@r{n}" for n in range(99)}
        assert 1 <= len(names) <= 3
        assert set(shelf.newest_own(who)) >= {59, 60}
