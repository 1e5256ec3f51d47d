"""Everything is wired from the settings alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backend import bootstrap
from backend.bootstrap import build_queue, build_services, build_supervisor, device_of
from backend.ports import utc_now
from backend.records import JobKind
from backend.settings import Settings
from model.encoders.decoders import Inline
from tests.backend.encoders import WordHashEncoder


def test_builds_everything_and_writes_only_into_its_folder(tmp_path: Path) -> None:
    services = build_services(Settings(data_dir=tmp_path / "data"))
    assert services.settings.data_dir.is_dir()
    assert services.store.projects.all() == []
    assert services.prediction.version("1.1") == "consensus@r0"
    assert build_queue(services).take("me", (), wait_s=0) is None
    services.close()
    assert {path.name for path in tmp_path.iterdir()} == {"data"}


def test_the_data_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)  # of an older version
    build_services(Settings(data_dir=folder)).close()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_two_processes_worth_of_services_share_the_state(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    one, two = build_services(settings), build_services(settings)
    one.store.projects.ensure("1.1", title="Shared")
    assert [each.title for each in two.store.projects.all()] == ["Shared"]
    one.close()
    two.close()


def test_takes_a_given_encoder_and_clock(tmp_path: Path) -> None:
    now = utc_now()
    services = build_services(Settings(data_dir=tmp_path), encoder=WordHashEncoder(8), clock=lambda: now)
    (tokens,) = services.features.texts(["two words"])
    assert tokens.shape == (2, 8)
    assert services.store.jobs.enqueue(JobKind.SYNC, "1.1").created_at == now
    services.close()


def test_a_job_process_beside_the_web_is_for_those_without_redis() -> None:
    assert build_supervisor(Settings()) is not None
    assert build_supervisor(Settings(embedded_jobs=False)) is None
    over_redis = Settings(redis_url="redis://localhost")
    assert build_supervisor(over_redis) is None
    assert build_supervisor(over_redis, asked=True) is not None


def test_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of(Settings(device="cuda:1")) == "cuda:1"
    monkeypatch.setattr(bootstrap, "GPU_DRIVERS", ("/nonexistent",))
    if sys.platform == "linux":
        assert device_of(Settings()) == "cpu"
    monkeypatch.setattr(bootstrap, "GPU_DRIVERS", ("/",))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert device_of(Settings()) == "cuda"


def test_the_encoder_that_ships_along_is_the_default(tmp_path: Path) -> None:
    encoder = bootstrap.load_encoder(Settings(data_dir=tmp_path), Inline())
    assert encoder.dim == 384
    (tokens,) = encoder.encode(["hello"])
    assert tokens.shape[1] == 384
