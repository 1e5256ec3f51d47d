"""The registry: pointer and files, damage, pruning, several processes."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.records import Verdict
from backend.registry import Registry
from backend.registry.registry import AUDIT, AUDITS
from backend.store import SqlStore, open_store
from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.audit import audit_evidence
from model.ensemble.ladder import Fit, Judgement, Ladder, LadderConfig, NetworkConfig, TrainingSet, fit
from model.errors import CheckpointError
from tests.backend.encoders import WordHashEncoder

KEY = "12.1764288000"
PUBLISH = Judgement(publish=True, reason="It is better.", figures={})
REJECT = Judgement(publish=False, reason="It is worse.", figures={})


@pytest.fixture(scope="module")
def fitted() -> Fit:
    encoder = WordHashEncoder()
    votes = Votes.from_votes(
        Vote(unit=str(n), annotator=who, control="c", value=Value.of_class("ab"[n % 2]))
        for n in range(12) for who in ("1", "2")
    )
    data = TrainingSet(
        votes=votes, spaces={"c": SingleChoice(("a", "b"))},
        tokens=lambda units: encoder.encode([f"text {int(unit) % 2}" for unit in units]), heldout=lambda unit: False,
    )
    return fit(data, LadderConfig(folds=1, network=NetworkConfig(width=16, heads=2, blocks=1, epochs=1)))


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    store = open_store(f"sqlite:///{tmp_path}/polyvox.sqlite3")
    store.projects.ensure(KEY)
    return store


def publish(registry: Registry, fitted: Fit, judgement: Judgement = PUBLISH) -> str:
    return registry.save(KEY, fitted.ladder, judgement, {"votes": 24}, 24).name


def spoil(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"\x00" * 10)


def test_before_the_first_version_there_is_none(store: SqlStore, tmp_path: Path) -> None:
    registry = Registry(store=store, folder=tmp_path / "models")
    assert registry.published(KEY) is None
    assert registry.current(KEY) is None


def test_a_version_published_by_another_process_is_seen_at_the_next_call(
    store: SqlStore, tmp_path: Path, fitted: Fit
) -> None:
    trainer, web = (Registry(store=store, folder=tmp_path / "models") for _ in range(2))
    publish(trainer, fitted)
    first = web.published(KEY)
    assert first is not None and first.version.name == "r1"
    publish(trainer, fitted)
    second = web.published(KEY)
    assert second is not None and second.version.name == "r2"
    assert second.ladder is not first.ladder
    tokens = WordHashEncoder().encode(["text 1"])
    want = fitted.ladder.predict(tokens, ["1"])["c"].served
    assert abs(second.ladder.predict(tokens, ["1"])["c"].served - want).max() < 1e-6


def test_the_ladder_is_loaded_once_and_the_store_is_asked_each_time(
    store: SqlStore, tmp_path: Path, fitted: Fit
) -> None:
    registry = Registry(store=store, folder=tmp_path / "models")
    publish(registry, fitted)
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: registry.published(KEY), range(32)))
    assert len({id(one.ladder) for one in loaded if one is not None}) == 1
    assert None not in loaded


def test_nobody_waits_for_the_checkpoint_of_another_project(
    store: SqlStore, tmp_path: Path, fitted: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, reading, go_on = "13.5", threading.Event(), threading.Event()
    store.projects.ensure(other)
    registry = Registry(store=store, folder=tmp_path / "models")
    publish(registry, fitted)
    registry.save(other, fitted.ladder, PUBLISH, {}, 1)
    load = Ladder.load

    def slow(folder: Path, *, device: str = "cpu") -> Ladder:
        if folder.parent.name == KEY:
            reading.set()
            assert go_on.wait(20.0)
        return load(folder, device=device)

    monkeypatch.setattr(Ladder, "load", slow)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(registry.published, KEY) for _ in range(2)]
        try:
            assert reading.wait(20.0)
            assert pool.submit(registry.published, other).result(timeout=10.0) is not None
        finally:
            go_on.set()
        first, second = (each.result(timeout=20.0) for each in waiting)
    assert first is not None and second is not None and first.ladder is second.ladder


def test_only_a_few_ladders_stay_in_memory(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    registry = Registry(store=store, folder=tmp_path / "models", in_memory=2)
    keys = [f"{number}.5" for number in range(4)]
    for key in keys:
        store.projects.ensure(key)
        registry.save(key, fitted.ladder, PUBLISH, {}, 1)
        assert registry.published(key) is not None
    assert len(registry._learned) == 2


def test_a_rejected_version_is_recorded_and_does_not_answer(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    registry = Registry(store=store, folder=tmp_path / "models")
    publish(registry, fitted)
    assert publish(registry, fitted, REJECT) == "r2"
    (rejected, _) = store.versions.recent(KEY)
    assert rejected.verdict is Verdict.REJECTED
    assert (rejected.reason, rejected.figures, rejected.changes) == ("It is worse.", {"votes": 24}, 24)
    loaded = registry.published(KEY)
    assert loaded is not None and loaded.version.name == "r1"
    assert len(list((tmp_path / "models" / KEY).iterdir())) == 1


@pytest.mark.parametrize("harm", [spoil, shutil.rmtree], ids=["damaged", "missing"])
def test_where_the_checkpoint_is_unusable_the_previous_version_answers(
    store: SqlStore, tmp_path: Path, fitted: Fit, harm, caplog: pytest.LogCaptureFixture  # type: ignore[no-untyped-def]
) -> None:
    trainer = Registry(store=store, folder=tmp_path / "models")
    publish(trainer, fitted)
    publish(trainer, fitted, REJECT)
    publish(trainer, fitted)
    newest = store.versions.published(KEY)
    assert newest is not None and newest.name == "r3"
    harm(tmp_path / "models" / newest.path)
    clock = [0.0]
    web = Registry(store=store, folder=tmp_path / "models", seconds=lambda: clock[0])
    loaded = web.published(KEY)
    assert loaded is not None and loaded.version.name == "r1"
    assert not web.usable(newest) and web.usable(loaded.version)
    current = web.current(KEY)
    assert current is not None and current.name == "r1"  # /setup and /predict agree
    assert "r3" in caplog.text
    loads = len(caplog.records)
    web.published(KEY)
    assert len(caplog.records) == loads  # not tried again at once
    clock[0] = 1e6
    web.published(KEY)
    assert len(caplog.records) == loads + 1


def test_a_checkpoint_that_was_mended_answers_again(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    folder, clock = tmp_path / "models", [0.0]
    registry = Registry(store=store, folder=folder, seconds=lambda: clock[0])
    publish(registry, fitted)
    version = store.versions.published(KEY)
    assert version is not None
    shutil.move(folder / version.path, tmp_path / "aside")
    assert registry.published(KEY) is None
    assert registry.current(KEY) is None
    shutil.move(tmp_path / "aside", folder / version.path)
    clock[0] = 1e6
    assert registry.published(KEY) is not None
    assert registry.usable(version)


@pytest.mark.parametrize("harm", [spoil, shutil.rmtree], ids=["damaged", "missing"])
def test_all_processes_agree_on_what_is_gone(store: SqlStore, tmp_path: Path, fitted: Fit, harm) -> None:  # type: ignore[no-untyped-def]
    folder, clock = tmp_path / "models", [0.0]
    first, second = (Registry(store=store, folder=folder, seconds=lambda: clock[0]) for _ in range(2))
    publish(first, fitted)
    version = store.versions.published(KEY)
    assert version is not None and second.published(KEY) is not None  # in the memory of one of them
    shutil.copytree(folder / version.path, tmp_path / "aside")
    harm(folder / version.path)
    assert first.published(KEY) is None
    assert second.published(KEY) is second.current(KEY) is None and not second.usable(version)
    shutil.rmtree(folder / version.path, ignore_errors=True)
    shutil.copytree(tmp_path / "aside", folder / version.path)
    clock[0] = 1e6
    assert first.published(KEY) is not None and second.published(KEY) is not None and second.usable(version)


def test_old_checkpoints_are_removed_and_so_is_what_a_crash_left(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    registry = Registry(store=store, folder=tmp_path / "models", keep=2)
    publish(registry, fitted)
    orphan, young = tmp_path / "models" / KEY / "r9-dead", tmp_path / "models" / KEY / ".r9-dead.part"
    orphan.mkdir()
    young.mkdir()
    os.utime(orphan, (time.time() - 7200,) * 2)
    for _ in range(3):
        publish(registry, fitted)
    left = sorted(path.name.partition("-")[0] for path in (tmp_path / "models" / KEY).iterdir() if path != young)
    assert left == ["r3", "r4"]
    assert young.exists()  # somebody may be writing it


def test_what_versions_left_for_audits_outlives_their_checkpoints(
    store: SqlStore, tmp_path: Path, fitted: Fit
) -> None:
    """Later candidates are compared with them; nothing answers from such a version."""
    registry = Registry(store=store, folder=tmp_path / "models", keep=2)
    for _ in range(AUDITS + 2):
        registry.save(KEY, fitted.ladder, PUBLISH, {"votes": 24}, 24, evidence=audit_evidence(fitted))
    versions = store.versions.recent(KEY, limit=100)
    assert [registry.evidence(version) is not None for version in versions] == [True] * AUDITS + [False] * 2
    for version in versions[2:AUDITS]:
        assert [each.name for each in (tmp_path / "models" / version.path).iterdir()] == [AUDIT]
    for version in versions[:2]:
        shutil.rmtree(tmp_path / "models" / version.path)
    assert registry.current(KEY) is None and registry.published(KEY) is None


def test_many_rejections_in_a_row_leave_what_answers_its_files(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    registry = Registry(store=store, folder=tmp_path / "models")
    publish(registry, fitted)
    publish(registry, fitted)
    for folder in (tmp_path / "models" / KEY).iterdir():
        os.utime(folder, (time.time() - 7200,) * 2)
    for _ in range(101):
        publish(registry, fitted, REJECT)
    newest = store.versions.published(KEY)
    assert newest is not None and newest.name == "r2" and (tmp_path / "models" / newest.path).is_dir()
    spoil(tmp_path / "models" / newest.path)
    stands_in = Registry(store=store, folder=tmp_path / "models").published(KEY)
    assert stands_in is not None and stands_in.version.name == "r1"


def test_when_the_files_cannot_be_written_nothing_is_recorded(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    registry = Registry(store=store, folder=tmp_path / "models")
    with pytest.raises(CheckpointError):
        publish(registry, fitted)
    assert store.versions.recent(KEY) == []


@pytest.mark.parametrize("key", ["../../outside", "..", "a/b", "", "12.5\n", "\ud800"])
def test_a_project_key_never_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    from backend.registry.registry import _folder_name

    name = _folder_name(key)
    assert name.isalnum()
    assert (tmp_path / name).resolve().parent == tmp_path.resolve()


def test_a_saved_ladder_is_a_ladder(store: SqlStore, tmp_path: Path, fitted: Fit) -> None:
    registry = Registry(store=store, folder=tmp_path / "models")
    publish(registry, fitted)
    version = store.versions.published(KEY)
    assert version is not None and version.path.startswith(KEY)
    assert Ladder.load(tmp_path / "models" / version.path).annotators == ("1", "2")
