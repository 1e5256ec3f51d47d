"""A copy that was not adopted delivers nothing and deletes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.backend.services.delivery.sending import deliver
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.workshop import Workshop, workshop


def test_a_copy_delivers_when_it_is_adopted(template: Path, tmp_path: Path, shelf: PredictionShelf) -> None:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    shop: Workshop = workshop(tmp_path)
    shop.clock.forward(60)
    assert "python -m backend adopt" in deliver(shop, shelf)["reason"]
    assert not shelf.predictions
    shop.store.instance.adopt()
    assert deliver(shop, shelf)["consensus"] > 0
    shop.close()
