"""Backups: made under writes, restored whole or not at all, and nothing that an archive says is believed unseen."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.bootstrap import open_store
from backend.cli import main
from backend.errors import BackupError
from backend.records import JobKind
from backend.services.backup import make_backup, restore_backup, snapshot
from backend.settings import Settings
from tests.backend.services.politeness import KEY
from tests.backend.services.workshop import trained, workshop

ROOT = Path(__file__).parents[3]
DATABASE = "polyvox.sqlite3"
MARKED = {"instance", "webhook_marks"}


def quiet(fraction: float, note: str) -> None:
    assert 0.0 <= fraction <= 1.0 and note


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def source(template: Path, tmp_path: Path) -> Settings:
    shutil.copytree(template, tmp_path / "source")
    (tmp_path / "source" / "secret.key").write_text("k")
    return Settings(data_dir=tmp_path / "source", control_arm_percent=0.0)


@pytest.fixture
def target(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "target", control_arm_percent=0.0)


@pytest.fixture
def archive(source: Settings, tmp_path: Path) -> Path:
    return make_backup(source, tmp_path / "polyvox.tar", quiet).path


def rows(folder: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
                for name in names if name not in MARKED and not name.startswith("sqlite_")}


def answers(folder: Path) -> Any:
    shop = workshop(folder)
    # What the job that `restore` asks for does: people with few votes are known by the content that they judged.
    shop.features.texts([str(task.data["text"]) for batch in shop.store.tasks.iterate(KEY, after_id=0, batch=64)
                         for task in batch])
    tasks = [{"id": 900 + n, "data": {"text": text}} for n, text in enumerate(["please do", "do it now", "thank you"])]
    found = shop.prediction.answer(KEY, None, tasks, deadline_s=60)
    shop.close()
    assert all(found)
    for region in (region for task in found for made in task for region in made["result"]):
        region.pop("id")  # drawn by lot
    return found


def test_a_restored_backup_has_equal_rows_and_gives_the_same_answers(
    source: Settings, target: Settings, archive: Path
) -> None:
    done = restore_backup(target, archive, quiet)
    assert done.files > 3 and done.before is None
    assert rows(target.data_dir) == rows(source.data_dir)
    assert answers(target.data_dir) == answers(source.data_dir)
    assert (target.data_dir / "secret.key").read_text() == "k"
    assert open_store(target).instance.get().moved  # it asks before it delivers


def test_what_is_written_is_for_its_owner_alone(target: Settings, archive: Path) -> None:
    restore_backup(target, archive, quiet)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in target.data_dir.rglob("*") if path.is_file()}
    assert modes == {0o600} and stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.data_dir.rglob("*") if path.is_dir()} == {0o700}


def test_a_backup_under_writes_is_one_state(source: Settings, target: Settings, tmp_path: Path) -> None:
    """A writer moves a sum between two rows: whatever state is seen, the sum is the same."""
    database, stop, written = source.data_dir / DATABASE, threading.Event(), 0
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE sums (id INTEGER PRIMARY KEY, value INTEGER, filling BLOB)")
        connection.executemany("INSERT INTO sums VALUES (?, 0, zeroblob(4000))", [(n,) for n in range(6000)])

    def write() -> None:
        nonlocal written
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            while not stop.is_set():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("UPDATE sums SET value = value + 1 WHERE id = 0")
                connection.execute("UPDATE sums SET value = value - 1 WHERE id = 5999")
                connection.execute("COMMIT")
                written += 1

    writer = threading.Thread(target=write)
    writer.start()
    while not written:
        time.sleep(0.001)
    during: list[int] = []
    try:
        made = make_backup(source, tmp_path / "b.tar", lambda done, note: during.append(written))
    finally:
        stop.set()
        writer.join()
    assert during[-1] > during[0] + 3  # writers did not wait
    restore_backup(target, made.path, quiet)
    with closing(sqlite3.connect(target.data_dir / DATABASE)) as connection:
        first, last = (connection.execute("SELECT value FROM sums WHERE id = ?", [n]).fetchone()[0] for n in (0, 5999))
    assert first > 0 and first + last == 0


def test_a_version_that_is_published_and_pruned_meanwhile_is_in_the_archive(
    source: Settings, target: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, times = snapshot.checkpoints, 0

    def publish_first(path: Path) -> Any:
        nonlocal times
        named, times = real(path), times + 1
        if times == 1:  # between the state of the database and its files
            shop = workshop(source.data_dir)
            for _ in range(4):
                shop.publish()
            shop.close()
        return named

    monkeypatch.setattr("backend.services.backup.making.checkpoints", publish_first)
    made = make_backup(source, tmp_path / "b.tar", quiet)
    assert times == 2 and made.missing == ()
    restore_backup(target, made.path, quiet)
    assert answers(target.data_dir) == answers(source.data_dir)


def test_answering_versions_without_files_are_named(source: Settings, tmp_path: Path) -> None:
    shutil.rmtree(source.model_dir)
    assert len(make_backup(source, tmp_path / "b.tar", quiet).missing) == 1


def test_nothing_is_overwritten_and_nothing_is_left(source: Settings, target: Settings, archive: Path) -> None:
    with pytest.raises(BackupError, match="is there already"):
        make_backup(source, archive, quiet)
    named = make_backup(source, archive.parent, quiet).path
    assert named.name.startswith("polyvox-2") and not list(archive.parent.glob(".*.part"))
    assert not (source.data_dir / ".backup").exists()
    restore_backup(target, archive, quiet)
    with pytest.raises(BackupError, match="is not empty"):
        restore_backup(target, archive, quiet)
    done = restore_backup(target, archive, quiet, replace=True)
    assert done.before is not None and (done.before / DATABASE).is_file() and (done.before / "models").is_dir()


def test_a_folder_in_use_is_not_replaced(target: Settings, archive: Path) -> None:
    restore_backup(target, archive, quiet)
    store = open_store(target)
    store.projects.all()
    with pytest.raises(BackupError, match="still works"):
        restore_backup(target, archive, quiet, replace=True)
    store.close()


def test_a_database_that_is_damaged_beyond_use_can_be_replaced(target: Settings, archive: Path) -> None:
    restore_backup(target, archive, quiet)
    (target.data_dir / DATABASE).write_bytes(b"garbage " * 1000)
    with pytest.raises(BackupError, match="not a database"):
        make_backup(target, archive.parent / "c.tar", quiet)
    done = restore_backup(target, archive, quiet, replace=True)
    assert done.before is not None and (done.before / DATABASE).read_bytes().startswith(b"garbage")
    open_store(target).close()


def test_postgresql_is_told_its_own_way(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="pg_dump"):
        make_backup(Settings(data_dir=tmp_path, database_url="postgresql://u@h/d"), tmp_path / "b.tar", quiet)


# Archives that somebody changed


def members(archive: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(archive) as tar:
        return [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def forged(archive: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> Path:
    found = members(archive)
    change(found)
    with tarfile.open(archive, "w") as tar:
        for member, data in found:
            tar.addfile(member, io.BytesIO(data))
    return archive


def manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]:
    def apply(found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        about = json.loads(found[0][1])
        change(about)
        data = json.dumps(about).encode()
        found[0][0].size = len(data)
        found[0] = (found[0][0], data)
    return apply


def extra(name: str, kind: bytes = tarfile.REGTYPE) -> Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]:
    def apply(found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "/etc/passwd", 1 if kind == tarfile.REGTYPE else 0
        found.append((member, b"x"))
        manifest(lambda about: about["files"].append({"name": name, "size": member.size, "sha256": "0" * 64}))(found)
    return apply


def swapped(found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    found[1] = (found[1][0], found[1][1][:-1] + b"!")


FORGERIES: dict[str, tuple[Callable[[list[Any]], None], str]] = {
    "out of the folder": (extra("models/../../x"), "not one of a backup"),
    "absolute": (extra("/tmp/x"), "not one of a backup"),
    "a name of its own": (extra("polyvox.sqlite3-wal"), "not one of a backup"),
    "a link": (extra("models/x", tarfile.SYMTYPE), "damaged"),
    "a hash": (extra("models/x"), "damaged"),
    "a byte": (swapped, "damaged"),
    "a missing file": (lambda found: found.pop(), "missing"),
    "not in the manifest": (lambda found: found.append((tarfile.TarInfo("models/y"), b"")), "damaged"),
    "twice": (manifest(lambda about: about["files"].append(about["files"][0])), "twice"),
    "a size": (manifest(lambda about: about["files"][0].update(size=1)), "damaged"),
    "too large": (manifest(lambda about: about["files"][0].update(size=10**15)), "are free"),
    "no size": (manifest(lambda about: about["files"][0].update(size=-1)), "damaged"),
    "newer schema": (manifest(lambda about: about.update(schema="9999")), "newer version"),
    "newer form": (manifest(lambda about: about.update(format=2)), "newer version"),
    "another schema": (manifest(lambda about: about.update(schema="0001")), "damaged"),
    "no manifest": (lambda found: found.pop(0), "no backup"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_changed_archive_is_refused_and_changes_nothing(name: str, target: Settings, archive: Path) -> None:
    change, said = FORGERIES[name]
    with pytest.raises(BackupError, match=said):
        restore_backup(target, forged(archive, change), quiet)
    assert [each.name for each in target.data_dir.iterdir()] == [".restore.lock"]
    assert not Path("/tmp/x").exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_archive_that_was_cut_off_is_refused(share: float, target: Settings, archive: Path) -> None:
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(BackupError, match=r"damaged|no backup"):
        restore_backup(target, archive, quiet)
    assert [each.name for each in target.data_dir.iterdir()] == [".restore.lock"]


# kill -9

CHILD = """
import os, signal, sys
from pathlib import Path
from backend.records import JobKind
from backend.services.backup import make_backup, restore_backup
from backend.services.backup import restoring
from backend.settings import Settings
what, folder, archive, moment = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
steps = 0
def step(*_):
    global steps
    steps += 1
    if steps == moment:
        os.kill(os.getpid(), signal.SIGKILL)
if what == "rename":
    real = os.rename
    def rename(*names):
        real(*names)
        step()
    os.rename = rename
    restore_backup(Settings(data_dir=folder), archive, lambda done, note: None, replace=True)
elif what == "restore":
    restore_backup(Settings(data_dir=folder), archive, step, replace=True)
else:
    make_backup(Settings(data_dir=folder), archive, step)
"""


def killed(what: str, folder: Path, archive: Path, moment: int) -> bool:
    """Run it in a process that kills itself at a step; whether it came so far."""
    command = [sys.executable, "-c", CHILD, what, str(folder), str(archive), str(moment)]
    code = subprocess.run(command, cwd=ROOT, env=os.environ).returncode
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("moment", [1, 4, 9])
def test_a_killed_backup_leaves_no_archive_and_hinders_no_other(source: Settings, tmp_path: Path, moment: int) -> None:
    out = tmp_path / "b.tar"
    before = rows(source.data_dir)
    assert killed("backup", source.data_dir, out, moment)
    assert not out.exists() and rows(source.data_dir) == before
    make_backup(source, out, quiet)
    assert out.is_file() and not list(tmp_path.glob(".*.part")) and not (source.data_dir / ".backup").exists()


@pytest.fixture
def occupied(target: Settings, archive: Path) -> Iterator[dict[str, list[Any]]]:
    """A target with another content than the archive's."""
    restore_backup(target, archive, quiet)
    store = open_store(target)
    store.projects.ensure("77.5", title="only here")
    store.close()
    yield rows(target.data_dir)


def test_a_killed_restore_has_changed_nothing(
    target: Settings, archive: Path, occupied: dict[str, list[Any]]
) -> None:
    assert killed("restore", target.data_dir, archive, 3)
    assert rows(target.data_dir) == occupied
    open_store(target).close()
    restore_backup(target, archive, quiet, replace=True)
    assert rows(target.data_dir) != occupied


@pytest.mark.parametrize("moment", [1, 2, 4, 6, 7])
def test_a_restore_that_was_killed_among_its_renames_is_finished_by_the_next(
    source: Settings, target: Settings, archive: Path, occupied: dict[str, list[Any]], moment: int
) -> None:
    assert killed("rename", target.data_dir, archive, moment)
    with pytest.raises(BackupError, match="broken off"):
        open_store(target)
    done = restore_backup(target, archive, quiet)
    assert done.made_at == "" and done.before is not None
    assert rows(target.data_dir) == rows(source.data_dir) and rows(done.before) == occupied
    open_store(target).close()


# The commands


def test_the_commands_end_to_end(source: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str, folder: Path = tmp_path / "there") -> tuple[int, str]:
        code = main(words, {"POLYVOX_DATA_DIR": str(folder)})
        heard = capsys.readouterr()
        return code, heard.out + heard.err

    archive = str(tmp_path / "b.tar")
    assert run("backup", archive, "--without-key", folder=source.data_dir)[0] == 0
    code, said = run("restore", archive)
    assert code == 0 and "run `python -m backend adopt`" in said
    store = open_store(Settings(data_dir=tmp_path / "there"))
    assert store.jobs.pending(KEY, JobKind.ENCODE) is not None  # or answers would lack what a cache knows
    assert not (tmp_path / "there" / "secret.key").exists()
    store.close()
    assert "! This database was copied or restored" in run("status")[1]
    assert run("adopt")[0] == 0
    assert "copied or restored" not in run("status")[1] and "is no copy" in run("adopt")[1]
    code, said = run("restore", archive)
    assert code == 1 and "is not empty" in said
