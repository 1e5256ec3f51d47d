"""Bulk delivery: what arrives in Label Studio, what is not sent again, and crashes between any two steps."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import backend.services.delivery as delivery_module
from backend.errors import JobFailed, LabelStudioError
from backend.labeling import in_control_arm, task_in_control_arm
from backend.ports import LabelStudio
from backend.records import DeliveryStep
from backend.services.delivery import Delivery
from backend.services.prediction import Prediction
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID, answer, fill, snapshot, texts, vote
from tests.backend.services.shelf import Crash, PredictionShelf
from tests.backend.services.workshop import NOON, Workshop, silent, trained, workshop, workshop_of

OPEN = set(range(41, 61))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def shop(template: Path, tmp_path: Path) -> Workshop:
    shop = workshop_of(template, tmp_path)
    shop.clock.forward(60)
    return shop


@pytest.fixture
def shelf() -> PredictionShelf:
    return PredictionShelf()


def delivery(shop: Workshop, shelf: PredictionShelf, wait: Callable[[float], None]) -> Delivery:
    return Delivery(
        store=shop.store, label_studio=cast(LabelStudio, shelf), features=shop.features, registry=shop.registry,
        prediction=shop.prediction, settings=shop.settings, clock=shop.clock, wait=wait,
    )


def deliver(shop: Workshop, shelf: PredictionShelf, *, force: bool = False, waits: list[float] | None = None) -> Any:
    def wait(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)
        shop.clock.forward(seconds)

    return delivery(shop, shelf, wait).run(KEY, silent, force=force)


def label(prediction: dict[str, Any]) -> str:
    return str(prediction["result"][0]["value"]["choices"][0])


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


def ask_predict(shop: Workshop, shelf: PredictionShelf, task_id: int, text: str) -> None:
    """Label Studio opens a task, asks /predict and stores what it gets."""
    (live,) = shop.prediction.answer(KEY, None, [{"id": task_id, "data": {"text": text}}], deadline_s=60)
    shelf.predictions.extend({"task": task_id, **one} for one in live)


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


def test_only_the_next_tasks_of_the_most_active_get_own_predictions(shop: Workshop, shelf: PredictionShelf) -> None:
    shop.store.tasks.take_over(KEY, [snapshot(n, texts()[n - 1], [vote(n, "2", "rude")]) for n in (41, 43)])
    deliver(shop.having(own_next_tasks=4, own_max_annotators=2), shelf)
    assert set(shelf.newest_own("2")) == {42, 44, 45, 46}
    assert set(shelf.newest_own("1")) == {41, 42, 43, 44}
    assert shelf.newest_own("3") == {}
    assert set(shelf.of("consensus@r1")) == OPEN


def test_who_has_not_labelled_for_long_gets_none(shop: Workshop, shelf: PredictionShelf) -> None:
    shop.clock.forward(20 * 86_400)
    shop.store.tasks.take_over(KEY, [
        snapshot(41, texts()[40], [vote(41, "1", "rude", updated_at=shop.clock.now)]),
    ])
    deliver(shop, shelf)
    assert shelf.newest_own("1") and not shelf.newest_own("2")
    assert set(shelf.of("consensus@r1")) == set(range(1, 61)) - set(range(1, 42))  # 1 alone is active


def test_control_arm_pairs_get_no_own_prediction_but_the_consensus_stays(
    shop: Workshop, shelf: PredictionShelf
) -> None:
    deliver(shop.having(control_arm_percent=30.0), shelf)
    for who in "123":
        arm = {task for task in OPEN if in_control_arm(LABEL_STUDIO_ID, task, who, 30.0)}
        assert arm
        assert set(shelf.newest_own(who)) == OPEN - arm
    assert set(shelf.of("consensus@r1")) == OPEN
    assert all(one["result"] for one in shelf.predictions)


def test_without_the_middleware_there_is_a_consensus_only_and_none_in_the_arm(
    shop: Workshop, shelf: PredictionShelf
) -> None:
    deliver(shop.having(control_arm_percent=30.0, middleware=False), shelf)
    arm = {task for task in OPEN if task_in_control_arm(LABEL_STUDIO_ID, task, 30.0)}
    assert arm
    assert {one["model_version"] for one in shelf.predictions} == {"consensus@r1"}
    assert {task for task, one in shelf.of("consensus@r1").items() if not one["result"]} == arm
    assert set(shop.store.deliveries.shown_since(KEY, sorted(OPEN))) == OPEN - arm


@pytest.mark.parametrize("changes", [{"shadow_mode": True}, {"deliver": False}])
def test_switched_off_nothing_is_delivered(shop: Workshop, shelf: PredictionShelf, changes: dict[str, bool]) -> None:
    assert "reason" in deliver(shop.having(**changes), shelf, force=True)
    shop.store.projects.update_settings(KEY, changes)
    assert "reason" in deliver(shop, shelf, force=True)
    assert shelf.calls == []
    assert shop.store.deliveries.shown_since(KEY, sorted(OPEN)) == {}


def test_before_the_first_version_there_is_nothing_to_deliver(tmp_path: Path, shelf: PredictionShelf) -> None:
    shop = workshop(tmp_path)
    with pytest.raises(JobFailed, match="unknown"):
        deliver(shop, shelf)
    fill(shop.store)
    assert "no published version" in deliver(shop, shelf)["reason"]
    assert shelf.calls == []


def test_a_version_of_another_encoder_is_not_delivered(shop: Workshop, shelf: PredictionShelf) -> None:
    shop.features._factory = lambda: WordHashEncoder(name="another")
    assert "encoder" in deliver(shop, shelf)["reason"]
    assert shelf.calls == []


def test_tasks_without_text_are_counted_and_skipped(shop: Workshop, shelf: PredictionShelf) -> None:
    shop.store.tasks.take_over(KEY, [snapshot(70, "  ")])
    assert deliver(shop, shelf)["without_text"] == 1
    assert set(shelf.of("consensus@r1")) == OPEN


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
