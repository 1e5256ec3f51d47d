"""One thing written in several ways: numbers, class names that look alike, times, people.

    number      3 and 3.0, in a cell of a table also as text; never NaN or an infinity
    class name  text; a number as text without a point where it is whole; true and false
    look        what a class name looks like: "é" in one code point or two, no-break and doubled spaces, spaces at the
                ends, marks that are not seen (right-to-left and others), 1 and 1.0, true and True
    time        ISO 8601 (UTC where no zone is given), or seconds, milli-, micro- or nanoseconds since the epoch
    person      an id, an e-mail address, or an object with either or with a name
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

_NUMBER = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_PADDED = re.compile(r"[+-]?0[0-9]{1,15}(\.[0-9]*)?")
_NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)|[+-]?[0-9.]+[eE]\+?[0-9]{3,}", re.IGNORECASE)
_TRUTHS = ("true", "false")  # JSON has them as values, Python writes them with capitals
_JOINERS = "\u200c\u200d"  # not seen either, but they change the letters and pictures around them
_EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from which size on a number counts which part of a second


def number_text(number: float) -> str:
    """17.0 -> "17"; whole numbers have no point."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def finite(item: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(item, bool) or not isinstance(item, int | float):
        return None
    try:
        return float(item) if math.isfinite(item) else None
    except OverflowError:  # an integer beyond every float
        return None


def finite_text(item: object) -> float | None:
    """The same, also of a number that stands there as text."""
    text = item.strip() if isinstance(item, str) else ""
    return finite(float(text)) if _NUMBER.fullmatch(text) else finite(item)


def scale_number(item: object) -> float | None:
    """What a class stands for on a scale: a number, also with zeros in front ("08") and with a typeset minus."""
    if not isinstance(item, str):
        return finite(item)
    text = item.strip().replace("\u2212", "-")
    return float(text) if _PADDED.fullmatch(text) else finite_text(text)


def is_no_number(text: str) -> bool:
    """Whether a text stands for NaN or an infinity, 1e999 too."""
    text = text.strip()
    return bool(_NO_NUMBER.fullmatch(text)) and not math.isfinite(float(text))


def class_text(item: object) -> str | None:
    """The class that a JSON scalar names; None for what is none (empty text, null, NaN, infinities, lists)."""
    if isinstance(item, str):
        return item or None
    if isinstance(item, bool):
        return str(item).lower()
    number = finite(item)
    if number is None:
        return None
    return str(item) if isinstance(item, int) else number_text(number)


def look(text: str) -> str:
    """What texts that look alike have in common; the text itself where nothing of it is seen."""
    if text.isascii() and text.isalpha():  # most
        return text.lower() if text.lower() in _TRUTHS else text
    seen = "".join(" " if each.isspace() else each for each in text if not _unseen(each))
    seen = unicodedata.normalize("NFC", " ".join(seen.split()))
    if _NUMBER.fullmatch(seen):
        number = float(seen)
        return number_text(number + 0.0) if math.isfinite(number) and abs(number) < 1e15 else seen
    return seen or text


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Groups of two and more different names that look alike, in the order of the names."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(look(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def spelled(name: str) -> str:
    """A name so that what is not seen in it is seen: for sentences on look-alike names."""
    plain = "".join(
        each if each == " " or (each.isprintable() and not unicodedata.combining(each) and not each.isspace())
        else f"<U+{ord(each):04X}>" for each in name
    )
    return f'"{plain}"'


def seconds(item: object) -> float | None:
    """Seconds since the epoch; None for what is no time."""
    number = finite_text(item)
    if number is not None:
        return next((number / parts for size, parts in _EPOCH_UNITS if abs(number) >= size), number)
    if not isinstance(item, str):
        return None
    try:
        time = datetime.fromisoformat(item.strip())
        return (time.replace(tzinfo=UTC) if time.tzinfo is None else time).timestamp()
    except (ValueError, OverflowError):
        return None


def moment(item: object) -> datetime | None:
    """A time in UTC; None for what is none."""
    if isinstance(item, str):  # exact, where a float rounds to parts of a microsecond
        try:
            time = datetime.fromisoformat(item.strip())
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    found = seconds(item)
    try:
        return None if found is None else datetime.fromtimestamp(found, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def person(item: Any) -> str:
    """Who that is: the id of an object if it has one, else its e-mail address or name, also of a user inside of it;
    "" for nobody."""
    if isinstance(item, Mapping):
        named = (person(item.get(key)) for key in ("id", "pk", "user_id", "email", "username", "user"))
        full = (person(item.get(key)) for key in ("first_name", "last_name"))
        return next((name for name in named if name), "") or " ".join(name for name in full if name)
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, bool) or not isinstance(item, int | float) or finite(item) is None:
        return ""
    return str(item) if isinstance(item, int) and abs(item) < 2**63 else (
        number_text(item) if isinstance(item, float) and item.is_integer() else "")


def _unseen(character: str) -> bool:
    if character in _JOINERS:
        return False
    return "\ufe00" <= character <= "\ufe0f" or unicodedata.category(character) == "Cf"
