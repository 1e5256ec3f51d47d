"""Numbers, times and shares as people read them. What is unknown is a dash, never a made-up 0."""

from __future__ import annotations

import math
from datetime import datetime

DASH = "–"
_NARROW = "\u202f"  # a thin space that does not break


def known(value: float | None) -> bool:
    """Whether there is a number to show."""
    return value is not None and math.isfinite(value)


def number(value: float | None) -> str:
    """12345 -> "12 345", with narrow spaces."""
    return f"{value:,.0f}".replace(",", _NARROW) if value is not None and math.isfinite(value) else DASH


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with a fixed number of decimals and a real minus sign; never "-0.00"."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def percent(value: float | None, digits: int = 0) -> str:
    """A share of [0, 1] as "81 %"."""
    return f"{decimal(value * 100, digits)}{_NARROW}%" if value is not None and math.isfinite(value) else DASH


def evidence(log_odds: float | None) -> str:
    """Log-odds in nats as a word: "strong" from ten to one on, "fair" from even odds on, "slight" below."""
    if log_odds is None or not math.isfinite(log_odds):
        return DASH
    return "strong" if log_odds >= math.log(10.0) else "fair" if log_odds >= 0.0 else "slight"


def seconds(value: float | None) -> str:
    """A duration, short."""
    if value is None or not math.isfinite(value):
        return DASH
    if value < 99.5:
        return f"{decimal(value, 1 if value < 9.95 else 0)} s"
    return f"{value / 60:.0f} min" if value < 5970 else f"{value / 3600:.1f} h"


def moment(value: datetime) -> str:
    """"28 Nov 2026, 12:00 UTC"."""
    return f"{day(value)}, {value:%H:%M} UTC"


def day(value: datetime) -> str:
    """"28 Nov 2026"."""
    return f"{value.day} {value:%b %Y}"


def count(value: int, one: str, many: str = "") -> str:
    """"1 task", "12 tasks"."""
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def shortened(text: str, most: int) -> str:
    """Text on one line, cut at a word where it is too long."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[:most].rsplit(" ", 1)[0]
    return (cut if len(cut) > most // 2 else line[:most]).rstrip(" ,.;:") + " …"
