"""What an explanation can point at: words of a text, cells of a picture, moments of a sound, frames of a video.

A place is what a person can look at; one or more tokens stand for it. Which token belongs where is read from the tokens
themselves (`model.encoders.layout` writes modality, order, grid and time into their last columns) and, for text, from
where the tokenizer found them. Tokens that stand for no place (the special ones of a text or picture encoder) have the
place -1. Long texts and sounds have fewer, wider places: about `MOST` of each piece.

Invariants: places are in order of tokens; a grapheme (an emoji of several code points, a letter with its marks) is
never cut; text that no token was made from (the middle of a long one) is in no place.

Shape legend: T tokens of a task, P places.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.encoders.layout import read_layout

MOST = 64  # places of one text or sound (one more where the middle of a text is unread)
MOST_A_SIDE = 10  # cells of a picture
_TOKENS_A_WORD = 8  # scripts without spaces have no words; their tokens are joined up to here
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One place; only the fields of its kind are set."""

    kind: str  # "text", "image", "audio" or "video"
    piece: int = 0  # which of the task's texts, images ... it lies in
    start: int | None = None  # characters of the text, from (inclusive) and to (exclusive)
    end: int | None = None
    row: int | None = None  # of `side` x `side` cells
    column: int | None = None
    side: int | None = None
    seconds: float | None = None  # the middle of the moment; None where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """All places of a task."""

    places: tuple[Place, ...]
    of_token: NDArray[np.int64]  # (T,) index of the place, -1 for none

    def __len__(self) -> int:
        return len(self.places)

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights (..., T) of tokens summed by place, (..., P)."""
        belongs = self.of_token[:, None] == np.arange(len(self.places))  # (T, P)
        return np.asarray(weights @ belongs.astype(np.float64))

    def stay(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which tokens (..., T) are left when the places `kept` (..., P) are; those without a place always are."""
        return np.asarray(np.where(self.of_token >= 0, kept[..., np.maximum(self.of_token, 0)], True))


def text_places(text: str, spans: NDArray[np.integer], *, most: int = MOST) -> Places:
    """Words of a text whose tokens stand at `spans` (T, 2), joined where there are more than `most`; an empty span is
    no place."""
    groups: list[list[int]] = []
    for token, (start, end) in enumerate(spans.tolist()):
        if end <= start:
            continue
        before = int(spans[groups[-1][-1]][1]) if groups else -1
        if groups and before == start and _joined(text, start, len(groups[-1])):
            groups[-1].append(token)
        else:
            groups.append([token])
    of_token = np.full(len(spans), -1, np.int64)
    places: list[Place] = []
    for group in _merged(groups, [bool(text[spans[one[-1]][1] : spans[other[0]][0]].strip())
                                  for one, other in itertools.pairwise(groups)], most):  # fmt: skip
        of_token[group] = len(places)
        start, end = int(spans[group[0]][0]), int(spans[group[-1]][1])
        places.append(Place(kind="text", start=start, end=_whole(text, end)))
    return Places(places=tuple(places), of_token=of_token)


def layout_places(tokens: NDArray[np.float16], text: str, spans: NDArray[np.integer] | None) -> Places:
    """Places of a task with media from its wide tokens (T, W); `spans` are those of its text, None without."""
    read = read_layout(tokens)
    of_token = np.full(len(tokens), -1, np.int64)
    places: list[Place] = []
    for kind, piece, rows in read.pieces():
        if kind == "text":
            found = text_places(text, spans) if spans is not None and len(spans) == len(rows) else _nowhere(len(rows))
        elif kind == "image":
            found = _cells(len(rows), piece)
        else:
            found = _moments(kind, piece, read.seconds[rows])
        of_token[rows] = np.where(found.of_token >= 0, found.of_token + len(places), -1)
        places += found.places
    return Places(places=tuple(places), of_token=of_token)


def _joined(text: str, at: int, tokens: int) -> bool:
    """Whether the tokens before and after a border at `at` belong to one word."""
    if _inside_grapheme(text, at):
        return True
    left, right = text[at - 1], text[at]
    return tokens < _TOKENS_A_WORD and left.isalnum() and right.isalnum() and not _ideograph(left + right)


def _inside_grapheme(text: str, at: int) -> bool:
    return 0 < at < len(text) and (
        bool(unicodedata.combining(text[at])) or text[at] in _JOINERS or text[at - 1] == "\u200d"
        or "\U0001f3fb" <= text[at] <= "\U0001f3ff"
    )


def _whole(text: str, end: int) -> int:
    """The end of a word, after the marks that belong to its last letter though no token has them."""
    while _inside_grapheme(text, end):
        end += 1
    return end


def _ideograph(letters: str) -> bool:
    return any("\u2e80" <= letter <= "\u9fff" for letter in letters)


def _merged(groups: Sequence[list[int]], apart: Sequence[bool], most: int) -> list[list[int]]:
    """About `most` groups, neighbours joined; `apart` (one less): unread text lies behind a group."""
    size = max(1, -(-len(groups) // most))
    found: list[list[int]] = []
    joined = size
    for group, alone in zip(groups, [True, *apart], strict=False):
        if alone or joined == size:
            found.append([])
            joined = 0
        found[-1] += group
        joined += 1
    return found


def _cells(count: int, piece: int) -> Places:
    """A picture of a square grid of tokens, with or without one special token before it."""
    grid = math.isqrt(count)
    first = 0 if grid * grid == count else 1
    grid = math.isqrt(max(count - first, 0))
    if grid < 2 or grid * grid != count - first:
        return _nowhere(count)
    step = -(-grid // MOST_A_SIDE)
    side = -(-grid // step)
    row, column = np.divmod(np.arange(grid * grid), grid)
    of_token = np.full(count, -1, np.int64)
    of_token[first:] = row // step * side + column // step
    cells = [Place(kind="image", piece=piece, row=at // side, column=at % side, side=side) for at in range(side * side)]
    return Places(places=tuple(cells), of_token=of_token)


def _moments(kind: str, piece: int, seconds: NDArray[np.float64]) -> Places:
    """Moments of a sound, or frames of a video (tokens of one time), in order."""
    new = np.diff(seconds, prepend=np.nan) != 0.0 if kind == "video" else np.ones(len(seconds), bool)
    moment = np.cumsum(new) - 1
    size = max(1, -(-int(moment[-1] + 1) // MOST))
    of_token = moment // size
    middle = [float(seconds[of_token == at].mean()) for at in range(int(of_token[-1]) + 1)]
    known = [value if math.isfinite(value) else None for value in middle]
    return Places(
        places=tuple(Place(kind=kind, piece=piece, seconds=value) for value in known), of_token=of_token
    )


def _nowhere(count: int) -> Places:
    return Places(places=(), of_token=np.full(count, -1, np.int64))
