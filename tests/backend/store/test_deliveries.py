from dataclasses import replace

from backend.records import Delivery, DeliveryStep, OwnPrediction
from backend.store import SqlStore
from tests.backend.store.samples import KEY, NOON, minutes


def test_the_latest_delivery_is_the_one_that_began_last(store: SqlStore) -> None:
    assert store.deliveries.latest(KEY) is None
    first = Delivery(
        project=KEY, version="consensus@r1", step=DeliveryStep.IMPORT, started_at=NOON, finished_at=None,
        imported_through=120, figures={"imported": 120},
    )
    store.deliveries.save(first)
    assert store.deliveries.latest(KEY) == first
    ended = replace(first, step=DeliveryStep.DONE, finished_at=NOON + minutes(1))
    store.deliveries.save(ended)
    assert store.deliveries.latest(KEY) == ended
    second = replace(first, version="consensus@r2", started_at=NOON + minutes(6))
    store.deliveries.save(second)
    store.deliveries.save(ended)
    assert store.deliveries.latest(KEY) == second


def test_own_predictions_are_overwritten_by_task_and_annotator(store: SqlStore) -> None:
    one = OwnPrediction(task_id=1, annotator="5", version="annotator:5@r1", digest="x")
    two = OwnPrediction(task_id=1, annotator="6", version="annotator:6@r1", digest="y")
    store.deliveries.set_own(KEY, [one, two])
    newer = replace(one, version="annotator:5@r2", digest="z")
    store.deliveries.set_own(KEY, [one, newer])
    assert store.deliveries.own(KEY) == {(1, "5"): newer, (1, "6"): two}
    store.deliveries.set_own(KEY, [])


def test_the_first_time_shown_counts(store: SqlStore) -> None:
    store.deliveries.remember_shown(KEY, [1, 2, 2], at=NOON)
    store.deliveries.remember_shown(KEY, [2, 3], at=NOON + minutes(5))
    assert store.deliveries.shown_since(KEY, [1, 2, 3, 4]) == {1: NOON, 2: NOON, 3: NOON + minutes(5)}
