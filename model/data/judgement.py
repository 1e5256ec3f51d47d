"""A verdict: is what was learned published?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict, its reason in one sentence, and the numbers behind it (JSON-able)."""

    publish: bool
    reason: str
    figures: dict[str, Any]
