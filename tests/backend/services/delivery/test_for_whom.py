"""Who gets predictions of their own, and where nothing is delivered."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.errors import JobFailed
from backend.labeling import in_control_arm, task_in_control_arm
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.delivery.sending import OPEN, deliver
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID, fill, snapshot, texts, vote
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.workshop import Workshop, workshop


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
