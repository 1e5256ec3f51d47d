"""`set`: a project's own settings, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.cli import main
from backend.services.overrides import settings_of
from backend.settings import SETTINGS, Settings
from backend.store import SqlStore, open_store

KEY = "12.100"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    store.projects.ensure(KEY, title="Politeness [bold]")
    store.projects.ensure("13.100", title="Other")
    yield store
    store.close()


def run(folder: Path, *argv: str, **env: str) -> int:
    return main(["set", *argv], {"POLYVOX_DATA_DIR": str(folder), **env})


def stored(store: SqlStore, key: str = KEY) -> dict[str, Any]:
    project = store.projects.get(key)
    assert project is not None
    return dict(project.settings)


def test_a_setting_holds_for_its_project_alone(store: SqlStore, tmp_path: Path) -> None:
    assert run(tmp_path, "12", "shadow_mode=yes", "POLYVOX_MIN_VOTES= 50", "Consensus_every_s=60") == 0
    assert stored(store) == {"shadow_mode": True, "min_votes": 50, "consensus_every_s": 60.0}
    twelve, thirteen = store.projects.all()
    service = Settings(data_dir=tmp_path)
    assert settings_of(service, twelve).shadow_mode and settings_of(service, twelve).min_votes == 50
    assert settings_of(service, thirteen) == service


def test_a_setting_is_taken_back(store: SqlStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, KEY, "min_votes=50", "deliver=no") == 0
    assert run(tmp_path, KEY, "min_votes=", "own_next_tasks=", POLYVOX_MIN_VOTES="33") == 0
    assert stored(store) == {"deliver": False}
    shown = capsys.readouterr().out.partition("min_votes=33")[2]
    assert shown.startswith("\n") and "deliver=no  (of this project)" in shown


def test_without_assignments_it_shows_what_holds(
    store: SqlStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.projects.update_settings(KEY, {"shadow_mode": True})
    assert run(tmp_path, "12") == 0
    shown = capsys.readouterr().out
    assert "Project 12 Politeness [bold]" in shown and "shadow_mode=yes  (of this project)" in shown
    assert all((f"  {each.name}=" in shown) is each.per_project for each in SETTINGS)


@pytest.mark.parametrize(("assignment", "sentence"), [
    ("min_votes", "NAME=VALUE"), ("=3", "NAME=VALUE"), ("min_vote=3", "min_vote is not a setting that a project can"),
    ("webhook_secret=hush", "webhook_secret is not a setting that a project can override; those are min_votes,"),
    ("webhook_secret=", "webhook_secret is not a setting"), ("encoder=x", "encoder is not a setting"),
    ("min_votes=many", "POLYVOX_MIN_VOTES takes a whole number of at least 1"), ("min_votes=0", "POLYVOX_MIN_VOTES"),
    ("consensus_every_s=nan", "POLYVOX_CONSENSUS_EVERY_S takes"), ("shadow_mode=perhaps", "takes yes or no"),
    ("deliver=yes", "deliver is given twice"),
])
def test_what_cannot_be_used_is_a_sentence_and_stores_nothing(
    store: SqlStore, tmp_path: Path, assignment: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "12", "deliver=no", assignment) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith("polyvox: ") and sentence in error
    assert "hush" not in error and "perhaps" not in error  # it may be a secret in the wrong place
    assert stored(store) == {}


def test_an_override_that_no_project_can_have_any_more_is_named_and_can_be_taken_back(
    store: SqlStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While it is there, all of the project's settings are without effect; so it is not left unsaid."""
    store.projects.update_settings(KEY, {"heldout_percent": 30, "deliver": False})
    assert run(tmp_path, "12", "min_votes=5") != 0
    assert "heldout_percent is not a setting that a project can override" in capsys.readouterr().err
    assert run(tmp_path, "12", "min_votes=5", "heldout_percent=") == 0
    assert stored(store) == {"deliver": False, "min_votes": 5}
