"""Cells: the predictions of one model in one setting, fold and seed, each in a file of its own that appears whole.

A cell holds what metrics are made of, so that they can be made again, or others, without fitting anything. A run that
was stopped goes on with the cells that are missing; a cell of other votes (another fingerprint) is an error, never
mixed in.

Shape legend: n test votes of the fold, B test units, C classes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.errors import ModelError

_SUFFIX = ".npz"


@dataclass(frozen=True, slots=True, order=True)
class CellKey:
    """Which cell it is."""

    model: str
    setting: str
    seed: int
    fold: int

    @property
    def file_name(self) -> str:
        return f"{re.sub(r'[^A-Za-z0-9@.+-]', '_', self.model)}~{self.setting}~s{self.seed}~f{self.fold}{_SUFFIX}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Predictions of one fold."""

    key: CellKey
    rows: NDArray[np.int32]  # (n,) rows of the problem's votes: all votes of the test tasks
    shown: NDArray[np.bool_]  # (n,) was visible, so it does not score
    p: NDArray[np.float32]  # (n, C)
    units: NDArray[np.int32]  # (B,) codes of the test units
    consensus: NDArray[np.float32]  # (B, C), or (0, C) where the model has none of its own
    notes: Mapping[str, Any] = field(default_factory=dict)  # seconds, weights of base models


class CellStore:
    """The cells of one problem in a folder."""

    def __init__(self, folder: Path, *, fingerprint: str, folds: int) -> None:
        """Raises ModelError when the folder holds cells of another problem or another number of folds."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {"fingerprint": fingerprint, "folds": folds}
        path = folder / "problem.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found != wanted:
                raise ModelError(
                    f"the cells in {folder.name} were made of other votes or folds; choose another folder"
                )
        else:
            _whole(path, json.dumps(wanted).encode())

    def has(self, key: CellKey) -> bool:
        return (self.folder / key.file_name).exists()

    def save(self, cell: Cell) -> None:
        """Write a cell, whole or not at all."""
        key = {"model": cell.key.model, "setting": cell.key.setting, "seed": cell.key.seed, "fold": cell.key.fold}
        meta = json.dumps({"key": key, "notes": dict(cell.notes)}).encode()
        path = self.folder / cell.key.file_name
        aside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with aside.open("wb") as file:
                np.savez_compressed(
                    file, rows=cell.rows, shown=cell.shown, p=cell.p, units=cell.units, consensus=cell.consensus,
                    meta=np.frombuffer(meta, np.uint8),
                )
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)

    def load(self) -> Iterator[Cell]:
        """All cells, in the order of their file names. Raises ModelError for a damaged one."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            try:
                with np.load(path, allow_pickle=False) as data:
                    meta = json.loads(bytes(data["meta"]))
                    yield Cell(
                        key=CellKey(**meta["key"]), rows=data["rows"], shown=data["shown"], p=data["p"],
                        units=data["units"], consensus=data["consensus"], notes=meta["notes"],
                    )
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ModelError(f"the cell {path.name} is damaged; remove it and run again") from error


def _whole(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.write_bytes(data)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
