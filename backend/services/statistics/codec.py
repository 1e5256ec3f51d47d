"""Documents <-> JSON text, driven by the types of their fields.

Invariants: `decode(type(d), encode(d)) == d`; NaN and infinity become None on the way out, so that every JSON parser
reads it; a text that does not have the shape raises ValueError or TypeError (a document of an older release).
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encode(document: Any) -> str:
    """Compact JSON."""
    return json.dumps(plain(document), ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def plain(item: Any) -> Any:
    """Dicts, lists, strings, finite numbers, booleans and None."""
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {name: plain(getattr(item, name)) for name in _names(type(item))}
    if isinstance(item, Mapping):
        return {str(name): plain(each) for name, each in item.items()}
    if isinstance(item, tuple | list):
        return [plain(each) for each in item]
    if isinstance(item, float):
        return float(item) if math.isfinite(item) else None
    if isinstance(item, datetime):
        return item.isoformat()
    return item.value if isinstance(item, Enum) else item


def decode(kind: type[T], text: str) -> T:
    """The document of this type. Raises ValueError, TypeError or KeyError when the text does not have its shape."""
    found = _reader(cast(Any, kind))(json.loads(text))
    assert isinstance(found, kind)
    return found


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What turns a parsed JSON item into a value of this type."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _record_reader(kind)
    if origin in (Union, types.UnionType):
        some = _reader(next(each for each in inner if each is not type(None)))
        return lambda item: None if item is None else some(item)
    if origin is tuple and inner[-1] is Ellipsis:
        each = _reader(inner[0])
        return lambda items: tuple(each(item) for item in items)
    if origin is tuple:
        readers = tuple(_reader(one) for one in inner)
        return lambda items: tuple(read(item) for read, item in zip(readers, items, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        value = _reader(inner[1])
        return lambda items: {name: value(item) for name, item in items.items()}
    if kind is datetime:
        return datetime.fromisoformat
    if kind is float:
        return float
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else lambda item: item


def _record_reader(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in _names(kind)}
    # A field that an older release did not write yet has its default; without one, TypeError says that it is missing.
    return lambda item: kind(**{name: read(item[name]) for name, read in readers.items() if name in item})
