"""What parsing a JSON text takes in memory, told before it is parsed: three bytes `[],` become 64.

The figures are sizes of CPython's objects (64 bits), rounded up; characters inside of texts are counted as if they were
structure, so a text may seem dearer than it is, never cheaper. Counting takes a tenth of the time of parsing, and texts
that cannot cost too much are not looked at.
"""

from __future__ import annotations

import re

DEAREST = 45  # bytes of memory for a byte of JSON, at the most
_LIST, _DICT, _ENTRY, _SLOT, _TEXT, _WIDE_TEXT, _NUMBER = 96, 232, 36, 9, 56, 80, 32
_PAIRS = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")  # characters beyond the first 65,536
_WIDE = re.compile(rb"[\xc4-\xef]|\\u")


def too_dear(raw: bytes | bytearray, most: int) -> bool:
    """Whether the bytes, their text and what it is parsed to may take more than `most` bytes, all together."""
    return DEAREST * len(raw) > most and _cost(raw) > most


def _cost(raw: bytes | bytearray) -> int:
    size, lists, dicts = len(raw), raw.count(b"["), raw.count(b"{")
    entries, commas, texts = raw.count(b":"), raw.count(b","), raw.count(b'"') // 2
    numbers = max(commas + 1 - max(texts - entries, 0), 0)
    plain = raw.isascii()
    widest = 4 if _PAIRS.search(raw) else 2 if _WIDE.search(raw) else 1
    text = _TEXT if plain and widest == 1 else _WIDE_TEXT
    structure = _LIST * lists + _DICT * dicts + _ENTRY * entries + _SLOT * commas + text * texts + _NUMBER * numbers
    return size + size * (1 if plain else widest) + size * widest + structure
