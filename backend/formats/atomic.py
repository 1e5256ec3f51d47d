"""Files and folders that appear whole or not at all: written aside in the same place, flushed to disk, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` at the end of the block, and disappears when the block raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        _flush(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path, owned: Sequence[str]) -> Iterator[Path]:
    """A folder to write to; its files become those of `path` at the end of the block.

    A folder that exists keeps its other files, but `owned` names that were not written again are removed, so that old
    gold labels never stand beside new votes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    aside.mkdir()
    try:
        yield aside
        written = sorted(aside.iterdir())
        for file in written:
            _flush(file)
        if path.is_dir():
            for name in set(owned) - {file.name for file in written}:
                (path / name).unlink(missing_ok=True)
            for file in written:
                os.replace(file, path / file.name)
        else:
            os.rename(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
