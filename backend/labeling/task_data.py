"""What a tag reads from a task: `$key`, nested `$a.b` and `$a[0].b`, and templates such as "$title - $text".

The rules are those of Label Studio's front-end: a value that is one variable may be any JSON; in a mixture the
variables are replaced by text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

UNDEFINED = "$undefined$"  # where Label Studio keeps the data of a task that was imported before there was a config

_VARIABLE = re.compile(r"\$[\w\[\].{}]+")
_STEP = re.compile(r"[^.\[\]]+")


class _Missing:
    """Told apart from null, which a task may hold."""


MISSING = _Missing()


def variables(template: str) -> list[str]:
    """Paths that a template reads, in order, without repeats."""
    return list(dict.fromkeys(_path(found) for found in _VARIABLE.findall(template) if _path(found)))


def lookup(data: Mapping[str, Any], path: str) -> Any:
    """The value at a path, or MISSING. A key that holds dots itself wins over the nested reading."""
    if path in data:
        return data[path]
    found: Any = data
    for step in _STEP.findall(path):
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, Sequence) and not isinstance(found, str) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return MISSING
    return MISSING if found is data else found


def resolve(data: Mapping[str, Any], template: str) -> Any:
    """The value that a template stands for: any JSON where it is one variable (MISSING where absent), else text."""
    whole = _VARIABLE.fullmatch(template)
    if whole:
        return lookup(data, _path(whole.group()))
    return _VARIABLE.sub(lambda found: as_text(lookup(data, _path(found.group()))), template)


def as_text(value: Any) -> str:
    """Readable text of a JSON value; "" for null and for what is missing."""
    if value is None or isinstance(value, _Missing):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def with_defined(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Data whose `$undefined$` field stands under `key`, where Label Studio shows it."""
    if UNDEFINED not in data or not key or key in data:
        return data
    return {**data, key: data[UNDEFINED]}


def _path(variable: str) -> str:
    """"$text." at the end of a sentence reads "text"; the dot is punctuation."""
    return variable[1:].strip(".")
