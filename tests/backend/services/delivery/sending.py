"""A delivery into a shelf of predictions, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from backend.ports import LabelStudio
from backend.services.delivery import Delivery
from tests.backend.services.politeness import KEY
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.workshop import Workshop, silent

OPEN = set(range(41, 61))


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


def ask_predict(shop: Workshop, shelf: PredictionShelf, task_id: int, text: str) -> None:
    """Label Studio opens a task, asks /predict and stores what it gets."""
    (live,) = shop.prediction.answer(KEY, None, [{"id": task_id, "data": {"text": text}}], deadline_s=60)
    shelf.predictions.extend({"task": task_id, **one} for one in live)
