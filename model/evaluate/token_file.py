"""Tokens of a data set in one file: encoded once, then mapped into the memory of every process that needs them.

Shape legend: U units, T_i tokens of unit i, L = sum of T_i, D dim.
Invariant: the file is named after the encoder and the texts, so it is never read for others; it appears whole.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.encoders import Encoder
from model.errors import ModelError
from model.evaluate.problem import TokensOf

_BATCH = 256
_BLIND_DIM = 8


def tokens_of(
    texts: Mapping[str, str], *, encoder_id: str, encoder: Callable[[], Encoder], folder: Path,
    progress: Callable[[float], None], batch: int = _BATCH,
) -> TokensOf:
    """Tokens of units by id, from the file in `folder`; where it is missing, `encoder` is called and makes it.

    `texts` may be anything that the encoder takes for its content, as long as equal texts mean equal content.
    """
    units = sorted(texts)
    path = folder / f"{_key(encoder_id, units, texts)}.npy"
    if not path.exists():
        _write(path, [texts[unit] for unit in units], encoder(), progress, batch)
    return _reader(units, path)


def no_content(units: Sequence[str]) -> list[NDArray[Any]]:
    """The tokens of a data set without content: every unit looks the same."""
    return [np.ones((1, _BLIND_DIM), np.float16)] * len(units)


def _key(encoder_id: str, units: Sequence[str], texts: Mapping[str, str]) -> str:
    digest = hashlib.sha256(encoder_id.encode())
    for unit in units:
        digest.update(f"\x00{unit}\x01{texts[unit]}".encode("utf-8", "surrogatepass"))
    return f"tokens-{digest.hexdigest()[:20]}"


def _lengths(path: Path) -> Path:
    return path.with_name(f"{path.stem}.lengths.npy")


def _write(
    path: Path, texts: Sequence[str], encoder: Encoder, progress: Callable[[float], None], size: int
) -> None:
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # texts of a batch are of similar length
    found: list[NDArray[np.float16]] = [np.empty((0, 0), np.float16)] * len(texts)
    for start in range(0, len(order), size):
        progress(start / len(order))
        batch = order[start : start + size]
        for at, array in zip(batch, encoder.encode([texts[at] for at in batch]), strict=True):
            found[at] = array
    path.parent.mkdir(parents=True, exist_ok=True)
    # The lengths first: a file of tokens is never there without them.
    for target, array in ((_lengths(path), np.array([len(each) for each in found])), (path, np.concatenate(found))):
        aside = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with aside.open("wb") as file:
                np.save(file, array)
            os.replace(aside, target)
        finally:
            aside.unlink(missing_ok=True)


def _reader(units: Sequence[str], path: Path) -> TokensOf:
    flat = np.load(path, mmap_mode="r", allow_pickle=False)  # (L, D)
    end = np.cumsum(np.load(_lengths(path), allow_pickle=False))
    if len(end) != len(units) or (len(end) and end[-1] != len(flat)):
        raise ModelError(f"the token file {path.name} is damaged; remove it")
    start = np.concatenate([[0], end[:-1]])
    place = {unit: at for at, unit in enumerate(units)}

    def read(names: Sequence[str]) -> list[NDArray[Any]]:
        return [np.asarray(flat[start[place[name]] : end[place[name]]]) for name in names]

    return read
