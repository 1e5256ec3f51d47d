"""Puts an archive into a data folder: everything is written beside, compared and flushed before the first name changes.

    .restore/new/       files of the archive, being written
    .restore/complete   they are whole; it holds the name of the folder for what was there before
    before-restore-...  what was there before, if anything was; never deleted here

Killed before `complete`, a restore has changed nothing. Killed after it, the next `restore` goes on with the renames,
and until then nothing opens the folder (`unfinished`). All is inside of the data folder, since that may be the mount
point of a volume, which cannot be renamed. The database gets its name last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from alembic.script import ScriptDirectory

from backend.errors import BackupError
from backend.ports import Clock, Progress, utc_now
from backend.services.backup import archive
from backend.services.backup.archive import DATABASE, KEY, MODELS
from backend.services.backup.making import flush_folder, only_one
from backend.services.backup.snapshot import check, forget_place, in_use, schema
from backend.settings import Settings
from backend.store.migrate import config

STAGE, COMPLETE, NEW, BEFORE = ".restore", "complete", "new", "before-restore-"
RESTORE = "python -m backend restore"
ORDER = (MODELS, KEY, DATABASE)
CACHES = {"features", "media", "huggingface"}  # they fit any database
STAYS = {STAGE, f"{STAGE}.lock", ".backup.lock", "lost+found", *CACHES}
RESERVE = 64 << 20  # bytes of the disk that stay free


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What became of a restore."""

    made_at: str  # of the archive; "" when an earlier restore was finished
    files: int
    before: Path | None  # where the former content is


def unfinished(folder: Path) -> bool:
    """Whether a restore into this data folder was broken off between its renames."""
    return (folder / STAGE / COMPLETE).exists()


def restore_backup(
    settings: Settings, path: Path, progress: Progress, *, replace: bool = False, clock: Clock = utc_now
) -> Restored:
    """Restore an archive into the data folder; or finish an earlier restore that was broken off.

    `replace`: although something is there, which is put aside. Raises BackupError; then nothing was changed.
    """
    folder = settings.data_dir
    _require_one_folder(settings)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with only_one(folder / f"{STAGE}.lock", "Another restore into this folder is running; wait for it."):
        if unfinished(folder):
            return Restored(made_at="", files=0, before=_finish(folder))
        _require_free(folder, replace=replace)
        stage = folder / STAGE
        shutil.rmtree(stage, ignore_errors=True)  # of one that was killed early
        try:
            with archive.opened(path) as source:
                _require_fitting(source.manifest, folder)
                (stage / NEW).mkdir(parents=True, mode=0o700)
                source.extract(stage / NEW, lambda done, note: progress(0.9 * done, note))
            progress(0.9, "checking the database")
            _prepare(stage / NEW / DATABASE, source.manifest.schema)
            _declare_complete(stage, clock())
        finally:
            if not unfinished(folder):
                shutil.rmtree(stage, ignore_errors=True)
        before = _finish(folder)
        return Restored(made_at=source.manifest.made_at, files=len(source.manifest.files), before=before)


def _require_one_folder(settings: Settings) -> None:
    plain = Settings(data_dir=settings.data_dir)
    if (settings.database_url, settings.model_dir) != (plain.database_url, plain.model_dir):
        raise BackupError("A backup is restored into one folder: unset DATABASE_URL and MODEL_DIR for this command, "
                          "and move the database or `models` afterwards if they are to lie elsewhere.")


def _present(folder: Path) -> list[str]:
    """What is in a data folder and belongs to a database."""
    return sorted(each.name for each in folder.iterdir()
                  if each.name not in STAYS and not each.name.startswith(BEFORE))


def _require_free(folder: Path, *, replace: bool) -> None:
    there = _present(folder)
    if there and not replace:
        some = ", ".join(there[:5])
        raise BackupError(f"{folder} is not empty ({some}): restore into another POLYVOX_DATA_DIR, or say --replace, "
                          "which puts what is there aside.")
    if DATABASE in there and in_use(folder / DATABASE):
        raise BackupError(f"A Polyvox still works in {folder}: stop it first; nothing was changed.")


def _require_fitting(manifest: archive.Manifest, folder: Path) -> None:
    known = {each.revision for each in ScriptDirectory.from_config(config()).walk_revisions()}
    if manifest.schema not in known:
        raise BackupError(f"The archive was made by a newer version of Polyvox ({manifest.polyvox}); update Polyvox "
                          "first. Nothing was changed.")
    free = shutil.disk_usage(folder).free
    if manifest.size + RESERVE > free:
        raise BackupError(f"The archive needs {manifest.size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free "
                          f"in {folder}; nothing was changed.")


def _prepare(database: Path, wanted: str) -> None:
    check(database)
    if schema(database) != wanted:
        raise BackupError(archive.DAMAGED.format("its database is not the one that its manifest names"))
    forget_place(database)
    with database.open("rb+") as file:
        os.fsync(file.fileno())


def _declare_complete(stage: Path, now: datetime) -> None:
    """From here on a restore goes forward, whatever happens."""
    for folder in [each for each in stage.rglob("*") if each.is_dir()]:
        flush_folder(folder)
    part = stage / f"{COMPLETE}.part"
    with part.open("w", encoding="utf-8") as file:
        file.write(f"{BEFORE}{now:%Y%m%d-%H%M%S}")
        file.flush()
        os.fsync(file.fileno())
    os.rename(part, stage / COMPLETE)
    flush_folder(stage)


def _finish(folder: Path) -> Path | None:
    """Put what is there aside and the new files in its place; may be broken off anywhere and called again."""
    stage = folder / STAGE
    before = folder / (stage / COMPLETE).read_text(encoding="utf-8")
    for name in list(_former(folder, stage / NEW)):
        before.mkdir(mode=0o700, exist_ok=True)
        os.rename(folder / name, before / name)
    flush_folder(folder)
    for name in ORDER:
        if (stage / NEW / name).exists():
            os.rename(stage / NEW / name, folder / name)
    flush_folder(folder)
    (stage / COMPLETE).unlink()
    shutil.rmtree(stage)
    return before if before.exists() else None


def _former(folder: Path, new: Path) -> Iterator[str]:
    """Names of what was there before; what has its new name already, and so is in `new` no more, is not among it."""
    for name in _present(folder):
        if name not in ORDER or (new / name).exists():
            yield name
