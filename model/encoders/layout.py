"""Tokens of several modalities side by side in one matrix, so that one network reads them all.

Each modality has columns of its own, the last columns say what a token is and where it stands:

    [ text | image | audio ]  [ which modality ]  [ x, y ]  [ sin, cos of the time at three scales ]  [ order ]

Frames of a video have the columns of images, since the same encoder saw them. A network's first layer over this matrix
is a projection for each modality plus an embedding of modality and position.
A piece that is missing has no tokens, hence is masked. Text alone is left as it is.

Shape legend: T tokens, d width of one encoder, W width of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLayout:
    """What the last columns of tokens say."""

    modality: NDArray[np.int64]  # (T,) index into MODALITIES, -1 for a token that says nothing
    order: NDArray[np.int64]  # (T,)
    seconds: NDArray[np.float64]  # (T,) NaN where no time is given or it is not certain

    def pieces(self) -> Iterator[tuple[str, int, NDArray[np.int64]]]:
        """(modality, which one of it, rows) of each piece, in order of tokens."""
        change = np.flatnonzero((np.diff(self.modality) != 0) | (np.diff(self.order) != 0)) + 1
        image = MODALITIES.index("image")
        size = max(int(((self.modality == image) & (self.order == 0)).sum()), 1)  # all images have as many tokens
        for rows in np.split(np.arange(len(self.modality)), change):
            if not len(rows) or self.modality[rows[0]] < 0:
                continue
            several = len(rows) // size if self.modality[rows[0]] == image and len(rows) % size == 0 else 1
            for more, part in enumerate(np.split(rows, several)):  # late images share the last place
                yield MODALITIES[self.modality[rows[0]]], int(self.order[rows[0]]) + more, part


def read_layout(tokens: NDArray[np.float16]) -> ReadLayout:
    """Modality, order and time of wide tokens (T, W), as `Layout.assemble` wrote them."""
    last = tokens[:, -_PLACES - len(MODALITIES) :].astype(np.float64)
    kinds = last[:, : len(MODALITIES)]
    modality = np.where(kinds.any(1), kinds.argmax(1), -1)
    order = np.round(last[:, -1] * _MAX_ORDER).astype(np.int64)
    seconds = np.full(len(tokens), np.nan)
    for kind in ("audio", "video"):
        for piece in np.unique(order[modality == MODALITIES.index(kind)]):
            rows = (modality == MODALITIES.index(kind)) & (order == piece)
            seconds[rows] = _unwound(last[rows, len(MODALITIES) + 2 : -1])
    return ReadLayout(modality=modality, order=order, seconds=seconds)


def _unwound(waves: NDArray[np.float64]) -> NDArray[np.float64]:
    """(T,) times from their sines and cosines (T, 2 scales); NaN where the longest scale cannot tell.

    The longest scale says roughly when, each shorter one refines it. Times that go back, or that leap, come from a
    recording of which only windows were heard, or from one longer than the longest scale can tell.
    """
    periods = [4 * scale for scale in _SCALES_S]
    if not waves.any(1).all():  # no time was given
        return np.full(len(waves), np.nan)
    phase = [
        np.mod(np.arctan2(waves[:, 2 * at], waves[:, 2 * at + 1]) / (2 * np.pi), 1.0) * period
        for at, period in enumerate(periods)
    ]
    found = phase[-1]
    for at in reversed(range(len(periods) - 1)):
        found = phase[at] + np.round((found - phase[at]) / periods[at]) * periods[at]
    found = np.where(found > periods[-1] - 0.1, found - periods[-1], found)  # rounded to just before 0
    steps = np.diff(found)
    typical = np.median(steps[steps > 0]) if (steps > 0).any() else 0.0
    certain = bool((steps > -0.1).all() and (steps <= 3 * typical + 0.2).all() and found[:1].sum() < 60.0)
    return np.maximum(found, 0.0) if certain else np.full(len(found), np.nan)
