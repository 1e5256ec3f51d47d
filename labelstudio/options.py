"""The settings of the middleware, read once from the environment when Label Studio starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CONTROL_ARM_PERCENT = "POLYVOX_CONTROL_ARM_PERCENT"
SHOW_ALL_TABS = "POLYVOX_SHOW_ALL_TABS"

DEFAULT_CONTROL_ARM_PERCENT = 10.0

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the middleware can be told."""

    control_arm_percent: float = DEFAULT_CONTROL_ARM_PERCENT  # must equal the setting of the Polyvox server
    show_all_tabs: bool = False  # True: the quick view keeps a tab for each annotator's predicted label

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Options:
        """Read the environment. Raises ValueError with a sentence when a value cannot be used."""
        return cls(
            control_arm_percent=_percent(env.get(CONTROL_ARM_PERCENT, "").strip()),
            show_all_tabs=_flag(SHOW_ALL_TABS, env.get(SHOW_ALL_TABS, "").strip().lower()),
        )


def _percent(text: str) -> float:
    if not text:
        return DEFAULT_CONTROL_ARM_PERCENT
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:  # also false for NaN
        raise ValueError(f"{CONTROL_ARM_PERCENT} takes a number from 0 to 100, not {text!r}.")
    return percent


def _flag(name: str, text: str) -> bool:
    if text not in _YES | _NO:
        raise ValueError(f"{name} takes true or false, not {text!r}.")
    return text in _YES
