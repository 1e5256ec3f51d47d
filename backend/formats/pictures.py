"""Pictures of a data set: files that its tasks name, as content for an evaluation.

A task names its picture by a path below the folder of the data set; nothing outside that folder is ever opened. A
picture is known by the hash of its bytes, so features are encoded again exactly when a file has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.formats.dataset import Dataset
from backend.formats.errors import FormatError
from model.errors import ContentError

if TYPE_CHECKING:
    from model.encoders.image import ImageEncoder

USUAL = ("image", "img", "picture", "photo")


def picture_field(dataset: Dataset) -> str:
    """The usual name of a field with files of pictures that every task has; empty where there is none."""
    def is_file(value: object) -> bool:
        return isinstance(value, str) and "://" not in value

    return next((name for name in USUAL if dataset.content and all(
        is_file(data.get(name)) for data in dataset.content.values())), "")


def picture_files(dataset: Dataset, folder: Path, field: str) -> dict[str, Path]:
    """unit -> file of every task with votes. Raises FormatError for a picture that is missing or lies elsewhere."""
    root, found = folder.resolve(), {}
    for at in sorted(set(dataset.votes.unit.tolist())):
        unit = dataset.votes.units[at]
        named = dataset.content.get(unit, {}).get(field)
        if not isinstance(named, str) or not named:
            raise FormatError(f"The task {unit} names no picture in {field}.")
        try:
            path = (root / named).resolve()
            there = path.is_file()
        except (ValueError, OSError) as error:  # a zero byte, or a name that no file can have
            raise FormatError(f"What the task {unit} names in {field} can be no file.") from error
        if not path.is_relative_to(root):
            raise FormatError(f"The picture of the task {unit} lies outside the data set.")
        if not there:
            raise FormatError(f"There is no picture {named}, which the task {unit} names in {field}.")
        found[unit] = path
    return found


class PictureFiles:
    """Takes hashes of files for the files: an encoder like any other, of what `keys` names."""

    def __init__(self, files: Mapping[str, Path], encoder: ImageEncoder) -> None:
        self._encoder = encoder
        self.keys = {unit: hashlib.sha256(path.read_bytes()).hexdigest() for unit, path in files.items()}
        self._path = {self.keys[unit]: path for unit, path in files.items()}

    @property
    def id(self) -> str:
        return self._encoder.id

    @property
    def dim(self) -> int:
        return self._encoder.dim

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float16]]:
        """Tokens (T, D) of the files with these hashes. Raises FormatError for one that is no readable picture."""
        found: list[Any] = self._encoder.encode([self._path[key].read_bytes() for key in texts])
        for key, tokens in zip(texts, found, strict=True):
            if isinstance(tokens, ContentError):
                raise FormatError(f"{self._path[key].name}: {tokens}")
        return found
