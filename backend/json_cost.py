"""What parsing a JSON text takes in memory, told before it is parsed: three bytes `[],` become 64.

The figures are sizes of CPython's objects (64 bits), rounded up; characters inside of texts are counted as if they were
structure, so a text may seem dearer than it is, never cheaper. Counting takes a tenth of the time of parsing, and texts
that cannot cost too much are not looked at. No pattern is searched for: one takes seconds for 64 MB, in which no other
thread of the process runs.
"""

from __future__ import annotations

from itertools import product

DEAREST = 45  # bytes of memory for a byte of JSON, at the most
_LIST, _DICT, _ENTRY, _SLOT, _TEXT, _WIDE_TEXT, _NUMBER = 96, 232, 36, 9, 56, 80, 32
_BEYOND = bytes(range(0xF0, 0xF5))  # begin characters beyond the first 65,536, in UTF-8
_PAIRS = tuple(b"\\u%c%c" % pair for pair in product(b"dD", b"89abAB"))  # and escaped
_NOT_LATIN = bytes(range(0xC4, 0xF0))


def too_dear(raw: bytes | bytearray, most: int) -> bool:
    """Whether the bytes, their text and what it is parsed to may take more than `most` bytes, all together."""
    return DEAREST * len(raw) > most and cost_of(raw) > most


def cost_of(raw: bytes | bytearray) -> int:
    """The bytes of memory that these, their text and what it is parsed to take at most, all together."""
    size, lists, dicts = len(raw), raw.count(b"["), raw.count(b"{")
    entries, commas, texts = raw.count(b":"), raw.count(b","), raw.count(b'"') // 2
    numbers = max(commas + 1 - max(texts - entries, 0), 0)
    plain = raw.isascii()
    widest = _widest(raw, plain)
    text = _TEXT if plain and widest == 1 else _WIDE_TEXT
    structure = _LIST * lists + _DICT * dicts + _ENTRY * entries + _SLOT * commas + text * texts + _NUMBER * numbers
    return size + size * (1 if plain else widest) + size * widest + structure


def _widest(raw: bytes | bytearray, plain: bool) -> int:
    """Bytes that each character of the text, or of one of its texts, may take."""
    escaped = b"\\u" in raw
    if (not plain and _has_any(raw, _BEYOND)) or (escaped and any(pair in raw for pair in _PAIRS)):
        return 4
    return 2 if escaped or (not plain and _has_any(raw, _NOT_LATIN)) else 1


def _has_any(raw: bytes | bytearray, some: bytes) -> bool:
    return len(raw.translate(None, some)) < len(raw)
