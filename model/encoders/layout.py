"""Tokens of several modalities side by side in one matrix, so that one network reads them all.

Each modality has columns of its own, the last columns say what a token is and where it stands:

    [ text | image | audio ]  [ which modality ]  [ x, y ]  [ sin, cos of the time at three scales ]  [ order ]

Frames of a video have the columns of images, since the same encoder saw them. A network's first layer over this matrix
is a projection for each modality plus an embedding of modality and position.
A piece that is missing has no tokens, hence is masked. Text alone is left as it is.

Shape legend: T tokens, d width of one encoder, W width of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MODALITIES = ("text", "image", "audio", "video")
_COLUMNS = {"video": "image"}
_SCALES_S = (1.0, 10.0, 100.0)
_PLACES = 2 + 2 * len(_SCALES_S) + 1
_MAX_ORDER = 8  # of the images of one task; later ones share the last place


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens of one text, image, sound or video."""

    modality: str
    tokens: NDArray[np.float16]  # (T, d)
    seconds: NDArray[np.float32] | None = None  # (T,) of sound and video
    grid: bool = False  # tokens are a square grid, row by row
    order: int = 0  # among the pieces of its modality


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the tokens of each modality go."""

    dims: tuple[tuple[str, int], ...]  # (text, image or audio, d)

    @property
    def width(self) -> int:
        """W."""
        return sum(dim for _, dim in self.dims) + len(MODALITIES) + _PLACES

    def assemble(self, pieces: Sequence[Piece]) -> NDArray[np.float16]:
        """(T, W) of all pieces, one after the other; without any, one token that says nothing (T = 1)."""
        if not pieces:
            return np.zeros((1, self.width), np.float16)
        return np.concatenate([self._wide(piece) for piece in pieces])

    def _wide(self, piece: Piece) -> NDArray[np.float16]:
        own = _COLUMNS.get(piece.modality, piece.modality)
        start = sum(dim for _, dim in self.dims[: [name for name, _ in self.dims].index(own)])
        wide = np.zeros((len(piece.tokens), self.width), np.float16)
        wide[:, start : start + piece.tokens.shape[1]] = piece.tokens
        wide[:, -_PLACES - len(MODALITIES) + MODALITIES.index(piece.modality)] = 1.0
        wide[:, -_PLACES:] = _places(piece)
        return wide


def _places(piece: Piece) -> NDArray[np.float16]:
    """(T, P): x and y from -1 to 1 in a grid, the time, the order."""
    places = np.zeros((len(piece.tokens), _PLACES), np.float32)
    if piece.grid and (side := round(len(piece.tokens) ** 0.5)) > 1 and side * side == len(piece.tokens):
        rows, columns = np.divmod(np.arange(len(piece.tokens)), side)
        places[:, 0] = 2 * columns / (side - 1) - 1
        places[:, 1] = 2 * rows / (side - 1) - 1
    if piece.seconds is not None:
        for index, scale in enumerate(_SCALES_S):
            angle = 2 * np.pi * piece.seconds / (4 * scale)
            places[:, 2 + 2 * index] = np.sin(angle)
            places[:, 3 + 2 * index] = np.cos(angle)
    places[:, -1] = min(piece.order, _MAX_ORDER) / _MAX_ORDER
    return places.astype(np.float16)
