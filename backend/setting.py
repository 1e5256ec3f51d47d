"""One environment variable as data: its name, type, default, unit, help and bounds; text in, checked value out.

No message repeats a value: it may be a secret that ended up in the wrong variable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.errors import SettingsError

YES = frozenset({"1", "true", "yes", "on", "y", "t"})
NO = frozenset({"0", "false", "no", "off", "n", "f"})
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One environment variable."""

    name: str  # attribute of Settings
    env: str
    type: type
    default: Any
    unit: str
    help: str
    least: float | None
    most: float | None
    choices: tuple[str, ...]
    pattern: str
    words: str  # what it takes, where the type does not say it
    secret: bool
    per_project: bool  # a project may override it

    @property
    def env_file(self) -> str:
        """The variable that names a file with the value; "" for what is no secret."""
        return self.env + "_FILE" if self.secret else ""

    @property
    def takes(self) -> str:
        """What values are accepted, in words."""
        if self.words:
            return self.words
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type is bool:
            return "yes or no"
        if self.type not in (int, float):
            return {"url": "an http:// or https:// address", "folder": "a folder"}.get(self.unit, "text")
        words = "a whole number" if self.type is int else "a number"
        if self.least is not None and self.most is not None:
            words += f" from {self.least:g} to {self.most:g}"
        elif self.least is not None:
            words += f" of at least {self.least:g}"
        return f"{words} ({self.unit})" if self.unit else words

    def parse(self, raw: str) -> Any:
        """Text from the environment to a value. Raises `SettingsError`."""
        text = raw.strip()
        try:
            if self.type is bool:
                return self._parse_bool(text)
            return text.upper() if self.choices == LOG_LEVELS else self.type(text)
        except ValueError:
            raise self.refusal() from None

    def check(self, value: Any) -> Any:
        """The value in its normal form. Raises `SettingsError` when it is of the wrong type or out of bounds."""
        if self.type is Path and isinstance(value, str | Path):
            return Path(value).expanduser().absolute()  # job processes may be started in another folder
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not self.type:
            raise self.refusal()
        if isinstance(value, int | float) and not isinstance(value, bool):
            # written so that NaN, which compares false with everything, is refused as well
            inside = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
            if not inside or value in (float("inf"), float("-inf")) or value != value:
                raise self.refusal()
        if self.choices and value not in self.choices:
            raise self.refusal()
        if self.pattern and value and not re.fullmatch(self.pattern, str(value)):
            raise self.refusal()
        if self.unit == "url":
            return str(value).rstrip("/")
        return value

    def refusal(self) -> SettingsError:
        """The error for a value that cannot be used; says what can."""
        # Values are not repeated: they may be secrets that ended up in the wrong variable.
        return SettingsError(f"{self.env} takes {self.takes}; the value given cannot be used.")

    def _parse_bool(self, text: str) -> bool:
        if text.lower() in YES:
            return True
        if text.lower() in NO:
            return False
        raise ValueError(text)


def setting(
    default: Any, help: str, *, env: str = "", unit: str = "", least: float | None = None, most: float | None = None,
    choices: tuple[str, ...] = (), pattern: str = "", words: str = "", secret: bool = False, per_project: bool = False,
) -> Any:
    """Declare a field of `Settings`; without `env` the variable is POLYVOX_<NAME>."""
    about = {"help": help, "env": env, "unit": unit, "least": least, "most": most, "choices": choices,
             "pattern": pattern, "words": words, "secret": secret, "per_project": per_project, "default": default}
    return field(default=default, metadata=about)
