"""All that training, prediction and delivery need, small and real: SQLite, LMDB, the ladder, a word-hash encoder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import torch

from backend.registry import Registry
from backend.services.features import Features
from backend.services.prediction import Prediction
from backend.services.training import Training
from backend.settings import Settings
from backend.store import SqlStore, open_store
from model.config import LadderConfig, NetworkConfig
from model.ensemble.ladder import Judgement
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import KEY, fill

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)

# LEARNING finds out what the three annotators go by, in about 3 s; HASTY learns next to nothing, in a fraction of one.
LEARNING = LadderConfig(
    folds=2, network=NetworkConfig(width=64, blocks=1, learning_rate=5e-3, batch_units=16, epochs=30, patience=10)
)
HASTY = LadderConfig(folds=1, network=NetworkConfig(width=16, heads=2, blocks=1, epochs=1, warm_epochs=1))


class HandClock:
    """A clock that goes forward when told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def silent(fraction: float, note: str) -> None:
    assert 0.0 <= fraction <= 1.0
    assert note


@dataclass(frozen=True)
class Workshop:
    store: SqlStore
    features: Features
    registry: Registry
    settings: Settings
    clock: HandClock
    encoder: WordHashEncoder
    ladder: LadderConfig

    @property
    def training(self) -> Training:
        return Training(store=self.store, features=self.features, registry=self.registry, settings=self.settings,
                        clock=self.clock, ladder=self.ladder)

    @property
    def prediction(self) -> Prediction:
        return Prediction(store=self.store, features=self.features, registry=self.registry, settings=self.settings,
                          clock=self.clock)

    def having(self, **changes: Any) -> Workshop:
        """The same workshop under other settings."""
        return replace(self, settings=replace(self.settings, **changes))

    def publish(self) -> None:
        """A next version, the same ladder as now: for tests that do not care what was learned."""
        loaded = self.registry.published(KEY)
        assert loaded is not None
        verdict = Judgement(publish=True, reason="The test wants it.", figures={})
        self.registry.save(KEY, loaded.ladder, verdict, loaded.version.figures, loaded.version.changes)

    def close(self) -> None:
        self.features.close()
        self.store.close()

    def train(self) -> dict[str, Any]:
        return self.training.run(KEY, silent)


def workshop(folder: Path, *, ladder: LadderConfig = HASTY, **changes: Any) -> Workshop:
    torch.set_num_threads(1)
    clock, encoder = HandClock(), WordHashEncoder()
    settings = Settings(**{"data_dir": folder, "control_arm_percent": 0.0, **changes})
    store = open_store(settings.database_url, clock=clock)
    return Workshop(
        store=store, features=Features(encoder_factory=lambda: encoder, folder=folder / "features", max_mb=16),
        registry=Registry(store=store, folder=settings.model_dir, clock=clock), settings=settings, clock=clock,
        encoder=encoder, ladder=ladder,
    )


def trained(folder: Path) -> Path:
    """Make a folder with a project of which the first version is published; copy it with `workshop_of`."""
    shop = workshop(folder, ladder=LEARNING)
    fill(shop.store)
    shop.train()
    shop.close()
    return folder


def workshop_of(template: Path, folder: Path) -> Workshop:
    """A workshop over a copy of a trained folder."""
    shutil.copytree(template, folder, dirs_exist_ok=True)
    shop = workshop(folder)
    shop.store.instance.adopt()  # a copy would ask before it delivers
    return shop
