"""Files that were fetched, on disk under a bounded size: the least recently used go first.

A file appears whole or not at all (written aside, then renamed), so a killed process leaves at most a file that the
next eviction removes. Several processes may share the folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

_NAME = re.compile(r"[0-9a-f]{64}")
_STALE_S = 3600.0  # a file written aside and not renamed for so long belongs to a process that died


class FileCache:
    """Bytes by key, at most `max_mb` in all (one file may exceed what is left, never the whole)."""

    def __init__(self, folder: Path, *, max_mb: float) -> None:
        self._folder = folder
        self._max_bytes = int(max_mb * 1e6)
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str, fill: Callable[[IO[bytes]], object]) -> bytes:
        """The bytes of a key; `fill` writes them where they are missing. What `fill` raises goes to the caller."""
        path = self._folder / hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        data = _read(path)
        if data is not None:
            return data
        handle, aside = tempfile.mkstemp(dir=self._folder, prefix="aside-")
        try:
            with os.fdopen(handle, "w+b") as file:
                fill(file)
                file.seek(0)
                data = file.read()
            os.replace(aside, path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
        self._evict(keep=path)
        return data

    def _evict(self, keep: Path) -> None:
        files = []
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):  # another process evicts as well
                stat = entry.stat()
                if _NAME.fullmatch(entry.name):
                    files.append((stat.st_mtime_ns, stat.st_size, entry.path))
                elif entry.name.startswith("aside-") and time.time() - stat.st_mtime > _STALE_S:
                    os.unlink(entry.path)
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._max_bytes:
                return
            if path != str(keep):
                with suppress(FileNotFoundError):
                    os.unlink(path)
                total -= size


def _read(path: Path) -> bytes | None:
    """The bytes of a file, marked as used now; None where there is none. An eviction meanwhile does no harm."""
    try:
        with open(path, "rb") as file:
            os.utime(path)
            return file.read()
    except FileNotFoundError:
        return None
