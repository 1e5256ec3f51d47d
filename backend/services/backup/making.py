"""Makes an archive while Polyvox runs.

The database is copied first, at one state. Then the files of the checkpoints that this state names are held by hard
links in a folder of our own, so that a training that publishes meanwhile, and prunes, takes none of them away;
checkpoints never change once they have a name. Should the one that answers be pruned in between, all is begun anew.
The archive is written beside its name, flushed and renamed: under its name there is a whole one or none.

A backup that was killed leaves `.backup` in the data folder and a `.part` file; the next one clears both away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from sqlalchemy.engine import make_url

from backend.errors import BackupError
from backend.ports import Clock, Progress, utc_now
from backend.services.backup import archive
from backend.services.backup.archive import DATABASE, KEY, MODELS, Entry, Manifest
from backend.services.backup.snapshot import Checkpoint, checkpoints, schema, snapshot
from backend.settings import Settings
from backend.telemetry import VERSION

STAGE = ".backup"
CHECKPOINT = "manifest.json"  # every whole checkpoint has it
TRIES = 5
POSTGRES = (
    "The database is on a PostgreSQL server, which has its own backup: first `pg_dump --format=custom "
    "--file=polyvox.dump <DATABASE_URL>`, then copy MODEL_DIR and secret.key, in this order. To restore: `pg_restore` "
    "into an empty database, and copy the files back before Polyvox starts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An archive that was made."""

    path: Path
    files: int
    size: int  # bytes, of the files
    missing: tuple[str, ...]  # answering versions whose files are gone here, too


def make_backup(settings: Settings, out: Path, progress: Progress, *, key: bool = True, clock: Clock = utc_now) -> Made:
    """Write an archive to `out`, or under a name with the time into `out` when that is a folder.

    `key`: with the key of the annotators' tokens, where it is a file. Raises BackupError.
    """
    database = database_file(settings)
    path = _free(out, clock())
    with only_one(settings.data_dir / f"{STAGE}.lock", "Another backup is being made; wait for it."), \
            _empty(settings.data_dir / STAGE) as stage:
        missing = _gather(settings, database, stage, progress)
        if key and (settings.data_dir / KEY).is_file():
            _hold(settings.data_dir / KEY, stage / KEY)
        manifest = _manifest(stage, clock(), progress)
        with _beside(path) as file:
            archive.write(file, manifest, stage, lambda done, note: progress(0.6 + 0.4 * done, note))
    return Made(path=path, files=len(manifest.files), size=manifest.size, missing=tuple(missing))


def database_file(settings: Settings) -> Path:
    """The SQLite file. Raises BackupError where there is none."""
    url = make_url(settings.database_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise BackupError(POSTGRES)
    path = Path(url.database)
    if not path.is_file():
        raise BackupError(f"There is no database at {path}: set POLYVOX_DATA_DIR or DATABASE_URL as for `serve`.")
    return path


@contextlib.contextmanager
def only_one(path: Path, otherwise: str) -> Iterator[None]:
    """Hold a lock file that is free again however this process ends. Raises BackupError with `otherwise`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(otherwise) from None
        yield
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _free(out: Path, now: datetime) -> Path:
    path = out / f"polyvox-{now:%Y%m%d-%H%M%S}.tar" if out.is_dir() else out
    if path.exists():
        raise BackupError(f"{path} is there already; name another file, or a folder.")
    if not path.parent.is_dir():
        raise BackupError(f"There is no folder {path.parent}; make it first.")
    return path


@contextlib.contextmanager
def _empty(folder: Path) -> Iterator[Path]:
    """A new folder, cleared away at the end; what an earlier backup left there goes first."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is whole."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of a backup that was killed
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
        flush_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _gather(settings: Settings, database: Path, stage: Path, progress: Progress) -> list[str]:
    """Put a state of the database and the checkpoints that it names into `stage`; returns those that are not there."""
    for _ in range(TRIES):
        (stage / DATABASE).unlink(missing_ok=True)
        snapshot(database, stage / DATABASE, lambda done, note: progress(0.4 * done, note))
        named = checkpoints(stage / DATABASE)
        missing = [each.path for each in named if not _take(settings.model_dir, each, stage) and each.answers]
        if not missing:
            return []
    return missing


def _take(models: Path, checkpoint: Checkpoint, stage: Path) -> bool:
    """Hold the files of a version; False when they are not there, go away meanwhile, or are left for audits only."""
    source, target = models / checkpoint.path, stage / MODELS / checkpoint.path
    try:
        files = [each for each in source.rglob("*") if each.is_file()]
        shutil.rmtree(target, ignore_errors=True)  # of an earlier try
        for each in files:
            _hold(each, target / each.relative_to(source))
    except FileNotFoundError:
        shutil.rmtree(target, ignore_errors=True)
        return False
    return (target / CHECKPOINT).is_file()


def _hold(source: Path, target: Path) -> None:
    """A hard link, which costs nothing and outlives its source; a copy where the file system has none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _manifest(stage: Path, now: datetime, progress: Progress) -> Manifest:
    """Hash everything that is held."""
    paths = sorted(each for each in stage.rglob("*") if each.is_file())
    entries = []
    for count, path in enumerate(paths, 1):
        name = path.relative_to(stage).as_posix()
        entries.append(Entry(name=name, size=path.stat().st_size, sha256=archive.digest(path)))
        progress(0.4 + 0.2 * count / len(paths), f"hashed {name}")
    return Manifest(polyvox=VERSION, schema=schema(stage / DATABASE), made_at=now.isoformat(), files=tuple(entries))
