"""Whether what Polyvox stands on takes writes: its database, and the disks of its folders. For pages and commands.

Both are tried, not guessed: a write transaction is begun and ended without a change, and a small file is written and
removed. Each answer is kept for seconds, so that whoever reads pages cannot make work; every process that is asked
looks for itself and so says the same.

Invariant: nothing is raised, and nothing is left behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sqlalchemy.engine import make_url

from backend.ports import Store
from backend.seldom import Seldom
from backend.settings import Settings

LOCKED_S = 2.0  # a write that waits longer for its turn has somebody before it who stays; ours take less
LOOK_S = 3.0  # how long an answer about the database is kept
DISK_EVERY_S = 8.0  # and one about the disks
PROBE_BYTES = 64 * 1024  # more than what fits beside a file's name or into its last block
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
MEANWHILE = "Until then nothing is learned; events of Label Studio are kept in memory only, and read again later."
CHECKPOINTS = "the folder of checkpoints (MODEL_DIR)"
NO_VERSION = "Until then no new version can be kept."


class StorageWatch:
    """One per process. Safe for threads."""

    def __init__(self, store: Store, settings: Settings, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self.refuses = Seldom(lambda: store.refuses(wait_s=LOCKED_S), every_s=LOOK_S, seconds=seconds)
        self.disks = Seldom(lambda: list(_disks(settings)), every_s=DISK_EVERY_S, seconds=seconds)

    def problems(self) -> list[str]:
        """Sentences on the database and the disks."""
        why = self.refuses()
        return [*([of_database(why)] if why else []), *self.disks()]


def of_database(why: str) -> str:
    """A sentence with its cure; `why` is from `store.patience`."""
    if "locked" in why:
        cure = ("nothing is learned or delivered until it lets go. Look for a backup, a database browser or a stuck "
                "process and end it (for SQLite `fuser -v` on the database file names it, for PostgreSQL "
                "pg_stat_activity); events that come meanwhile are kept and taken in later.")
    elif "full" in why:
        cure = "make room on it, or check it."
    elif "may not" in why:
        cure = "give its file and folder to the user that Polyvox runs as, on a disk that is mounted writable."
    else:
        cure = "start it again, or check DATABASE_URL."
    return f"The database {why}: {cure}"


def _disks(settings: Settings) -> Iterator[str]:
    told: set[int] = set()  # disks; folders that share one are not told of twice
    for folder, name in folders(settings).items():
        there = next(each for each in (folder, *folder.parents) if each.exists())
        disk = there.stat().st_dev
        problem = "" if disk in told else _unwritable(there, name) or _nearly_full(there, name, settings.disk_free_mb)
        if problem:
            told.add(disk)
            yield problem


def folders(settings: Settings) -> Mapping[Path, str]:
    """Where Polyvox writes, and what that is called."""
    found = {settings.data_dir: "the data folder (POLYVOX_DATA_DIR)"}
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and url.database:
        found.setdefault(Path(url.database).absolute().parent, "the database's folder (DATABASE_URL)")
    found.setdefault(settings.model_dir, CHECKPOINTS)
    return found


def _unwritable(folder: Path, name: str) -> str:
    meanwhile = NO_VERSION if name == CHECKPOINTS else MEANWHILE
    try:
        write_probe(folder)
    except OSError as error:
        said = error.strerror or type(error).__name__
        if error.errno in FULL:
            return f"The disk of {name} is full ({said}): make room on it. {meanwhile}"
        if error.errno in FORBIDDEN:
            return (f"Nothing can be written into {name} ({said}): mount it writable, and give it to the user that "
                    f"Polyvox runs as. {meanwhile}")
        return f"Writing into {name} fails ({said}): check its disk and its limits. {meanwhile}"
    return ""


def write_probe(folder: Path) -> None:
    """Write a small file, flush it and remove it. Raises OSError."""
    path = folder / f".write-probe-{os.getpid()}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            left = PROBE_BYTES
            while left:
                left -= os.write(descriptor, bytes(left))
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _nearly_full(folder: Path, name: str, least_mb: float) -> str:
    try:
        free_mb = shutil.disk_usage(folder).free / 2**20
    except OSError:
        return ""
    if free_mb >= least_mb:
        return ""
    return (f"The disk of {name} is nearly full: {free_mb:.0f} MB are left, of the {least_mb:g} that Polyvox wants "
            "(POLYVOX_DISK_FREE_MB). Make room before versions and votes can no longer be written.")
