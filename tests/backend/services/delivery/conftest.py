"""A project with a published version, and an empty shelf that predictions are delivered to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.workshop import Workshop, trained, workshop_of


@pytest.fixture(scope="package")
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


@pytest.fixture(autouse=True)
def nobody_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three annotators have few votes, and somebody new is moved by each of their own; these tests are about people
    whose predictions stand still while nothing is learned."""
    monkeypatch.setattr("model.coldstart.adapting.LITTLE", 0)
