"""How a text is written: what a mean token hides, and what people's rules are often about.

Plain ones, which people can name and which each annotator may weigh in their own way (`model.base_models.pooled`):
whether there is a question mark, an exclamation mark, an ellipsis, a quotation mark, a digit, a link or a word in
capitals; how much punctuation inside sentences; the share of capital letters; the length in words, and that of the
words. Hashed ones, which are weighed alike for everybody: the first word, the first two words, and character n-grams.

Invariants: a pure function of the text, the same in every process and on every machine (no salted hash); a text that
is empty, as of a task that shows pictures alone, has zeros; of a very long text the beginning and the end are read.

Shape legend: B texts, S = WIDTH features, the first K = PLAIN of them plain.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NAMES = (
    "question mark", "exclamation mark", "ellipsis", "quotation mark", "digit", "link", "word in capitals",
    "commas, colons and semicolons", "share of capitals", "words", "length of words",
)
PLAIN = len(NAMES)
_FIRST, _GRAMS = 24, 96  # buckets of a first word or two, and of n-grams
WIDTH = PLAIN + 2 * _FIRST + _GRAMS
_SIZES = (3, 4)  # of n-grams
_MOST = 4_000  # characters that are read at either end
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LINK = re.compile(r"https?://|www\.", re.IGNORECASE)
_PRIMES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)
_FINISH = np.uint64(0xBF58476D1CE4E5B9)  # of SplitMix64
_SHIFT, _MODULUS = np.uint64(32), np.uint64(_GRAMS)


def surface(texts: Sequence[str]) -> NDArray[np.float32]:
    """(B, S): of each text its plain features, then the hashed ones."""
    found = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in zip(found, texts, strict=True):
        if text.strip():
            _fill(row, text if len(text) <= 2 * _MOST else f"{text[:_MOST]} {text[-_MOST:]}")
    return found


def _fill(row: NDArray[np.float32], text: str) -> None:
    words, low = _WORD.findall(text), text.lower()
    letters = sum(map(str.isalpha, text))
    row[:PLAIN] = (
        "?" in text or "？" in text, "!" in text or "！" in text, "..." in text or "…" in text,
        any(mark in text for mark in '"“”«»'), any(map(str.isdigit, text)), _LINK.search(text) is not None,
        any(len(word) > 2 and word.isupper() for word in words),
        np.log1p(sum(text.count(mark) for mark in ",;:")), sum(map(str.isupper, text)) / max(letters, 1),
        np.log1p(len(words)), np.log1p(sum(map(len, words)) / max(len(words), 1)),
    )
    first = [word.lower() for word in words[:2]]
    for place in range(len(first)):
        start = PLAIN + place * _FIRST
        row[start + zlib.crc32(" ".join(first[: place + 1]).encode("utf-8", "surrogatepass")) % _FIRST] = 1.0
    row[-_GRAMS:] = _grams(f" {low} ")


def _grams(text: str) -> NDArray[np.float32]:
    """How often n-grams fall into each bucket, as a direction with damped counts, (_GRAMS,)."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
    count = np.zeros(_GRAMS, np.int64)
    for size in _SIZES:
        if len(codes) < size:
            continue
        mixed = np.zeros(len(codes) - size + 1, np.uint64)
        for place in range(size):
            mixed ^= codes[place : len(codes) - size + 1 + place] * _PRIMES[place]
        mixed = (mixed ^ (mixed >> _SHIFT)) * _FINISH
        count += np.bincount(((mixed >> _SHIFT) % _MODULUS).astype(np.int64), minlength=_GRAMS)
    damped = np.log1p(count.astype(np.float32))
    return np.asarray(damped / np.float32(max(float(np.linalg.norm(damped)), 1e-12)), np.float32)
