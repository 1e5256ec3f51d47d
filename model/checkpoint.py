"""Checkpoints: a folder with `arrays.safetensors` and `manifest.json`. Never pickle.

The manifest holds the format version, the caller's JSON, the sha256 of every other file and one of itself: a bit that
flips in a weight or in the name of a class would otherwise answer for the project. (Those that were written before the
end of November 2026 have none of themselves.) A checkpoint is written aside, flushed to disk and renamed, so that a
folder that exists under its final name is whole; `load` checks that anyway, since disks and copies fail.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from model.errors import CheckpointError

FORMAT = 1
ARRAYS = "arrays.safetensors"
MANIFEST = "manifest.json"
SUM = "sha256"  # of the rest of the manifest

Arrays = dict[str, NDArray[Any]]


def save(folder: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Write a checkpoint at `folder`, which must not exist or be empty. Raises CheckpointError where it cannot."""
    folder = Path(folder)
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    blob = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    manifest = {"format": FORMAT, "files": {ARRAYS: hashlib.sha256(blob).hexdigest()}, "meta": dict(meta)}
    manifest = json.loads(_text(manifest))  # as it will be read: numbers as keys become text, and sort otherwise
    try:
        aside.mkdir(parents=True)
        _write(aside / ARRAYS, blob)
        _write(aside / MANIFEST, _text(manifest | {SUM: _sum(manifest)}))
        _flush_folder(aside)
        os.rename(aside, folder)  # replaces an empty folder, never a full one
        _flush_folder(folder.parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise CheckpointError(f"the checkpoint {folder.name} cannot be written: {error.strerror}") from error


def load(folder: Path) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and JSON of a checkpoint. Raises CheckpointError when it is missing, damaged or of another format."""
    folder = Path(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        blob = (folder / ARRAYS).read_bytes()
    except OSError as error:
        raise CheckpointError(f"the checkpoint {folder.name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the manifest of checkpoint {folder.name} is damaged") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"the checkpoint {folder.name} has a format that this version cannot read")
    files, meta = manifest.get("files"), manifest.get("meta")
    if not isinstance(files, dict) or not isinstance(meta, dict) or not _fits(manifest):
        raise CheckpointError(f"the manifest of checkpoint {folder.name} is damaged")
    if files.get(ARRAYS) != hashlib.sha256(blob).hexdigest():
        raise CheckpointError(f"the arrays of checkpoint {folder.name} are damaged: sha256 differs from the manifest")
    try:
        return load_arrays(blob), meta
    except SafetensorError as error:
        raise CheckpointError(f"the arrays of checkpoint {folder.name} cannot be decoded") from error


def _fits(manifest: dict[str, Any]) -> bool:
    """Whether a manifest is what was written. One without a sum has nothing else that is unknown: no flipped name."""
    rest = {name: value for name, value in manifest.items() if name != SUM}
    return set(rest) == {"format", "files", "meta"} and manifest.get(SUM, _sum(rest)) == _sum(rest)


def _sum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(manifest)).hexdigest()


def _text(manifest: Mapping[str, Any]) -> bytes:
    # A name of a class may hold half a surrogate pair where a damaged file does; what was saved never does.
    return json.dumps(manifest, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


def _write(path: Path, blob: bytes) -> None:
    with path.open("wb") as file:
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
