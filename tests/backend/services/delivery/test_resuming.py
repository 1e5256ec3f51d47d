"""Crashes and refusals between any two steps of a delivery, and versions that overtake it."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

import backend.services.delivery as delivery_module
from backend.errors import JobFailed, LabelStudioError
from backend.records import DeliveryStep
from backend.services.delivery import Delivery
from tests.backend.services.delivery.sending import OPEN, deliver, delivery, label
from tests.backend.services.politeness import KEY, answer, fill, snapshot, texts
from tests.backend.services.shelf import Crash, PredictionShelf
from tests.backend.services.workshop import NOON, Workshop


@pytest.mark.parametrize("where", ["import_predictions", "import_predictions:after"])
def test_a_task_edited_while_its_import_was_interrupted(shop: Workshop, shelf: PredictionShelf, where: str) -> None:
    """The old prediction is not mistaken for the new one, whether or not the import happened."""
    shelf.breaks[where] = Crash()
    with pytest.raises(Crash):
        deliver(shop, shelf)
    before = answer("1", texts()[46])
    other = next(text for text in texts() if answer("1", text) != before)
    shop.store.tasks.take_over(KEY, [snapshot(47, other)])
    deliver(shop, shelf)
    assert (label(shelf.of("annotator:1@r1")[47]) == before) is (where == "import_predictions:after")
    shop.publish()
    shop.clock.forward(1000)
    deliver(shop, shelf)
    assert label(shelf.newest_own("1")[47]) != before


STEPS = [
    "prediction_versions", "import_predictions", "import_predictions:after", "select_version", "select_version:after",
    "delete_version", "delete_version:after", "selected_version",
]


@pytest.mark.parametrize("where", STEPS)
@pytest.mark.parametrize("how", [Crash(), LabelStudioError("Label Studio is down.", retry=True)], ids=["crash", "down"])
def test_a_delivery_that_broke_off_is_resumed_without_doubles(
    shop: Workshop, shelf: PredictionShelf, where: str, how: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "CALL_SIZE", 30)
    monkeypatch.setattr(delivery_module, "CHUNK", 7)
    shelf.predictions.append({"task": 1, "result": [], "score": 1.0, "model_version": "consensus@r1"})
    shop.publish()
    began = shop.clock.now
    shelf.breaks[where] = how
    with pytest.raises((Crash, JobFailed)) as failure:
        deliver(shop, shelf)
    if isinstance(failure.value, JobFailed):
        assert failure.value.retry_in_s is not None and "down" in str(failure.value)
    shop.clock.forward(5)  # well below the rate limit: a resumed one need not wait
    deliver(shop, shelf)
    assert set(shelf.of("consensus@r2")) == OPEN
    assert shelf.selected == "consensus@r2"
    assert shelf.of("consensus@r1") == {}
    assert all(set(shelf.of(f"annotator:{who}@r2")) == OPEN for who in "123")
    recorded = shop.store.deliveries.latest(KEY)
    assert recorded is not None and recorded.step is DeliveryStep.DONE
    assert where == "prediction_versions" or recorded.started_at == began
    shop.clock.forward(1000)
    assert deliver(shop, shelf)["own_unchanged"] == 60


@pytest.mark.parametrize("how", [Crash(), LabelStudioError("No answer in time.", retry=True)], ids=["crash", "slow"])
def test_an_import_that_label_studio_ends_after_it_was_sent_again(
    shop: Workshop, shelf: PredictionShelf, how: BaseException
) -> None:
    shelf.breaks["import_predictions:late"] = how
    with pytest.raises((Crash, JobFailed)):
        deliver(shop, shelf)
    assert shelf.predictions == []
    shop.clock.forward(5)
    assert deliver(shop, shelf)["doubled"] == 4
    for version in ("consensus@r1", *(f"annotator:{who}@r1" for who in "123")):
        assert set(shelf.of(version)) == OPEN  # no doubles
    assert shelf.selected == "consensus@r1"
    shop.clock.forward(1000)
    figures = deliver(shop, shelf)
    assert (figures["own"], figures["own_unchanged"], figures["consensus"]) == (0, 60, 0)


@pytest.mark.parametrize("where", ["delete_version", "delete_version:after", "import_predictions"])
def test_a_crash_while_doubles_are_cleared_loses_nothing(
    shop: Workshop, shelf: PredictionShelf, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.breaks["import_predictions:late"] = Crash()
    with pytest.raises(Crash):
        deliver(shop, shelf)

    drop = Delivery._drop

    def dropping(self: Delivery, this: Any, versions: Any) -> None:
        shelf.breaks[where] = Crash()
        drop(self, this, versions)

    monkeypatch.setattr(Delivery, "_drop", dropping)
    with pytest.raises(Crash):
        deliver(shop, shelf)
    monkeypatch.setattr(Delivery, "_drop", drop)
    deliver(shop, shelf)
    for version in ("consensus@r1", *(f"annotator:{who}@r1" for who in "123")):
        assert set(shelf.of(version)) == OPEN  # no doubles


@pytest.mark.parametrize("where", STEPS)
def test_a_later_delivery_that_broke_off_leaves_what_did_not_change(
    shop: Workshop, shelf: PredictionShelf, where: str
) -> None:
    deliver(shop, shelf)
    fill(shop.store, labelled=42)
    shop.publish()
    shop.clock.forward(1000)
    shelf.breaks[where] = Crash()
    with pytest.raises(Crash):
        deliver(shop, shelf)
    deliver(shop, shelf)
    assert set(shelf.of("consensus@r2")) == set(range(43, 61))
    assert shelf.selected == "consensus@r2"
    assert shelf.of("consensus@r1") == {}
    for who in "123":
        assert set(shelf.newest_own(who)) == OPEN  # relied on, so not deleted
        assert shelf.of(f"annotator:{who}@r2") == {}


def test_an_interrupted_delivery_gives_way_to_a_newer_version(shop: Workshop, shelf: PredictionShelf) -> None:
    shelf.breaks["select_version"] = Crash()
    with pytest.raises(Crash):
        deliver(shop, shelf)
    shop.publish()
    shop.clock.forward(1)
    assert deliver(shop, shelf)["version"] == "consensus@r2"
    assert shelf.selected == "consensus@r2"
    assert shelf.of("consensus@r1") == {}


def test_a_version_published_while_another_is_sent_ends_that_delivery(
    shop: Workshop, shelf: PredictionShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "SMALL_CALL", 8)
    monkeypatch.setattr(delivery_module, "CHUNK", 7)
    store = shelf.import_predictions

    def stored(*arguments: Any) -> int:
        if shelf.calls.count("import_predictions") == 0:
            shop.publish()
        return store(*arguments)

    monkeypatch.setattr(shelf, "import_predictions", stored)
    assert "meanwhile" in deliver(shop, shelf)["reason"]
    assert shelf.calls.count("import_predictions") < 6 and shelf.selected == "Polyvox"
    shop.clock.forward(1)
    assert deliver(shop, shelf)["version"] == "consensus@r2"
    assert set(shelf.of("consensus@r2")) == OPEN and shelf.of("consensus@r1") == {}


def test_where_the_newest_checkpoint_is_lost_the_last_one_is_delivered(shop: Workshop, shelf: PredictionShelf) -> None:
    shop.publish()
    newest = shop.store.versions.published(KEY)
    assert newest is not None and newest.name == "r2"
    shutil.rmtree(shop.settings.model_dir / newest.path)
    assert deliver(shop, shelf)["version"] == "consensus@r1"
    assert set(shelf.of("consensus@r1")) == OPEN and shelf.selected == "consensus@r1"


def test_what_label_studio_refuses_for_good_is_not_retried(shop: Workshop, shelf: PredictionShelf) -> None:
    shelf.breaks["project"] = LabelStudioError("The project is gone.", retry=False, http_status=404)
    with pytest.raises(JobFailed, match="gone") as failure:
        deliver(shop, shelf)
    assert failure.value.retry_in_s is None


def test_stopped_in_the_middle_it_goes_on_later(shop: Workshop, shelf: PredictionShelf) -> None:
    def stop(fraction: float, note: str) -> None:
        if fraction > 0.5:
            raise Crash

    with pytest.raises(Crash):
        delivery(shop, shelf, shop.clock.forward).run(KEY, stop)
    recorded = shop.store.deliveries.latest(KEY)
    assert recorded is not None and recorded.step is DeliveryStep.IMPORT and recorded.started_at == shop.clock.now
    assert recorded.started_at > NOON
    deliver(shop, shelf)
    assert set(shelf.of("consensus@r1")) == OPEN
