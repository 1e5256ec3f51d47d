"""A project most of whose files are missing: encoding goes on, every task is named, nothing is asked for twice."""

from __future__ import annotations

from pathlib import Path

from backend.bootstrap import media_reader
from backend.services.features import Features
from backend.services.task_encoder import TaskEncoder
from backend.settings import Settings
from benchmarks.missing_media import host, two_passes
from model.encoders.decoders import Inline
from tests.backend.services.test_task_encoder import Pictures, Sounds, Words
from tests.backend.small_services import small_services

TASKS, EVERY = 120, 30


def test_missing_files_are_named_and_hold_up_nothing(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, media_hosts="127.0.0.1", media_private=True)
    encoder = TaskEncoder(
        Words(), reader=media_reader(settings), decoder=Inline(), images=Pictures, sounds=Sounds, names="small"  # type: ignore[arg-type]
    )
    features = Features(encoder_factory=lambda: encoder, folder=tmp_path / "tokens", max_mb=16)
    assert features.failures(["before an encoder is there"]) == {}
    with host(EVERY) as (address, asked):
        first, second = two_passes(small_services(tmp_path, features=features), address, asked, tasks=TASKS)
    there = TASKS // EVERY
    assert (first.requests, first.most) == (TASKS, 1)
    assert first.left_out == TASKS - there and first.ready == there
    assert (second.requests, second.left_out, second.ready) == (0, TASKS - there, there)  # no minute has passed
    features.close()
